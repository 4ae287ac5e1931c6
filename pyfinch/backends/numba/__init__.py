"""The Numba backend: kernels generated on the fly. Importing this does not import numba."""

from pyfinch.backends.numba.backend import NumbaBackend

__all__ = ["NumbaBackend"]
