"""Thoughts of models that think before they answer, told apart from the answer.

Families mark thoughts in their own ways; ``MARKS`` is the one table of them. A reply may hold both marks, the closing one alone
(where the prompt opened the block) or the opening one alone (where the length limit ended the thought).
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Marks:
    """What opens and closes a thought. ``closes`` may begin the answer's own channel, too."""

    name: str
    opens: str
    closes: str


MARKS: tuple[Marks, ...] = (
    Marks("think", "<think>", "</think>"),  # Qwen3, DeepSeek R1, GLM, SmolLM3, Phi-4-reasoning, MiniMax, Nemotron
    Marks("thinking", "<thinking>", "</thinking>"),
    Marks("thought", "<thought>", "</thought>"),  # EXAONE Deep
    Marks("reasoning", "<reasoning>", "</reasoning>"),
    Marks("seed", "<seed:think>", "</seed:think>"),  # Seed-OSS
    Marks("magistral", "[THINK]", "[/THINK]"),
    Marks("cohere", "<|START_THINKING|>", "<|END_THINKING|>"),
    Marks("kimi", "◁think▷", "◁/think▷"),
    Marks("open-thoughts", "<|begin_of_thought|>", "<|end_of_thought|>"),
    Marks("apertus", "<|inner_prefix|>", "<|inner_suffix|>"),
    Marks("gemma4", "<|channel>thought", "<channel|>"),
    Marks("harmony", "<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),  # gpt-oss
)

WRAPPERS = (
    ("<answer>", "</answer>"),  # Hunyuan
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),  # Command A
    ("<|begin_of_solution|>", "<|end_of_solution|>"),
)
"""What some models put around the answer that follows a thought."""


@dataclass(frozen=True, slots=True)
class Told:
    """A reply in its parts; the answer is ``text[start:end]`` of the whole.

    Where the thought never ended, ``closed`` is False and there is no answer."""

    thought: str
    answer: str
    start: int
    end: int
    closed: bool = True

    @property
    def thinks(self) -> bool:
        return self.start > 0 or not self.closed


def tell_apart(text: str, opened: bool = False) -> Told:
    """Thought and answer of a reply. ``opened`` says that the prompt opened the block, so that the reply begins inside it.

    A mark counts at the beginning of the reply, or, closing only, anywhere where no opening one stands before it: an answer
    that speaks about marks in its middle stays whole.
    """
    for marks in MARKS:
        opening = re.match(r"\s*" + re.escape(marks.opens), text)
        close = text.find(marks.closes, opening.end() if opening else 0)
        if opening is None and (close < 0 or marks.opens in text[:close]):
            continue
        begins = opening.end() if opening else 0
        if close < 0:
            return Told(text[begins:].strip(), "", len(text), len(text), closed=False)
        return _answered(text, text[begins:close], close + len(marks.closes))
    if opened:
        return Told(text.strip(), "", len(text), len(text), closed=False)
    return Told("", text, 0, len(text))


def _answered(text: str, thought: str, start: int) -> Told:
    """With the answer from ``start`` on, without white space before it and without what is put around it."""
    start += len(text[start:]) - len(text[start:].lstrip())
    end = len(text)
    for opens, closes in WRAPPERS:
        if text.startswith(opens, start):
            start += len(opens)
            start += len(text[start:]) - len(text[start:].lstrip())
            close = text.find(closes, start)
            end = close if close >= 0 else end
    return Told(_plain(thought), text[start:end], start, end)


_HARMONY = re.compile(r"<\|(?:end|start|channel|message|return)\|>(?:assistant|analysis|commentary)?")


def _plain(thought: str) -> str:
    """Without the marks of harmony's messages between a thought and the answer."""
    return _HARMONY.sub("", thought).strip()
