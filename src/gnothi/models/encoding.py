"""Prompts and continuations as token ids, alike for every backend that has the model's tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnothi.errors import ModelUnavailable
from gnothi.models.rendering import Renderer, join

# Fewer texts are tokenised whole.
_MANY = 16
# Characters of a text's end that tell how it goes on. Of their tokens, so many at the beginning may be others than in the whole
# text, and so many behind these must not.
_WINDOW = 48
_CHANGED, _AGREE = 4, 4


class Encoder:
    """``tokenizer`` is one of ``transformers``; ``eos`` are the ids that end a continuation. ``apart``: a continuation does not
    go on with the prompt's text but begins one of its own, as a decoder's reply to what an encoder has read. ``table``: how
    many tokens the model knows, where that is known; a tokenizer may know more, and sound ones never use them."""

    def __init__(
        self, tokenizer: Any, renderer: Renderer, eos: Sequence[int], apart: bool = False, table: int | None = None
    ) -> None:
        self._tokenizer = tokenizer
        self._renderer = renderer
        self._eos = tuple(eos)
        self._apart = apart
        self._table = table

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of rendered prompts, at least one each."""
        if not texts:
            return []
        # The greedy answer and the samples of a question arrive with the same text.
        distinct = list(dict.fromkeys(texts))
        encoded = dict(zip(distinct, self._alike(distinct) or self._whole(distinct), strict=True))
        return [encoded[text] for text in texts]

    def _whole(self, texts: Sequence[str]) -> list[list[int]]:
        special = self._renderer.special_tokens
        rows = self._tokenizer(list(texts), add_special_tokens=special, return_attention_mask=False)["input_ids"]
        # A prompt must not be closed, and must not be empty: the first token's probability needs something before it.
        start = self._tokenizer.bos_token_id if self._tokenizer.bos_token_id is not None else (self._eos or (0,))[0]
        cut = [row[:-1] if special and row and row[-1] in self._eos else row for row in rows]
        return self._known([list(row) or [start] for row in cut])

    def _alike(self, texts: Sequence[str]) -> list[list[int]] | None:
        """Many texts that begin with the same demonstrations: these are tokenised once. None where that cannot be done.

        Which tokens a text becomes is decided near by. So the tokens of a text's end are those at the end of its tokens,
        but for the first few, which the cut may have changed: some more must agree.
        """
        if len(texts) < _MANY:
            return None
        common = _agreed(max(texts)[::-1], min(texts)[::-1])  # those between begin alike, too
        if common < 4 * _WINDOW:
            return None
        (first,) = self._whole(texts[:1])
        ends = self._plain([text[common - 2 * _WINDOW :] for text in texts])
        agreed = _agreed(first, ends[0])
        changed = len(ends[0]) - agreed
        joined = ends[0][changed : changed + _AGREE]
        if changed > _CHANGED or any(end[changed : changed + _AGREE] != joined for end in ends) or len(joined) < _AGREE:
            return None
        before = first[: len(first) - agreed]
        return [before + end[changed:] for end in ends]

    def _plain(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        rows = self._tokenizer(list(texts), add_special_tokens=False, return_attention_mask=False)["input_ids"]
        return self._known([list(row) for row in rows])

    def _known(self, rows: list[list[int]]) -> list[list[int]]:
        """``rows``. Raises ModelUnavailable for a token that the model has no place for."""
        if self._table is not None and (most := max((max(row) for row in rows if row), default=0)) >= self._table:
            raise ModelUnavailable(
                f"the tokenizer gives token {most}, and the model knows {self._table} (0 to {self._table - 1}): they do not "
                "belong together. Copy the model's files again, all of one version."
            )
        return rows

    def continuations(self, text: str, ids: Sequence[int], continuations: Sequence[str]) -> list[list[int]]:
        """Tokens of each continuation as they follow those of the prompt ``text``, which are ``ids``."""
        return self.continuations_of([text], [ids], [continuations])[0]

    def continuations_of(
        self, texts: Sequence[str], ids: Sequence[Sequence[int]], continuations: Sequence[Sequence[str]]
    ) -> list[list[list[int]]]:
        """``continuations`` of many prompts at a time: the tokenizer is quicker over one long list than over short ones."""
        pairs = [(number, continuation) for number, several in enumerate(continuations) for continuation in several]
        results: list[list[list[int]]] = [[] for _ in texts]
        if not pairs:
            return results
        if self._apart:
            distinct = list(dict.fromkeys(continuation for _, continuation in pairs))
            alone = dict(zip(distinct, self._plain(distinct), strict=True))
            return [[list(alone[continuation]) for continuation in several] for several in continuations]
        near = self._near([(texts[number], ids[number], continuation) for number, continuation in pairs])
        far = [place for place, tokens in enumerate(near) if tokens is None]
        joint = self.encode([join(texts[number], continuation) for number, continuation in (pairs[place] for place in far)])
        distinct = list(dict.fromkeys(pairs[place][1] for place in far))
        alone = dict(zip(distinct, self._plain(distinct), strict=True))
        for place, whole in zip(far, joint, strict=True):
            number, continuation = pairs[place]
            start = list(ids[number])
            near[place] = whole[len(start) :] if whole[: len(start)] == start else alone[continuation]
        for (number, _), tokens in zip(pairs, near, strict=True):
            assert tokens is not None
            results[number].append(list(tokens))
        return results

    def _near(self, items: Sequence[tuple[str, Sequence[int], str]]) -> list[list[int] | None]:
        """The tokens of continuations (text, its tokens, continuation) from the text's end alone, which is the same for many;
        None where the end says too little."""
        keys = [(text[-_WINDOW:], continuation) for text, _, continuation in items]
        distinct = list(dict.fromkeys(keys))
        ends = list(dict.fromkeys(end for end, _ in distinct))
        before = dict(zip(ends, self._plain(ends), strict=True))
        after = dict(zip(distinct, self._plain([join(end, continuation) for end, continuation in distinct]), strict=True))
        results: list[list[int] | None] = []
        for key, (text, ids, _) in zip(keys, items, strict=True):
            end, both = before[key[0]], after[key]
            agreed = _agreed(ids, end)
            certain = len(text) > _WINDOW and agreed >= _AGREE and len(end) - agreed <= _CHANGED
            results.append(both[len(end) :] if certain and both[: len(end)] == end else None)
        return results


def _agreed(whole: Sequence[object], end: Sequence[object]) -> int:
    """How many of the last items are the same."""
    most = min(len(whole), len(end))
    return next((count for count in range(most) if whole[-1 - count] != end[-1 - count]), most)


def end_tokens(*sources: Any) -> tuple[int, ...]:
    """Ids that end a continuation, in the order of ``sources`` (tokenizer, generation settings, configuration). Raises
    ModelUnavailable for what is no id."""
    eos: list[int] = []
    for source in sources:
        ids = getattr(source, "eos_token_id", None)
        eos += ids if isinstance(ids, list | tuple) else [ids] if ids is not None else []
    if odd := [one for one in eos if not isinstance(one, int)]:
        raise ModelUnavailable(
            f"the model's files name {odd[0]!r:.40} as eos_token_id, expected a number or a list of numbers. Correct its "
            "generation_config.json or config.json, or copy them again."
        )
    return tuple(dict.fromkeys(eos))
