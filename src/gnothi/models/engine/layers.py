"""What kinds of decoder layers a model has, and small windows for a trial of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from torch import nn

# Numbers of windows and chunks by name, and what is called alike and is none.
_WINDOW = re.compile(r"window|chunk|local_attention|index_topk|sparse_topk")
_NO_WINDOW = re.compile(r"layers|pattern|type|token|idx|interleave|freq|mask")
# Attributes of a layer's place, not of its kind.
_PLACE = re.compile(r"idx|index|layer_id|layer_number|layer_num|depth")


def kinds(layers: Sequence[nn.Module], config: Any) -> list[int]:
    """Of each layer, the number of the first one that is like it: in its modules, the shapes of their weights, what they are
    set to, and what the configuration says of it."""
    lists = [
        value
        for value in vars(config).values()
        if isinstance(value, list | tuple) and len(value) == len(layers) and all(isinstance(one, str | int) for one in value)
    ]
    first: dict[Any, int] = {}
    return [first.setdefault((_kind(layer), *(one[number] for one in lists)), number) for number, layer in enumerate(layers)]


def _kind(layer: nn.Module) -> tuple[str, ...]:
    # A layer's own fractions may grow with its depth and scale what it adds.
    features: list[Any] = [sorted((key, value) for key, value in vars(layer).items() if isinstance(value, float))]
    for name, module in layer.named_modules():
        settings = tuple(
            (key, value)
            for key, value in sorted(vars(module).items())
            if not key.startswith("_") and isinstance(value, bool | int | str) and not _PLACE.search(key)
        )
        shapes = tuple((key, tuple(one.shape)) for key, one in module.named_parameters(recurse=False))
        features.append((name, type(module).__qualname__, settings, shapes))
    return tuple(map(str, features))


@contextmanager
def small_windows(model: nn.Module, tokens: int) -> Iterator[list[int]]:
    """Inside, windows and chunks of attention are ``tokens`` long, so that short texts go beyond them. The lengths they had."""
    lengths: set[int] = set()
    changed: list[tuple[Any, str, Any]] = []
    for owner in (*_configurations(getattr(model, "config", None)), *model.modules()):
        for name, value in list(vars(owner).items()):
            if not _WINDOW.search(name) or _NO_WINDOW.search(name) or isinstance(value, bool):
                continue
            small = _smaller(value, tokens)
            if small == value:
                continue
            with suppress(Exception):  # a configuration may refuse what it did not expect: then it stays as it is
                setattr(owner, name, small)
                changed.append((owner, name, value))
                lengths |= set(value) if isinstance(value, list | tuple) else {value}
    try:
        yield sorted(one for one in lengths if isinstance(one, int) and one > tokens)
    finally:
        for owner, name, value in reversed(changed):
            setattr(owner, name, value)


def _smaller(value: Any, tokens: int) -> Any:
    if isinstance(value, int):
        return min(value, tokens)
    if isinstance(value, list | tuple) and value and all(isinstance(one, int) for one in value):
        return type(value)(min(one, tokens) for one in value)
    return value


def _configurations(config: Any) -> Iterator[Any]:
    if config is None:
        return
    yield config
    for value in vars(config).values():
        if hasattr(value, "to_dict"):
            yield from _configurations(value)
