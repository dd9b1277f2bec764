"""Prompts and continuations as token ids, alike for every backend that has the model's tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnothi.models.rendering import Renderer, join


class Encoder:
    """``tokenizer`` is one of ``transformers``; ``eos`` are the ids that end a continuation. ``apart``: a continuation does not
    go on with the prompt's text but begins one of its own, as a decoder's reply to what an encoder has read."""

    def __init__(self, tokenizer: Any, renderer: Renderer, eos: Sequence[int], apart: bool = False) -> None:
        self._tokenizer = tokenizer
        self._renderer = renderer
        self._eos = tuple(eos)
        self._apart = apart

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of rendered prompts, at least one each."""
        if not texts:
            return []
        # The greedy answer and the samples of a question arrive with the same text.
        distinct = list(dict.fromkeys(texts))
        special = self._renderer.special_tokens
        rows = self._tokenizer(distinct, add_special_tokens=special, return_attention_mask=False)["input_ids"]
        # A prompt must not be closed, and must not be empty: the first token's probability needs something before it.
        start = self._tokenizer.bos_token_id if self._tokenizer.bos_token_id is not None else (self._eos or (0,))[0]
        cut = [row[:-1] if special and row and row[-1] in self._eos else row for row in rows]
        found = {text: list(row) or [start] for text, row in zip(distinct, cut, strict=True)}
        return [found[text] for text in texts]

    def continuations(self, text: str, ids: Sequence[int], continuations: Sequence[str]) -> list[list[int]]:
        """Tokens of each continuation as they follow those of the prompt ``text``, which are ``ids``."""
        return self.continuations_of([text], [ids], [continuations])[0]

    def continuations_of(
        self, texts: Sequence[str], ids: Sequence[Sequence[int]], continuations: Sequence[Sequence[str]]
    ) -> list[list[list[int]]]:
        """``continuations`` of many prompts at a time: the tokenizer is quicker over one long list than over short ones."""
        given = [(number, one) for number, several in enumerate(continuations) for one in several]
        found: list[list[list[int]]] = [[] for _ in texts]
        if not given:
            return found
        distinct = list(dict.fromkeys(one for _, one in given))
        alone = dict(zip(distinct, self._tokenizer(distinct, add_special_tokens=False)["input_ids"], strict=True))
        if self._apart:
            return [[list(alone[one]) for one in several] for several in continuations]
        joint = self.encode([join(texts[number], one) for number, one in given])
        for (number, one), whole in zip(given, joint, strict=True):
            start = list(ids[number])
            found[number].append(whole[len(start) :] if whole[: len(start)] == start else list(alone[one]))
        return found


def end_tokens(*sources: Any) -> tuple[int, ...]:
    """Ids that end a continuation, in the order of ``sources`` (tokenizer, generation settings, configuration)."""
    found: list[int] = []
    for source in sources:
        ids = getattr(source, "eos_token_id", None)
        found += ids if isinstance(ids, list | tuple) else [ids] if ids is not None else []
    return tuple(dict.fromkeys(found))
