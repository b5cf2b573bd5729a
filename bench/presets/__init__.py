"""Sweeps shipped with the package, one TOML a preset."""
