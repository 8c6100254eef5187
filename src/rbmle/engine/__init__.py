"""Compiled kernels: arrays in, arrays out, no Python object inside, and the GIL released."""
