"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["text", "reader", "numbers", "grammar", "checks", "interpreter"])
def test_examples(module: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(f"pyfinch.loops.{module}"))
    assert not failed
    assert tried
