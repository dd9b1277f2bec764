"""A decode path beside plain passes over whole texts: whatever it can be asked for, by two short texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gnothi.models.engine.passes import Network
from gnothi.models.engine.path import DecodePath, run_to_end
from gnothi.models.engine.states import StateHook

Text = tuple[int, ...]
_CLOSE, _CLOSE_IN_16_BITS = 3e-4, 0.05


class Wrong(Exception):
    """A path says something else than plain passes."""


@dataclass(frozen=True)
class Texts:
    """``long`` and ``short`` go on for ``following`` tokens behind the prompts that they begin with. ``begun`` tokens of the
    long one are read before; a prefix is at least ``shortest`` long, and one of ``trunk`` is read where it lies."""

    long: Text
    short: Text
    following: int = 4
    begun: int = 12
    shortest: int = 5
    trunk: int = 8

    @property
    def prompts(self) -> tuple[Text, Text]:
        return self.long[: -self.following], self.short[: -self.following]


def texts_for(config: Any, vocabulary: int) -> Texts:
    """Of tokens without a meaning of their own: those of a picture would want a picture."""
    special = set(_special(config.to_dict()))
    chosen = [token for token in ((7 * place + 11) % vocabulary for place in range(200)) if token not in special]
    tokens = chosen or list(range(vocabulary))
    return Texts(
        tuple(tokens[place % len(tokens)] for place in range(21)), tuple(tokens[-place % len(tokens)] for place in range(9))
    )


def _special(settings: Mapping[str, Any]) -> list[int]:
    tokens: list[int] = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            tokens += _special(value)
        elif "token" in str(key) and isinstance(value, int):
            tokens.append(value)
        elif "token" in str(key) and isinstance(value, list):
            tokens += [one for one in value if isinstance(one, int)]
    return tokens


@dataclass
class Reference:
    """What plain passes came to at each token of the long text and of the short one, (tokens, numbers), and the states there.
    ``single``: whether the model computes in single precision or better."""

    long: Tensor
    short: Tensor
    states: dict[StateHook, tuple[Tensor, Tensor]]
    single: bool

    def same(self, got: Tensor, expected: Tensor) -> None:
        if got.shape != expected.shape:
            raise Wrong(f"its shape, {tuple(got.shape)} in the place of {tuple(expected.shape)}")
        if not close(got, expected, self.single):
            raise Wrong(f"{float(_apart(got, expected).max()):.1e}")

    def ends(self, logits: Tensor, states: Mapping[StateHook, Tensor], places: Sequence[tuple[bool, int]]) -> None:
        """Rows stand at these ``places``: whether in the long text, and at which token."""
        self.same(logits, torch.stack([(self.long if long else self.short)[at] for long, at in places]))
        for hook, (in_long, in_short) in self.states.items():
            self.same(states[hook], torch.stack([(in_long if long else in_short)[at] for long, at in places]))


def close(got: Tensor, expected: Tensor, single: bool) -> bool:
    """Whether numbers (positions, size) are the same. In 16 bits rounding alone comes to percents, and may send a token to
    another expert: there the mean of the positions counts."""
    apart = _apart(got, expected)
    return bool(apart.max() <= _CLOSE if single else apart.mean() <= _CLOSE_IN_16_BITS)


def _apart(got: Tensor, expected: Tensor) -> Tensor:
    """By position, of its norm."""
    wanted = expected.double()
    apart: Tensor = torch.linalg.vector_norm(got.double() - wanted, dim=-1)
    size: Tensor = torch.linalg.vector_norm(wanted, dim=-1)
    return apart / size.clamp(min=1e-12)


def compare(network: Network, path: DecodePath, texts: Texts, reference: Reference) -> None:
    """Raises Wrong where the path differs; else whatever the library raises."""
    wanted, network.wanted = network.wanted, frozenset(reference.states)
    try:
        _go_on(network, path, texts, reference)
        _look_ahead(path, texts, reference)
        path.forget()
        _read_alone(network, path, texts, reference)
    finally:
        network.wanted = wanted
        path.clear()


def _go_on(network: Network, path: DecodePath, texts: Texts, reference: Reference) -> None:
    """Read prompts side by side, in pieces where that is the path's way, and go on from them."""
    prompts = {True: texts.long[: texts.begun], False: texts.prompts[1]}
    for group in ((True, False),) if path.together else ((True,), (False,)):
        logits, states = run_to_end(path.admit([prompts[long] for long in group]))
        places = [(long, len(prompts[long]) - 1) for long in group]
        reference.ends(logits, states, places)
        # Every row goes on as two; then one of these is left of each, in another order.
        orders = ([row for row in range(len(group)) for _ in range(2)], list(range(2 * len(group)))[::-2], None)
        for order in orders:
            if order is not None:
                path.keep(torch.tensor(order, device=network.device))
                places = [places[row] for row in order]
            places = [(long, at + 1) for long, at in places]
            fed = torch.tensor([(texts.long if long else texts.short)[at] for long, at in places], device=network.device)
            reference.ends(*path.step(fed), places)
        path.clear()


def _look_ahead(path: DecodePath, texts: Texts, reference: Reference) -> None:
    """Continuations of several tokens after prompts, of which one goes on from what was read."""
    long, short = texts.prompts
    reading = path.read([long, short])
    reference.same(reading.logits, torch.stack([reference.long[len(long) - 1], reference.short[len(short) - 1]]))
    fed = [(0, texts.long[len(long) :]), (1, texts.short[len(short) :]), (1, texts.short[len(short) :][:2])]
    followed = reading.follow([at for at, _ in fed], [tokens for _, tokens in fed])
    for (at, tokens), got in zip(fed, followed, strict=True):
        begins = len((long, short)[at])
        reference.same(got, (reference.long, reference.short)[at][begins : begins + len(tokens)])
    reading.close()


def _read_alone(network: Network, path: DecodePath, texts: Texts, reference: Reference) -> None:
    """Prompts without a cache, side by side where that is the path's way."""
    prompts, most = texts.prompts, sum(map(len, texts.prompts)) * 2 if path.together else 0
    if not reference.states:
        for places, logits in network.ahead(prompts, most):
            reference.ends(logits, {}, [(place == 0, len(prompts[place]) - 1) for place in places])
    for places, states in network.ends(prompts, most) if reference.states else ():
        for hook, expected in reference.states.items():
            reference.same(states[hook], torch.stack([expected[place][len(prompts[place]) - 1] for place in places]))
