"""Benchmarks: pyfinch beside what a user would pick instead, in one process and one run.

``python -m benchmarks`` runs the suite; ``python -m benchmarks spmv spgemm`` some of it; ``--quick`` on small inputs.
``docs/benchmarks.md`` says how to read the tables.
"""

import os

# Read when libraries are loaded; workloads that measure threads ask for more at run time.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # waiting threads that spin are slow where a core is not free
os.environ.setdefault("PYFINCH_COMPILE", "always")
