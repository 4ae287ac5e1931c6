"""Backends: where programs run."""
