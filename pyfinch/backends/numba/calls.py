"""The short way to call a compiled kernel: a function, made for the kernel, that prepares its arguments.

A call of a kernel on small operands takes a microsecond; looking up what it needs argument by argument takes twenty.
So that is spelled out once for each kernel, as a Python function of straight lines. It does what `execute.Execution`
does in one thread, and gives way to it (by returning None) wherever something is out of the ordinary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyfinch.algebra.operator import Operator
from pyfinch.algebra.term import postorder
from pyfinch.algebra.values import same_value
from pyfinch.backends.base import BrokenPromise
from pyfinch.backends.numba import parallel
from pyfinch.backends.numba.execute import LIMITS, Execution, Part
from pyfinch.backends.numba.kernel import KernelSource
from pyfinch.backends.numba.parallel import split_of, weight_of
from pyfinch.backends.threads import get_num_threads
from pyfinch.formats.format import FType
from pyfinch.formats.levels import Dense
from pyfinch.formats.tensor import Tensor
from pyfinch.loops.nodes import Access, Call, Literal, LoopNode, Value, Variable
from pyfinch.loops.simplify import dtype_of

__all__ = ["ShortCall", "short_call"]

ShortCall = Callable[[Any, Sequence[Tensor], Mapping[str, Any]], Tensor | None]


def short_call(source: KernelSource) -> ShortCall | None:
    """The function ``call(kernel, operands, given)`` for a kernel; None if its result is of an unusual kind."""
    assert isinstance(source.result.type, FType)
    levels = source.result.type.levels
    usual = all(level.appends or isinstance(level, Dense) for level in levels[:-1])
    if not usual or sum(level.appends for level in levels) > 1 or source.places is None:
        return None
    return _Writer(source).function()


class _Writer:
    def __init__(self, source: KernelSource) -> None:
        assert isinstance(source.result.type, FType)
        self.source = source
        self.ftype = source.result.type
        self.lines: list[str] = []
        self.scalars = 0
        self.names: dict[str, Any] = {
            "Execution": Execution,
            "Part": Part,
            "ftype": self.ftype,
            "source": source,
            "trusted": Tensor._trusted,
            "BrokenPromise": BrokenPromise,
            "same_value": same_value,
            "asarray": np.asarray,
            "errstate": np.errstate,
            "empty": np.empty,
            "zeros": np.zeros,
            "int64": np.int64,
            "get_num_threads": get_num_threads,
            "parallel": parallel,
        }

    def line(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def function(self) -> ShortCall:
        """Write the function and make it."""
        self.operands()
        self.size()
        self.initial()
        buffers = self.result()
        self.workspaces()
        self.call(buffers)
        text = "\n".join(["def call(kernel, tensors, given):", *self.lines])
        exec(compile(text, "<pyfinch call>", "exec"), self.names)
        made: ShortCall = self.names["call"]
        return made

    def operands(self) -> None:
        """Fetch and check the operands' buffers, fill values and extents."""
        count = len(self.source.operands)
        if count:
            self.line(f"{', '.join(f'T{k}' for k in range(count))}, = tensors")
        buffers: list[str] = []
        for k, variable in enumerate(self.source.operands):
            ftype = variable.type
            assert isinstance(ftype, FType)
            self.line(f"b{k} = T{k}.buffers")
            if ftype.ndim:
                self.line(f"s{k}, m{k} = T{k}.shape, T{k}.ftype.mode_order")
        for argument in self.source.arguments[3:]:
            parts: Any = argument.parts
            match argument.kind:
                case "buffer":
                    self.line(f"{argument.name} = b{parts[0]}[{parts[1]}][{parts[2]}]")
                    buffers.append(argument.name)
                case "fill":
                    self.line(f"{argument.name} = T{parts[0]}.fill_value")
                case "extent":
                    self.line(f"{argument.name} = {self.extent(parts)}")
        for k, variable in enumerate(self.source.operands):
            assert isinstance(variable.type, FType)
            for number, level in enumerate(variable.type.levels):
                if len(level.buffer_names) > 1:
                    ptr, idx = f"b{k}[{number}][0]", f"b{k}[{number}][1]"
                    self.line(f"if {ptr}.item(0) or {ptr}.item(-1) > len({idx}): T{k}.check_ends()")
        if buffers:
            writable = " and ".join(f"{name}.flags.writeable" for name in buffers)
            self.line(f"if not ({writable}): return None")

    def extent(self, place: Any) -> str:
        """The text of a loop's extent."""
        if isinstance(place, int):
            return str(place)
        if isinstance(place, tuple) and len(place) == 1:
            return str(place[0])
        k, slot = place
        return f"int(given[{slot!r}])" if k == "given" else f"s{k}[m{k}[{slot}]]"

    def size(self) -> None:
        """How much the operands hold; large work goes to several threads."""
        sizes = []
        for k, variable in enumerate(self.source.operands):
            assert isinstance(variable.type, FType)
            if variable.type.ndim:
                number = len(variable.type.levels) - 1
                place = f"b{k}[{number}][0]" if variable.type.levels[-1].buffer_names else f"b{k}[{number - 1}][-1]"
                sizes.append(f"len({place})")
        self.line(f"size = {' + '.join(sizes) or '0'}")
        self.has_workspace = any(argument.kind == "workspace" for argument in self.source.arguments)
        weight = weight_of(self.source.program)
        if split_of(self.source.program) is not None:
            self.line(f"if size * {weight} >= parallel.LARGE and get_num_threads() > 1: return None")

    def initial(self) -> None:
        """The result's initial value, which may depend on fill values and numbers."""
        source = self.source
        for k, (fill, promised) in enumerate(source.promises):
            self.names[f"promised{k}"] = promised
            self.line(f"if not same_value({self.scalar(fill)}, promised{k}):")
            self.line(f"    raise BrokenPromise('an intermediate fill is not as promised: ' + repr(promised{k}))")
        if isinstance(source.init, Literal):
            self.names["init"] = source.init.value
        else:
            self.line(f"init = {self.scalar(source.init)}")

    def scalar(self, node: LoopNode) -> str:
        """The name of the value of an expression over fill values and numbers; see `steps.evaluate`."""
        done: dict[Any, str] = {}
        for term in postorder(node):
            name = done[term] = f"v{self.scalars}"
            self.scalars += 1
            match term:
                case Literal(value):
                    self.names[name] = value
                case Value(label, _):
                    self.line(f"{name} = {self.tensor(label.removesuffix('_fill'))}.fill_value")
                case Access(Variable(label, _), ()):
                    self.line(f"{name} = {self.tensor(label)}.buffers[0][0][0]")
                case Call(op, args, dtype):
                    self.names[f"f{name}"], self.names[f"d{name}"] = op, dtype
                    texts = ", ".join(done[arg] for arg in args)
                    if is_ufunc_alone(op, args):
                        self.names[f"f{name}"] = op.func
                        self.line(f"with errstate(all='ignore'): {name} = f{name}({texts})")
                        self.line(f"if {name}.dtype is not d{name}: {name} = {name}.astype(d{name})")
                    else:
                        self.line(f"{name} = asarray(f{name}({texts})).astype(d{name})[()]")
        return done[node]

    def tensor(self, name: str) -> str:
        """The text of an operand, or of a tensor that only the initial value depends on."""
        found = [k for k, variable in enumerate(self.source.operands) if variable.name == name]
        return f"T{found[0]}" if found else f"given[{name!r}]"

    def result(self) -> list[str]:
        """Allocate the result; the text of each level's buffers."""
        source, levels = self.source, self.ftype.levels
        assert source.places is not None
        dims = [self.extent(place) for place in source.places]
        for slot, dim in enumerate(dims):
            self.line(f"d{slot} = {dim}")
        self.line(f"shape = ({''.join(f'd{slot}, ' for slot in range(len(dims)))})")
        self.names["dtype"] = self.ftype.dtype
        if source.mirror is not None:
            last = len(levels) - 1
            leaf = source.operands[source.mirror].type.levels[-1]  # type: ignore[union-attr]
            place = f"b{source.mirror}[{last}][0]" if leaf.buffer_names else f"b{source.mirror}[{last - 1}][-1]"
            self.line(f"R_val = empty(len({place}), dtype)")
            return [*[f"b{source.mirror}[{number}]" for number in range(last)], "(R_val,)"]
        made: list[str] = []
        npos, slot, appended = "1", 0, False
        for number, level in enumerate(levels):
            own = [f"d{s}" for s in range(slot, slot + level.modes)]
            slot += level.modes
            if level.appends:
                for dim in own:
                    self.line(f"if {dim} > {LIMITS[level.buffer_dtypes[1]]}: return None")
                guess = f"min(16 * size, max(2 * size, {2**26}))" if self.has_workspace else "size"
                most = LIMITS[level.buffer_dtypes[0]]  # of entries; a kernel that asks for more is told
                self.line(f"room = min(max({guess}, 16), max({' * '.join([npos, *own])}, 1), {most})")
                self.names["ptr_dtype"], self.names["idx_dtype"] = level.buffer_dtypes[:2]
                allocate = "zeros" if number in source.counted else "empty"
                self.line(f"R_ptr{number} = {allocate}({npos} + 1, ptr_dtype)")
                self.line(f"R_ptr{number}[0] = 0")
                idxs = [self.argument_of(number, b) for b in range(1, len(level.buffer_names))]
                for idx in idxs:
                    self.line(f"{idx} = empty(room, idx_dtype)")
                made.append(f"(R_ptr{number}, {', '.join(idxs)},)")
                npos, appended = "room", True
            elif level.modes:
                npos = f"{npos} * {own[0]}" if npos != "1" else own[0]
                made.append("()")
            elif level.buffer_names:
                is_zero = not isinstance(source.init, Literal) or bool(source.init.value.tobytes().strip(b"\0"))
                if appended or not source.prefilled:
                    self.line(f"R_val = empty({npos}, dtype)")
                elif is_zero:
                    self.line(f"R_val = empty({npos}, dtype)")
                    self.line("R_val.fill(init)")
                else:
                    self.line(f"R_val = zeros({npos}, dtype)")
                made.append("(R_val,)")
            else:
                made.append("()")
        return made

    def argument_of(self, number: int, place: int) -> str:
        """The kernel's name for a buffer of the result."""
        return next(a.name for a in self.source.arguments if a.kind == "result" and a.parts == (number, place))

    def workspaces(self) -> None:
        """Allocate workspaces, unless they would be far larger than the operands."""
        for argument in self.source.arguments:
            if argument.kind == "workspace":
                number, dtype, place = argument.parts
                assert isinstance(number, int)
                self.names[f"{argument.name}_dtype"] = np.dtype(str(dtype))
                size = self.extent(place)
                if number == 0:
                    self.line(f"if {size} > {2**24} and {size} > 64 * size: return None")
                if number > 2:
                    size = f"({size} >> {6 * (number - 2)}) + 1"
                allocate = "empty" if number in (1, 2) else "zeros"
                self.line(f"{argument.name} = {allocate}({size}, {argument.name}_dtype)")

    def call(self, buffers: list[str]) -> None:
        """Run, give way if there was not enough room, cut what was appended, and wrap it."""
        source = self.source
        outer = "1" if source.outer is None else self.extent(source.outer)
        self.line(f"high = {outer}")
        self.line(f"state = zeros({2 * len(self.ftype.levels)}, int64)")
        names = ["init" if a.kind == "init" else a.name for a in source.arguments[3:]]
        self.line(f"low = kernel(0, high, state, {', '.join(names)})")
        appending = next((n for n, level in enumerate(self.ftype.levels) if level.appends), None)
        if source.mirror is None and appending is not None:
            slots = sum(level.modes for level in self.ftype.levels[: appending + 1])
            block = "".join(f" * d{slot}" for slot in range(slots, self.ftype.ndim))
            self.line("if low < high:")
            self.line("    execution = Execution(source, tensors, shape, given)")
            self.line(f"    part = Part([{', '.join(f'list({text})' for text in buffers)}], state, None)")
            self.line("    return execution.resume(kernel, part, low, high)")
            self.line(f"count = state.item({2 * appending})")
            if appending in source.counted:
                self.line(f"R_ptr{appending}.cumsum(out=R_ptr{appending})")
            for b in range(1, len(self.ftype.levels[appending].buffer_names)):
                self.line(f"{self.argument_of(appending, b)}.resize(count, refcheck=False)")
            if self.ftype.levels[-1].buffer_names:
                self.line(f"R_val.resize(count{block}, refcheck=False)")
        self.line(f"return trusted(ftype, shape, init, ({', '.join(buffers)},))")


def is_ufunc_alone(op: Operator, args: Sequence[LoopNode]) -> bool:
    """Whether an operator does to NumPy scalars just what its ufunc does (with bytes NumPy has a float16 in mind)."""
    wide = all(isinstance(arg, (Call, Value)) or isinstance(getattr(arg, "value", None), np.generic) for arg in args)
    return (
        wide
        and isinstance(op.func, np.ufunc)
        and op.func.nin == len(args)
        and all(dtype_of(arg).itemsize > 1 for arg in args)
    )
