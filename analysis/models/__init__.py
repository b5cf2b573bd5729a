"""Contention models, one file each."""
