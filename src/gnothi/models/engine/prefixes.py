"""Keys and values of what was read before, kept for prompts that begin alike: demonstrations, a question and its steps so far.

A radix tree on token ids: a path from the root is a prefix, a node holds the keys and values of its own tokens. When more than
the budget is held, what was used longest ago goes first, the ends of paths before their beginnings.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Tokens = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class Segment:
    """Keys and values of consecutive tokens, per layer (heads, tokens, size); ``start`` is the position of the first one."""

    keys: list[Tensor]
    values: list[Tensor]
    start: int
    length: int

    def part(self, begin: int, end: int) -> Segment:
        """Its tokens ``begin`` to ``end``, sharing memory."""
        keys = [tensor[:, begin:end] for tensor in self.keys]
        return Segment(keys, [tensor[:, begin:end] for tensor in self.values], self.start + begin, end - begin)

    def clone(self) -> Segment:
        """A copy that holds no more memory than its own tokens take."""
        return Segment([one.clone() for one in self.keys], [one.clone() for one in self.values], self.start, self.length)

    @property
    def bytes(self) -> int:
        """Memory of its tokens."""
        return sum(tensor.numel() * tensor.element_size() for tensor in (*self.keys, *self.values))

    @property
    def storage(self) -> int:
        """Memory that lives as long as it does, in bytes."""
        return sum(tensor.untyped_storage().nbytes() for tensor in (*self.keys, *self.values))


@dataclass(slots=True, eq=False)
class _Node:
    tokens: Tokens
    segment: Segment | None
    parent: _Node | None
    children: dict[int, _Node] = field(default_factory=dict)
    used: int = 0


class Prefixes:
    """``budget`` is in bytes; what is added may exceed it until ``shrink`` is called."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.clear()

    def clear(self) -> None:
        self._root = _Node(np.zeros(0, np.int64), None, None)
        self._clock = 0
        self.bytes = 0

    def match(self, tokens: Sequence[int]) -> tuple[Segment, ...]:
        """The longest beginning of ``tokens`` that is held, in pieces from the first token on. Counts as a use.

        Whoever matches the same beginning is given the same pieces, so that they can be attended to together.
        """
        self._clock += 1
        ids = np.asarray(tokens, np.int64)
        node, at, segments = self._root, 0, []
        while at < len(ids) and (child := node.children.get(int(ids[at]))) is not None:
            common = _common(child.tokens, ids[at:])
            node = child if common == len(child.tokens) else self._split(child, common)
            node.used = self._clock
            at += common
            assert node.segment is not None
            segments.append(node.segment)
        return tuple(segments)

    def matched(self, tokens: Sequence[int]) -> int:
        """How many of the first tokens are held. Does not count as a use."""
        ids = np.asarray(tokens, np.int64)
        node, at = self._root, 0
        while at < len(ids) and (child := node.children.get(int(ids[at]))) is not None:
            common = _common(child.tokens, ids[at:])
            at += common
            if common < len(child.tokens):
                break
            node = child
        return at

    def add(self, tokens: Sequence[int], segment: Segment) -> None:
        """Hold ``tokens``; ``segment`` has the keys and values of their end. What is held already is not held twice; nothing
        is added when the tokens before the segment are not held. The segment's memory becomes the tree's when it is used whole.
        """
        if not self.budget:
            return
        self._clock += 1
        ids = np.asarray(tokens, np.int64)
        node, at = self._root, 0
        while at < len(ids) and (child := node.children.get(int(ids[at]))) is not None:
            child.used = self._clock
            common = _common(child.tokens, ids[at:])
            at += common
            if at == len(ids):
                return
            node = child if common == len(child.tokens) else self._split(child, common)
        if at < segment.start:
            return
        new = segment if at == segment.start else segment.part(at - segment.start, segment.length).clone()
        node.children[int(ids[at])] = _Node(ids[at:].copy(), new, node, used=self._clock)
        self.bytes += new.bytes

    def shrink(self) -> None:
        """Forget what was used longest ago until the rest fits the budget."""
        if self.bytes <= self.budget:
            return
        leaves = [(node.used, id(node), node) for node in self._nodes() if not node.children]
        heapq.heapify(leaves)
        while self.bytes > self.budget and leaves:
            _, _, node = heapq.heappop(leaves)
            parent = node.parent
            assert parent is not None
            assert node.segment is not None
            del parent.children[int(node.tokens[0])]
            self.bytes -= node.segment.bytes
            if not parent.children and parent.parent is not None:
                heapq.heappush(leaves, (parent.used, id(parent), parent))

    def _split(self, node: _Node, at: int) -> _Node:
        """Put a node for the first ``at`` tokens above; the rest stays below. The new node."""
        assert node.segment is not None
        assert node.parent is not None
        beginning, rest = node.segment.part(0, at), node.segment.part(at, node.segment.length)
        # A view keeps all of the memory it was cut from: fine when it is most of it. Its rest then costs nothing more, and is
        # forgotten first.
        if 4 * beginning.bytes < 3 * beginning.storage:
            beginning, rest = beginning.clone(), rest.clone()
        above = _Node(node.tokens[:at].copy(), beginning, node.parent, used=node.used)
        node.parent.children[int(above.tokens[0])] = above
        node.segment = rest
        node.tokens, node.parent = node.tokens[at:].copy(), above
        above.children[int(node.tokens[0])] = node
        return above

    def _nodes(self) -> list[_Node]:
        nodes: list[_Node] = []
        waiting = list(self._root.children.values())
        while waiting:
            node = waiting.pop()
            nodes.append(node)
            waiting += node.children.values()
        return nodes


def _common(first: Tokens, second: Tokens) -> int:
    """How many of the first numbers are equal."""
    length = min(len(first), len(second))
    differ = np.flatnonzero(first[:length] != second[:length])
    return int(differ[0]) if len(differ) else length
