"""Scenarios that come with the package: one TOML file each, found by listing the folder."""
