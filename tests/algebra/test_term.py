"""Terms are hash-consed: equal parts make the same object."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from dataclasses import dataclass

import numpy as np
import pytest

from pyfinch.algebra import term as module
from pyfinch.algebra.term import Term, postorder, preorder


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Leaf(Term):
    value: object


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node(Term):
    head: Term
    rest: tuple[Term, ...]
    name: str = "n"


VALUES = [
    0,
    0.0,
    -0.0,
    False,
    np.float64(0),
    np.float32(0),
    np.int8(0),
    1,
    1.0,
    True,
    1j,
    "1",
    b"1",
    None,
    (1,),
    (1.0,),
]


def test_equal_parts_are_one_object() -> None:
    assert Node(Leaf(1), (Leaf(2),)) is Node(Leaf(1), rest=(Leaf(2),), name="n")
    assert Node(Leaf(1), ()) is not Node(Leaf(1), (), "m")


def test_values_are_told_apart_by_type_and_bits() -> None:
    leaves = [Leaf(value) for value in VALUES]
    assert len(set(leaves)) == len(VALUES)


@pytest.mark.parametrize("nan", [float, np.float64, np.float32])
def test_all_nans_of_a_type_are_one(nan: type) -> None:
    assert Leaf(nan("nan")) is Leaf(-nan("nan"))
    assert Leaf(np.complex128(complex(float("nan"), 1))) is not Leaf(np.complex128(complex(float("nan"), 2)))


def test_unhashable_values_are_told_apart_by_identity() -> None:
    a, b = np.zeros(2), np.zeros(2)
    assert Leaf(a) is Leaf(a)
    assert Leaf(a) is not Leaf(b)


def test_children_and_with_children() -> None:
    a, b, c = Leaf(1), Leaf(2), Leaf(3)
    node = Node(a, (b, b))
    assert node.children == (a, b, b)
    assert node.with_children([a, b, b]) is node
    assert node.with_children([c, a, b]) is Node(c, (a, b))
    with pytest.raises(ValueError, match="3 children"):
        node.with_children([a])


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="rest"):
        Node(Leaf(1))
    with pytest.raises(TypeError):
        Node(Leaf(1), (), "n", 4)
    with pytest.raises(TypeError):
        Leaf(value=1, other=2)


def test_copies_and_pickles_are_the_object() -> None:
    node = Node(Leaf(np.float32(0.5)), (Leaf("x"), Leaf((1, 2.0))))
    assert copy.copy(node) is node
    assert copy.deepcopy([node])[0] is node
    assert pickle.loads(pickle.dumps(node)) is node


def test_depth_is_no_limit() -> None:
    node: Term = Leaf(0)
    for _ in range(20_000):
        node = Node(node, (node,))  # 2 ** 20_000 paths
    assert len(repr(node)) < 10_000
    assert pickle.loads(pickle.dumps(node)) is node
    assert sum(1 for _ in postorder(node)) == sum(1 for _ in preorder(node)) == 20_001


def test_terms_that_nobody_holds_are_forgotten() -> None:
    gc.collect()
    before = len(module._table)
    node: Term = Leaf("only here")
    for _ in range(10_000):
        node = Node(node, ())
    assert len(module._table) == before + 10_001
    del node
    gc.collect()
    assert len(module._table) <= before


def test_orders() -> None:
    a, b = Leaf(1), Leaf(2)
    root = Node(Node(a, (b,)), (b, a))
    assert list(postorder(root)) == [a, b, root.head, root]
    assert list(preorder(root)) == [root, root.head, a, b]
    assert list(postorder(root, seen={root.head})) == [b, a, root]


def test_threads_agree_on_the_object() -> None:
    made: list[list[Term]] = [[] for _ in range(4)]

    def build(out: list[Term]) -> None:
        node: Term = Leaf("threads")
        for number in range(2000):
            node = Node(node, (Leaf(number),))
            out.append(node)

    threads = [threading.Thread(target=build, args=(out,)) for out in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(a is b for out in made[1:] for a, b in zip(made[0], out, strict=True))
