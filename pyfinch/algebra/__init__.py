"""Operators and their laws, values and dtypes. Imports nothing else of pyfinch."""
