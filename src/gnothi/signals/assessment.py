"""Does a model know an answer? It does if it gives the same one in most of several tries (KEQA, section 3.3, algorithm 1).

Tries can be concurrent and stop early at once: a first wave of as many tries as must agree for the answer to count as known
is needed whatever comes out of it, and each further wave is what the largest group still lacks. So no try is wasted where the
model knows, there are at most a few waves, and each is one request for several samples, which reads the prompt once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from gnothi import events
from gnothi.concurrency import gather
from gnothi.protocols import LanguageModel
from gnothi.seeding import derive
from gnothi.signals.grouping import Groups, Tally, needed
from gnothi.signals.replies import normalized, says_nothing
from gnothi.types import Decoding, Prompt

Schedule = Literal["waves", "at_once", "one_by_one", "in_turn"]
STOPS_EARLY: tuple[Schedule, ...] = ("waves", "one_by_one")
_SINGLY: tuple[Schedule, ...] = ("one_by_one", "in_turn")


@dataclass(frozen=True, slots=True)
class Consensus:
    """The answer most tries gave (empty where all were unknown) and whether enough of them did.

    ``disagreement`` is 1 - T_c, the largest group's share of the planned tries, in [0, 1]: an upper bound where the tries
    ended early, for those never made count as dissent."""

    answer: str
    known: bool
    disagreement: float


Judge = Callable[[str, str, str], Awaitable[bool]]
"""Of a question and two answers to it, whether they mean the same."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """Asks several times, groups the answers by meaning and decides.

    ``extract`` takes the answer out of a reply. ``schedule``: ``waves`` as above; ``at_once`` makes all tries in one request
    and never stops early; ``in_turn`` makes all, one after the other, as published; ``one_by_one`` stops as soon as the outcome
    is settled. How tries are made never changes whether given answers count as known.

    Emits Grouped, then Decided with kind ``retrieve``, the disagreement against 1 - alpha, and ``retrieve`` or ``trust``.
    """

    judge: Judge
    extract: Callable[[str], str]
    tries: int = 5
    alpha: float = 0.8
    schedule: Schedule = "waves"

    async def __call__(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Consensus:
        """``decoding`` is that of one try: with some randomness, else all tries agree."""
        groups = Groups()
        while wave := self._wave(tally := self._tally(groups)):
            # Every wave draws from a seed of its own: the same request again would give the same answers again.
            seeded = replace(decoding, seed=derive("try", prompt, decoding, tally.count))
            samples = await model.sample(prompt, wave, seeded)
            await self._group(prompt.question, groups, [self.extract(one.text) for one in samples.generations])
        return self._decide(prompt.question, groups)

    def _tally(self, groups: Groups) -> Tally:
        largest = groups.largest
        return Tally(largest.size if largest else 0, groups.count, needed(self.alpha, self.tries), self.tries)

    def _wave(self, tally: Tally) -> int:
        """How many tries to make now; 0 when the outcome is settled."""
        rest = self.tries - tally.count
        if self.schedule in ("at_once", "in_turn"):
            return rest if self.schedule == "at_once" else min(rest, 1)
        if tally.settled:
            return 0
        return 1 if self.schedule == "one_by_one" else tally.needed - tally.largest

    async def _group(self, question: str, groups: Groups, answers: Sequence[str]) -> None:
        """Add the answers in order. All requests that a wave may need of the judge are made at once, before the grouping."""
        pairs = [] if self.schedule in _SINGLY else _pairs(groups, answers)
        same = await gather(*(self.judge(question, *pair) for pair in pairs))
        verdicts = {(normalized(one), normalized(other)): verdict for (one, other), verdict in zip(pairs, same, strict=True)}

        async def look_up(anchor: str, answer: str) -> bool:
            verdict = verdicts.get((normalized(anchor), normalized(answer)))
            return await self.judge(question, anchor, answer) if verdict is None else verdict

        for answer in answers:
            await groups.add(answer, look_up)

    def _decide(self, question: str, groups: Groups) -> Consensus:
        tally = self._tally(groups)
        ranked = sorted(groups.groups, key=lambda group: -group.size)
        events.emit(events.Grouped(question, tuple((group.anchor, group.size) for group in ranked), groups.unknown, self.tries))
        disagreement = 1.0 - tally.largest / self.tries
        verdict = "trust" if tally.known else "retrieve"
        answer = ranked[0].anchor if ranked else ""
        events.emit(events.Decided("retrieve", "consistency", disagreement, 1.0 - self.alpha, verdict, question))
        return Consensus(answer, tally.known, disagreement)


def _pairs(groups: Groups, answers: Sequence[str]) -> list[tuple[str, str]]:
    """Each anchor with each answer of a new form, and these among themselves, the older answer first."""
    new: dict[str, str] = {}
    for answer in answers:
        if not says_nothing(answer) and not any(group.has(answer) for group in groups.groups):
            new.setdefault(normalized(answer), answer)
    return [*((group.anchor, answer) for group in groups.groups for answer in new.values()), *combinations(new.values(), 2)]
