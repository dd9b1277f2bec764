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
    """Messages as one text, by a tokenizer's chat template. Tried once where it is made.

    Raises InvalidInput for a template that cannot be read, refuses what it is given, or does not end."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self(TRIAL)

    def __call__(self, messages: Sequence[Mapping[str, str]]) -> str:
        try:
            with _bounded(STEPS):
                # Reasoning models open a thinking block by default, which would come before any answer; others ignore the flag.
                text = self._tokenizer.apply_chat_template(
                    list(messages), tokenize=False, add_generation_prompt=True, enable_thinking=False
                )
        except ImportError:
            raise
        except Exception as error:  # noqa: BLE001 - a program of strangers may raise anything
            said = f"it runs on after {STEPS:,} steps" if isinstance(error, _Endless) else f"{type(error).__name__}: {error}"
            raise InvalidInput(
                f"the model's chat template fails: {said[:300]}. Expected one that writes messages of a user and an assistant, "
                "in turn. Mend chat_template in the model's folder, or do without: <--set model.renderer=plain>."
            ) from None
        return str(text)


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
