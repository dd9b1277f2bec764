"""A model as a judge: a prompt that is to be answered by "Yes" or "No".

Where the model can score, its answer is read from the probabilities, whatever it would chat; else from its text, so that any
model can be one.
"""

from __future__ import annotations

import math

from gnothi.protocols import LanguageModel
from gnothi.signals.kinds.self_report import probability_of_yes
from gnothi.signals.replies import reply_says_yes
from gnothi.types import Decoding, Prompt

VERDICT = Decoding(max_tokens=10, stop=("\n",))
YES, NO = ("Yes", "yes", "YES"), ("No", "no", "NO")
"""Spellings of the two replies. The space before them, if any, is the renderer's."""


async def probability_says_yes(judge: LanguageModel, prompt: Prompt) -> float:
    """P(yes) among yes and no, each summed over its spellings; 0.5 when none is possible. Needs scoring."""
    scores = await judge.score(prompt, (*YES, *NO))
    logprobs = [score.logprob for score in scores]
    return probability_of_yes(_log_sum(logprobs[: len(YES)]), _log_sum(logprobs[len(YES) :]))


async def says_yes(judge: LanguageModel, prompt: Prompt) -> bool:
    """Whether yes is likelier than no as the judge's reply; of a judge that cannot score, or that was taught this very form of
    reply (it has tasks of its own), whether its greedy reply says yes."""
    if judge.capabilities.scoring and judge.profile.tasks is None:
        return await probability_says_yes(judge, prompt) > 0.5
    return reply_says_yes((await judge.generate(prompt, VERDICT)).text)


def _log_sum(logprobs: list[float]) -> float:
    """log of the sum of probabilities, from their logarithms."""
    most = max(logprobs)
    return most if most == -math.inf else most + math.log(sum(math.exp(logprob - most) for logprob in logprobs))
