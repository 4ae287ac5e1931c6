"""``python -m pyfinch demo``: real work on real data, checked against SciPy and timed beside it."""

from pyfinch.demo.demo import main

__all__ = ["main"]
