"""The Loop language: how a program runs."""
