"""Hypothesis for these tests: the same examples each time, since every program is scheduled and lowered anew."""

import os

from hypothesis import Phase, settings

settings.register_profile(
    "api",
    derandomize=os.environ.get("PYFINCH_FUZZ") is None,
    deadline=None,
    phases=(Phase.explicit, Phase.generate) if os.environ.get("PYFINCH_SHRINK") == "0" else tuple(Phase),
)
settings.load_profile("api")
