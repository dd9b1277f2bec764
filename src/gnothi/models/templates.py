"""Chat templates are programs that come with a model: they run in a sandbox (transformers'), and for so long only."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from gnothi.errors import InvalidInput

STEPS = 1_000_000
"""Lines that a template may run for one prompt; usual ones run some dozens a message."""
TRIAL = ({"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ann"}, {"role": "user", "content": "And who?"})


class _Endless(Exception):
    pass


class Template:
    """Messages as one text, by a tokenizer's chat template. Tried once where it is made: those of models that also see or hear
    may take what is said in parts, and leave out a plain text without a word.

    Raises InvalidInput for a template that cannot be read, refuses what it is given, leaves it out, or does not end."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._in_parts = False
        try:
            self._try()
        except InvalidInput as error:
            self._in_parts = True
            try:
                self._try()
            except InvalidInput:
                raise error from None

    def _try(self) -> None:
        text = self(TRIAL)
        if left := [message["content"] for message in TRIAL if message["content"] not in text]:
            raise _failed(f"it leaves out what is said ({left[0]!r})")

    def __call__(self, messages: Sequence[Mapping[str, str]]) -> str:
        try:
            with _bounded(STEPS):
                # Reasoning models open a thinking block by default, which would come before any answer; others ignore the flag.
                text = self._tokenizer.apply_chat_template(
                    [self._given(message) for message in messages],
                    tokenize=False,
                    add_generation_prompt=True,
                    enable_thinking=False,
                )
        except ImportError:
            raise
        except Exception as error:  # noqa: BLE001 - a program of strangers may raise anything
            said = f"it runs on after {STEPS:,} steps" if isinstance(error, _Endless) else f"{type(error).__name__}: {error}"
            raise _failed(said[:300]) from None
        return str(text)

    def _given(self, message: Mapping[str, str]) -> dict[str, Any]:
        said = message["content"]
        return {**message, "content": [{"type": "text", "text": said}] if self._in_parts else said}


def _failed(said: str) -> InvalidInput:
    return InvalidInput(
        f"the model's chat template fails: {said}. Expected one that writes messages of a user and an assistant, in turn. Mend "
        "chat_template in the model's folder, or do without: <--set model.renderer=plain>."
    )


@contextmanager
def _bounded(steps: int) -> Iterator[None]:
    """Raise _Endless in this thread after so many lines of Python."""
    left = steps

    def line(frame: FrameType, event: str, _: object) -> Any:  # noqa: ARG001 - what sys.settrace calls
        nonlocal left
        left -= 1
        if left < 0:
            raise _Endless
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        yield
    finally:
        sys.settrace(before)
