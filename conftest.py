"""Kernels run as plain Python unless a test asks for machine code; all workers share one kernel cache."""

import os
from pathlib import Path

os.environ.setdefault("PYFINCH_COMPILE", "never")
os.environ.setdefault("PYFINCH_DEBUG", "1")
os.environ.setdefault("PYFINCH_CACHE_DIR", str(Path(__file__).parent / ".pytest_cache" / "kernels"))
