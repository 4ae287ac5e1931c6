"""Random programs are what they promise: legal, reproducible, and diverse."""

from __future__ import annotations

import os
import random
import subprocess
import sys

from pyfinch.algebra.operators import Operator
from pyfinch.algebra.term import postorder
from pyfinch.difftest import CAMPAIGN, SMALL, Config, random_case
from pyfinch.difftest.run import wanted
from pyfinch.logic.grammar import validate
from pyfinch.logic.nodes import Aggregate, Immediate, MapJoin, Produces


def test_programs_are_legal_and_have_a_value() -> None:
    for seed in range(150):
        case = random_case(seed, SMALL if seed % 2 else CAMPAIGN)
        validate(case.program, "raw")
        for tensor in case.tensors.values():
            tensor.validate()
        last = case.program.bodies[-1]
        assert isinstance(last, Produces)
        assert len(wanted(case)) == len(last.args)


def test_a_seed_gives_one_program_whatever_the_hash_seed() -> None:
    code = "from pyfinch.difftest import random_case as r; print(*[r(k).program for k in range(20)])"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


def test_programs_have_all_that_they_may_have() -> None:
    cases = [random_case(seed) for seed in range(300)]
    shapes = [tensor.shape for case in cases for tensor in case.tensors.values()]
    assert {len(shape) for shape in shapes} == {0, 1, 2, 3}
    assert any(0 in shape for shape in shapes)
    assert any(1 in shape for shape in shapes)
    assert {tensor.dtype.name for case in cases for tensor in case.tensors.values()} == set(SMALL.dtypes)
    nodes = [term for case in cases for term in postorder(case.program)]
    assert sum(isinstance(node, Aggregate) for node in nodes) > 50
    assert len({node.op for node in nodes if isinstance(node, MapJoin)}) > 30
    assert any(tensor.fill_value != tensor.fill_value for case in cases for tensor in case.tensors.values())


def test_a_configuration_limits_what_programs_have() -> None:
    config = Config(
        dtypes=("float64", "int64"), formats=("csr", "dense"), operators=("add", "multiply"), kinds=1, special=False,
        reformats=False, tensors=2, results=1,
    )  # fmt: skip
    for seed in range(60):
        case = random_case(seed, config)
        operators = {term.value for term in postorder(case.program) if isinstance(term, Immediate)}
        assert {op.name for op in operators if isinstance(op, Operator)} <= {"add", "multiply"}
        assert len({tensor.dtype for tensor in case.tensors.values()}) <= 1
        assert len(case.tensors) <= 2
        assert len(case.program.bodies) == 2


def test_a_generator_of_random_numbers_may_be_given() -> None:
    numbers = random.Random(5)
    first, second = random_case(numbers), random_case(numbers)
    assert first.program is random_case(random.Random(5)).program
    assert first.program is not second.program
