"""A question of a conversation, made to stand alone: "And where was she born?" names nobody to search for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gnothi import events
from gnothi.methods.steps.requirements import speaks
from gnothi.protocols import LanguageModel
from gnothi.types import Decoding, Demonstration, Passage, Prompt, Task

TURNS, TURN = 6, 600
"""Turns that are shown, and characters of each: what a follow-up refers to is near."""
_WHO = {"user": "User", "assistant": "Assistant"}


@dataclass(frozen=True, slots=True)
class Turn:
    """Something that was said before; ``role`` is user or assistant."""

    role: str
    text: str


def _as_passages(*turns: Turn) -> tuple[Passage, ...]:
    return tuple(
        Passage(f"turn {place}", one.text[:TURN], _WHO.get(one.role, one.role)) for place, one in enumerate(turns, start=1)
    )


STANDALONE = Task(
    "standalone",
    "The passages are a conversation. Write the last question again so that it can be understood without the conversation: "
    "put names in the place of words like he, she, it, there or that. Change nothing else. A question that already stands "
    "alone stays as it is. Do not answer it.",
    (
        Demonstration(
            "And where did she grow up?",
            "Where did Odile Varr grow up?",
            _as_passages(Turn("user", "Who planned the Dunmere Salt Tram?"), Turn("assistant", "Odile Varr [1]")),
        ),
        Demonstration(
            "How long is it?",
            "How long is the river Ulm?",
            _as_passages(Turn("user", "Which river flows through Brackwater?"), Turn("assistant", "the Ulm")),
        ),
        Demonstration(
            "Which metal is liquid at room temperature?",
            "Which metal is liquid at room temperature?",
            _as_passages(Turn("user", "Who was born first, Tomas Reill or Agathe Sorn?"), Turn("assistant", "Agathe Sorn")),
        ),
    ),
    answer_label="Standalone question:",
)


async def standalone(model: LanguageModel, question: str, history: Sequence[Turn]) -> tuple[str, tuple[str, ...]]:
    """The question by itself, by one greedy call, and warnings; as it came where the model knows no such task or says nothing.

    Emits Rephrased where it became another one."""
    if not speaks(model, STANDALONE):
        return question, (
            "This model was not taught to make a question stand alone: what was said before is not taken into account. Ask in "
            "full, or use a model that follows instructions.",
        )
    prompt = Prompt(STANDALONE, question, _as_passages(*history[-TURNS:]))
    reply = await model.generate(prompt, Decoding(max_tokens=100, stop=("\n",)))
    text = " ".join(reply.text.split()) or question
    if text != question:
        events.emit(events.Rephrased(question, text))
    return text, ()
