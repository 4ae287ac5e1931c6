"""Conversion from and to other libraries' arrays."""
