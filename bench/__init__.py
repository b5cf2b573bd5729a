"""Kernels, engine and drivers of pagestorm. Imports nothing, so that analysis can use parts of it."""
