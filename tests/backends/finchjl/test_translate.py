"""What is sent to Finch.jl means what the plan means: the translated programs, run by the loop interpreter, agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyfinch.algebra.term import postorder
from pyfinch.algebra.values import same_value
from pyfinch.backends.base import BrokenPromise, get_scheduler
from pyfinch.backends.finchjl.backend import FinchExecutable
from pyfinch.backends.finchjl.translate import translate
from pyfinch.backends.steps import extent
from pyfinch.difftest import SMALL, Case, random_case
from pyfinch.difftest.case import store
from pyfinch.difftest.run import compare, wanted
from pyfinch.formats.format import Format
from pyfinch.formats.levels import Dense
from pyfinch.formats.tensor import Tensor
from pyfinch.loops.interpreter import interpret
from pyfinch.loops.nodes import Literal, Loop, LoopNode
from pyfinch.loops.text import bindings_of, parse, to_text


def stored(array: Any, like: Any, fill: Any) -> Tensor:
    """An array in storage order as a tensor of a type."""
    is_dense = all(isinstance(level, Dense) for level in like.levels[:-1])
    return store(array, Format(like.levels, tuple(range(array.ndim))), fill, keep_unlike=None if is_dense else fill)


def sized(program: LoopNode, shape: tuple[int, ...]) -> LoopNode:
    """The program with the extents written that only a scattering workspace knows."""
    done: dict[Any, Any] = {}
    for term in postorder(program):
        if isinstance(term, Loop) and term.index.name.startswith("w"):
            size = shape[int(term.index.name[1:])]
            done[term] = Loop(done[term.index], Literal(np.int64(size)), done[term.body])
        else:
            done[term] = term.with_children([done[child] for child in term.children])
    return done[program]


def run(executable: FinchExecutable, tensors: dict[str, Tensor]) -> tuple[Tensor, ...]:
    """Run the stages of a plan as the backend does, the interpreter in Finch.jl's place."""

    def stage_run(stage: Any, operands: list[Tensor]) -> Tensor:
        step = stage.step
        with np.errstate(all="ignore"):
            fill = stage.fill(operands)
        if step.ftype.fill is not None and not same_value(step.ftype.fill, fill):
            raise BrokenPromise
        fills = {name: tensor.fill_value for name, tensor in zip(stage.names, operands, strict=True)}
        translated = translate(step, [tensor.ftype for tensor in operands], fills, fill)
        shape = tuple(extent(operands, place) for place in step.shape)
        inputs: dict[str, Any] = {
            name: tensor.todense().transpose(tensor.ftype.mode_order)
            for name, tensor in zip(stage.names, operands, strict=True)
        }
        inputs.update({f"n_{name}": np.int64(extent(operands, place)) for name, place in step.given})
        program = sized(translated.program, shape)
        with np.errstate(all="ignore"):
            (array,) = interpret(program, inputs)
        text = to_text(translated.program)
        assert to_text(parse(text, bindings_of(translated.program))) == text
        return stored(np.asarray(array, step.ftype.dtype).reshape(shape), step.ftype, fill)

    env = {alias: tensors[name] for alias, name in executable.plan.inputs.items()}
    for stage in executable.stages:
        operands = [env[name] for name in stage.step.operands]
        if stage.step.kind == "share":
            (tensor,) = operands
            env[stage.step.result] = Tensor(stage.step.ftype, tensor.storage_shape, tensor.fill_value, tensor.buffers)
        else:
            env[stage.step.result] = stage_run(stage, operands)
    from pyfinch.backends.steps import permuted

    return tuple(permuted(env[name], order) for name, order in executable.plan.results)


@pytest.mark.parametrize("scheduler", ["default", "unfused"])
@pytest.mark.parametrize("start", range(0, 200, 50))
def test_translated_programs_keep_their_meaning(scheduler: str, start: int) -> None:
    for seed in range(start, start + 50):
        case: Case = random_case(seed, SMALL)
        scheduled = get_scheduler(scheduler)[1](case.program)
        results = run(FinchExecutable(scheduled.plan), case.tensors)
        assert compare((scheduler, "interpreter"), results, wanted(case)) == [], (seed, str(case.program))


def test_conversions_are_written_out() -> None:
    from pyfinch.algebra.operators import get
    from pyfinch.backends.finchjl.translate import converted_call
    from pyfinch.loops.nodes import Value

    def text(op: str, *dtypes: str) -> str:
        values = tuple(Value("abc"[k], np.dtype(dtype)) for k, dtype in enumerate(dtypes))
        found = get(op, len(dtypes))
        return to_text(converted_call(found, values, found.result_dtype(*dtypes)))

    assert text("+", "float64", "float64") == "a + b"
    assert text("+", "int8", "int32") == "Int32(a) + b"
    assert text("+", "bool", "bool") == "a | b"
    assert text("*", "bool", "bool") == "a & b"
    assert text("/", "int64", "int64") == "Float64(a) / Float64(b)"
    assert text("and", "float64", "int8") == "and(Bool(a), Bool(b))"
    assert text("<", "int64", "uint64") == "a < b"
    assert text("max", "float32", "float32", "float32") == "max(a, b, c)"
    assert text("+", "int8", "int8", "float64") == "Float64(a + b) + c"
