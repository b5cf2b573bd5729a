"""Kernels, engine and drivers of pagestorm; imports nothing: analysis uses parts of it."""
