"""Benchmarks: pyfinch beside what a user would pick instead, in one process and one run.

``python -m benchmarks`` runs the suite; ``python -m benchmarks spmv spgemm`` some of it; ``--quick`` on small inputs.
"""
