"""Finch.jl as a backend, a scheduler and an oracle. Only this room imports juliacall, and only when it is used."""

from __future__ import annotations

from pyfinch.backends.finchjl.programs import compute, passes
from pyfinch.backends.finchjl.session import on_julia
from pyfinch.backends.finchjl.sharing import from_julia, to_julia

__all__ = ["compute", "from_julia", "on_julia", "passes", "to_julia"]
