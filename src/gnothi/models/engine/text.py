"""From token ids to text, cheaply while a continuation grows and exactly when it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from gnothi.models.thoughts import pieces
from gnothi.types import Token

# Decoding the end of the prompt along gives a continuation the leading space (or not) that it has in context.
CONTEXT_TOKENS = 8
_BROKEN = "\ufffd"


class Detokenizer:
    """Text of continuations under a ``transformers`` tokenizer. Of special tokens only those that mark thoughts have text."""

    def __init__(self, tokenizer: Any) -> None:
        # The library's own wrapper around a fast tokenizer takes most of the time of decoding a few tokens.
        self._fast = getattr(tokenizer, "backend_tokenizer", None)
        self._tokenizer = tokenizer
        special = {str(token): number for number, token in _added(tokenizer).items() if token.special}
        self._marks = {special[piece]: piece for piece in pieces(special)}
        self._pieces: dict[int, str] = {}
        self._anchor = self._find_anchor()
        self._anchor_text = self.decode([self._anchor])

    def decode(self, ids: Sequence[int]) -> str:
        if not self._marks:
            return self._decode(ids)
        # Text and marks in turn.
        parts = groupby(ids, key=lambda token: self._marks.get(token, ""))
        return "".join(mark * len(list(run)) if mark else self._decode(list(run)) for mark, run in parts)

    def made_of_marks(self, texts: Sequence[str]) -> bool:
        """Whether one of these contains the text of a special token."""
        return any(mark in text for mark in self._marks.values() for text in texts)

    def _decode(self, ids: Sequence[int]) -> str:
        if self._fast is not None:
            return str(self._fast.decode(list(ids), skip_special_tokens=True))
        text = self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return str(text)

    def piece(self, token: int) -> str:
        """The token's text in the middle of other text. The pieces of most continuations add up to their text, but not
        always (bytes of one character spread over tokens), so this serves to notice a stop string, not to build a result."""
        text = self._pieces.get(token)
        if text is None:
            text = self._pieces[token] = self.decode([self._anchor, token])[len(self._anchor_text) :]
        return text

    def text(self, context: Sequence[int], ids: Sequence[int]) -> str:
        """What ``ids`` add to a text that ends with the tokens ``context``."""
        before = self.decode(context)
        whole = self.decode([*context, *ids])
        return whole[len(before) :] if whole.startswith(before) else self.decode(ids)

    def split(self, context: Sequence[int], ids: Sequence[int], text: str) -> list[str]:
        """The share of each token in ``text``, the exact text of ``ids``: the shares' concatenation is the text."""
        pieces = [self.piece(token) for token in ids]
        if "".join(pieces) == text:
            return pieces
        pieces, done = [], 0
        for count in range(1, len(ids) + 1):
            partial = text if count == len(ids) else self.text(context, ids[:count]).rstrip(_BROKEN)
            # A character whose bytes are not complete yet belongs to the token that completes it.
            reached = len(partial) if text.startswith(partial) else done
            pieces.append(text[done : max(done, reached)])
            done = max(done, reached)
        return pieces

    def _find_anchor(self) -> int:
        """An ordinary token with plain text, to decode others after."""
        for token in range(len(self._tokenizer)):
            text = self.decode([token]).strip()
            if text.isascii() and text.isalnum():
                return token
        return 0


def _added(tokenizer: Any) -> Mapping[int, Any]:
    tokens: Mapping[int, Any] = getattr(tokenizer, "added_tokens_decoder", {})
    return tokens


class StopWatch:
    """Notices stop strings in growing continuations that share the same ``stop``."""

    def __init__(self, stop: tuple[str, ...], detokenizer: Detokenizer) -> None:
        self.stop = stop
        self._detokenizer = detokenizer
        self._memory = max((len(text) for text in stop), default=1) - 1
        # Pieces of characters beyond ASCII may be broken in two, so such stops need the exact text at every token.
        self._by_pieces = all(text.isascii() for text in stop)

    def look(self, tail: str, token: int, context: Sequence[int], ids: Sequence[int]) -> tuple[str, bool]:
        """The new tail, and whether a stop string is complete. ``tail`` is what the last call returned, "" at first;
        ``ids`` are the continuation's tokens, the new one included."""
        recent = tail + self._detokenizer.piece(token)
        suspected = not self._by_pieces or any(text in recent for text in self.stop)
        hit = suspected and self.cut(self._detokenizer.text(context, ids)) is not None
        return (recent[-self._memory :] if self._memory else ""), hit

    def cut(self, text: str) -> int | None:
        """Where the first stop string begins, None where there is none."""
        places = [at for at in map(text.find, self.stop) if at >= 0]
        return min(places, default=None)


class Written(NamedTuple):
    """A finished continuation. ``cut`` says whether a stop string ended it."""

    text: str
    tokens: tuple[Token, ...]
    cut: bool


def write_out(
    detokenizer: Detokenizer,
    watch: StopWatch | None,
    context: Sequence[int],
    ids: Sequence[int],
    logprobs: Sequence[float],
    logsumexps: Sequence[float | None],
) -> Written:
    """Text and tokens of a continuation ``ids`` (without the end-of-sequence token) of a prompt that ends with ``context``."""
    text = detokenizer.text(context, ids)
    shares = detokenizer.split(context, ids, text)
    cut = watch.cut(text) if watch is not None else None
    tokens, length = [], 0
    for share, logprob, logsumexp, token in zip(shares, logprobs, logsumexps, ids, strict=False):
        if cut is not None and length >= cut:
            break
        share = share if cut is None else share[: cut - length]
        length += len(share)
        tokens.append(Token(share, logprob, logsumexp, token))
    return Written(text[:cut], tuple(tokens), cut is not None)
