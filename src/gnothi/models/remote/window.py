"""How many tokens a server reads: what it says of its window, and what its bills show.

Some servers cut a prompt that is too long and answer the rest. That shows only in the bill: fewer tokens than a text of that
size has."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import ceil
from statistics import median
from typing import Any

OVERHEAD = 128
"""Bytes that a server's chat template is thought to add to a request."""
FIRST_RATIO = 0.5
"""Prompt tokens per byte until the server has counted some: twice those of English text."""
MARGIN = 1.25
ENOUGH = 500
"""Bytes from which a request shows how many tokens its text has: in shorter ones the server's own part weighs too much."""
USUAL = 0.25
"""Prompt tokens per byte of English text."""
LONGEST = 12.0
"""Bytes per token that no tokenizer reaches with prose."""
SHARE = 0.55
"""Below this share of what earlier prompts of that size had, a prompt was cut: servers that cut keep about half their
window."""
KNOWN = 5
"""Prompts that are needed to say what is usual."""


class Sizes:
    """Prompt tokens by bytes, as bills count them. ``window`` is what the server says it reads at most."""

    def __init__(self) -> None:
        self.window: int | None = None
        self.cut = 0
        self._most: float | None = None
        self._usual: deque[float] = deque(maxlen=200)

    def expected(self, size: int) -> int:
        """The most tokens that a prompt of so many bytes is thought to have."""
        return ceil((size + OVERHEAD) * (self._most or FIRST_RATIO))

    def learn(self, tokens: int, size: int) -> int | None:
        """Learn from a bill. Where the prompt seems to have been cut, how many tokens it is thought to have had."""
        if size < ENOUGH:
            if tokens > self.expected(size):
                self._most = max(self._most or FIRST_RATIO, MARGIN * tokens / (size + OVERHEAD))
            return None
        if not tokens:  # a server that does not count
            return None
        usual = median(self._usual) if len(self._usual) >= KNOWN else None
        estimate = round(size * (usual or USUAL))
        beyond = usual is not None and self.window is not None and tokens <= self.window < 0.9 * estimate
        if tokens * LONGEST < size or (usual is not None and tokens < SHARE * estimate) or beyond:
            self.cut += 1
            return estimate
        self._most = max(self._most or 0.0, MARGIN * tokens / size)
        self._usual.append(tokens / size)
        return None


_WINDOWS = ("max_model_len", "loaded_context_length", "context_length", "context_window", "max_context_length", "n_ctx")
"""Names under which servers tell it, the ones that hold now before those of what the model could read."""


def window(entry: object, model: str = "") -> int | None:
    """The window that an entry about a model tells; of lists of models, the entry of that name."""
    if isinstance(entry, Mapping):
        for name in _WINDOWS:
            value = entry.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
        if (found := window(entry.get("default_generation_settings"))) is not None:
            return found
        return window(entry.get("models") or entry.get("data"), model)
    if isinstance(entry, list):
        entries = [one for one in entry if isinstance(one, Mapping)]
        named = [one for one in entries if model in (one.get("id"), one.get("name"), one.get("model"))]
        tagged = [one for one in entries if str(one.get("name")).partition(":")[0] == model]
        return next((found for one in named or tagged if (found := window(_plain(one))) is not None), None)
    return None


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Without what an entry itself lists, which is about other models."""
    return {key: value for key, value in entry.items() if key not in ("models", "data")}
