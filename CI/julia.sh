#!/usr/bin/env bash
# The live tests of the bridge. Julia comes from PATH or PYTHON_JULIACALL_EXE, or juliacall fetches it.
set -euo pipefail
cd "$(dirname "$0")/.."
VENV="${VENV:-.venv}"
make "$VENV/.dev" VENV="$VENV"
"$VENV/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[julia]'
"$VENV/bin/python" -m pyfinch julia precompile
"$VENV/bin/python" -m pyfinch julia status
JULIA="$("$VENV/bin/python" -c 'from pyfinch.backends.finchjl import on_julia; print(on_julia(lambda m: str(m.seval("joinpath(Sys.BINDIR, Base.julia_exename())"))))')"
PROJECT="$("$VENV/bin/python" -c 'from pyfinch.backends.finchjl import on_julia; print(on_julia(lambda m: str(m.seval("dirname(Base.active_project())"))))')"
"$JULIA" --project="$PROJECT" julia/test/runtests.jl
PYFINCH_REQUIRE_JULIA=1 "$VENV/bin/python" -m pytest tests/backends/finchjl tests/difftest
"$VENV/bin/python" -m pyfinch difftest --pairs finchjl,unfused:finchjl,finchjl:finchjl,finchjl:numba,compute --passes \
    --config campaign --programs 60 --seed "${SEED:-0}"
