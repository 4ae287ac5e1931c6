"""The README's code runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

README = Path(__file__).parent.parent / "README.md"


def test_the_readmes_python_runs_and_is_right() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    code = code.replace("2000", "200")  # uncompiled kernels on small data
    names: dict[str, Any] = {}
    exec(code, names)
    dense = names["S"].toarray()
    np.testing.assert_allclose(names["B"].todense(), 3 * dense)
    np.testing.assert_allclose(names["C"].todense(), dense @ dense.T)
    np.testing.assert_allclose(names["D"].todense(), dense * (names["X"] @ names["Y"].T))
    np.testing.assert_allclose(names["E"].todense(), np.clip(dense @ dense - 0.3, 0, 32))
    x = names["X"][:50]
    np.testing.assert_allclose(names["paths"].todense(), (x[:, :, None] + x.T[None]).min(axis=1))
