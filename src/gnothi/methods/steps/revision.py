"""Internal knowledge held against external knowledge: the verifier of IEKR.

The paper feeds its reader "revised" internal knowledge (section 4.3) and initialises a verifier (5.2), but never says what the
verifier is asked; the instruction is ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from gnothi import events
from gnothi.methods.steps.prompts import REVISE
from gnothi.methods.steps.settings import LIST_STOPS
from gnothi.protocols import LanguageModel
from gnothi.signals.replies import says_nothing
from gnothi.types import Decoding, Passage, Prompt, Question

DRAFT = "Draft"


async def revise(
    model: LanguageModel, question: Question, internal: Sequence[Passage], external: Sequence[Passage], max_tokens: int
) -> tuple[Passage, ...]:
    """The internal knowledge, rewritten as one passage where facts contradict it; unchanged where the model says nothing.

    Emits ``events.Revised``."""
    before = " ".join(one.text for one in internal)
    draft = Passage("memory", before, DRAFT)
    prompt = Prompt(REVISE, question.text, (draft, *external), question.choices)
    reply = await model.generate(prompt, Decoding(max_tokens * len(internal), stop=LIST_STOPS))
    after = " ".join(reply.text.split())
    if says_nothing(after):
        after = before
    events.emit(events.Revised(before, after))
    return tuple(internal) if after == before else (Passage("memory:revised", after),)
