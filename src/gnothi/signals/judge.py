"""A model as a judge: a prompt that is to be answered by "Yes" or "No". Text is enough, so any model can be one."""

from __future__ import annotations

from gnothi.protocols import LanguageModel
from gnothi.signals.replies import reply_says_yes
from gnothi.types import Decoding, Prompt

VERDICT = Decoding(max_tokens=10, stop=("\n",))


async def says_yes(judge: LanguageModel, prompt: Prompt) -> bool:
    """Whether the judge's greedy reply begins with "Yes"; anything else is a no."""
    return reply_says_yes((await judge.generate(prompt, VERDICT)).text)
