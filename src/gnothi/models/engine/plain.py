"""The decode path that is right wherever a model runs at all: every token costs a pass over the whole text, without a cache.

It is slow, and what the other paths are compared with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from gnothi.models.engine.passes import Network
from gnothi.models.engine.path import DecodePath, PrefillSteps
from gnothi.models.engine.states import Captured

Text = tuple[int, ...]


class Plain(DecodePath):
    """Rows are texts."""

    name = "plain"

    def __init__(self, network: Network) -> None:
        self._network = network
        self._texts: list[Text] = []

    @property
    def cached_tokens(self) -> int:
        return 0

    def room(self, new: int) -> int:  # noqa: ARG002 - nothing is held
        return 0

    def admit(self, prompts: Sequence[Text]) -> PrefillSteps[tuple[Tensor, Captured]]:
        ends = []
        for number, prompt in enumerate(prompts):
            if number:
                yield
            ends.append(self._end(prompt))
            self._network.read_tokens += len(prompt)
        self._texts += prompts
        return _stacked(ends)

    def step(self, tokens: Tensor) -> tuple[Tensor, Captured]:
        self._texts = [(*text, token) for text, token in zip(self._texts, tokens.tolist(), strict=True)]
        return _stacked([self._end(text) for text in self._texts])

    def keep(self, rows: Tensor) -> None:
        self._texts = [self._texts[row] for row in rows.tolist()]

    def clear(self) -> None:
        self._texts = []

    def read(self, prompts: Sequence[Text]) -> Reading:
        return Reading(self._network, prompts)

    def ahead(self, prompts: Sequence[Text], tokens: int) -> Iterator[tuple[list[int], Tensor]]:  # noqa: ARG002
        for place, prompt in enumerate(prompts):
            self._network.read_tokens += len(prompt)
            yield [place], self._end(prompt)[0]

    def ends(self, prompts: Sequence[Text], tokens: int) -> Iterator[tuple[list[int], Captured]]:  # noqa: ARG002
        for place, prompt in enumerate(prompts):
            self._network.read_tokens += len(prompt)
            yield [place], self._end(prompt)[1]

    def _end(self, text: Text) -> tuple[Tensor, Captured]:
        """Logits (1, vocabulary) and states (1, hidden size) after a text."""
        logits, states = self._network.plain(text)
        return logits[:, -1].clone(), {hook: state[:, -1].clone() for hook, state in states.items()}


def _stacked(ends: Sequence[tuple[Tensor, Captured]]) -> tuple[Tensor, Captured]:
    states = {hook: torch.cat([one[hook] for _, one in ends]) for hook in ends[0][1]}
    return torch.cat([logits for logits, _ in ends]), states


class Reading:
    """``path.Reading``. Nothing is held of the prompts."""

    def __init__(self, network: Network, prompts: Sequence[Text]) -> None:
        self._network = network
        self._prompts = list(prompts)
        self.logits = torch.cat([network.plain(prompt)[0][:, -1] for prompt in prompts])

    def follow(self, index: Sequence[int], tokens: Sequence[Sequence[int]]) -> list[Tensor]:
        texts = [(*self._prompts[at], *reply) for at, reply in zip(index, tokens, strict=True)]
        return [self._network.plain(text)[0][0, -len(reply) :] for text, reply in zip(texts, tokens, strict=True)]

    def close(self) -> None:
        """Nothing outlives the object."""
