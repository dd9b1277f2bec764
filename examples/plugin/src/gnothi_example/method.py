"""The best sentence: an answer from memory, or from one sentence that a search found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import gnothi
from gnothi.filtering.sentences import split


@gnothi.method
async def best_sentence(
    steps: gnothi.Steps,
    question: gnothi.Question,
    k: int = gnothi.setting(3, "Passages to look for the sentence in.", at_least=1),
    signal: str = gnothi.setting("hedging", "What tells how uncertain the answer from memory is."),
    threshold: float = gnothi.setting(0.05, "Look up above this uncertainty."),
) -> gnothi.Answer:
    """Answers from memory where its gate trusts that, else from the sentence that shares most words with the question."""
    draft = await steps.draft(question, signal=signal)
    if draft.uncertainty <= threshold:
        return draft
    return await steps.read(question, best_of(question.text, await steps.search(question, k)))


def best_of(question: str, passages: Sequence[gnothi.Passage]) -> tuple[gnothi.Passage, ...]:
    """The sentence with most words of the question, as a passage under its title; the first of equal ones, none without any."""
    asked = _words(question)
    sentences = [replace(passage, text=text) for passage in passages for text in split(passage.text)]
    best = max(sentences, key=lambda one: len(asked & _words(one.text)), default=None)
    return () if best is None else (best,)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
