"""Live tests need Julia with Finch.jl; where there is none they are skipped, unless it is required."""

from __future__ import annotations

import importlib.util
import os

import pytest


def reason() -> str | None:
    """Why live tests cannot run; None if they can."""
    if importlib.util.find_spec("juliacall") is None:
        return "Julia is not installed"
    from pyfinch.backends.finchjl.session import availability

    about = availability()
    return None if about.available else f"Julia is not installed: {about.reason}"


@pytest.fixture(scope="session")
def julia() -> None:
    """Ask for this where a test calls Julia."""
    why = reason()
    if why is None:
        return
    if os.environ.get("PYFINCH_REQUIRE_JULIA") == "1":
        pytest.fail(why)
    pytest.skip(why)
