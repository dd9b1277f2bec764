"""KEQA on the laboratory: does consistency tell what the model knows, and what does concurrency save?

Parts: known, speed (--part, repeat; default: both). --n questions, --json for programs. Questions are those that
`gnothi eval lab:KIND` takes (seed 0), unless --seed says otherwise. What KEQA's parts are
worth, its sweeps and its judge: `gnothi reproduce` with keqa, keqa_alpha, keqa_k and keqa/table2.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from gnothi import events, lab, methods
from gnothi.concurrency import gather
from gnothi.metrics import score
from gnothi.models import load_model, settings_class
from gnothi.models.wrappers import Wrapper
from gnothi.protocols import LanguageModel, Retriever
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.wrappers import Traced
from gnothi.seeding import question_scope
from gnothi.stats.auroc import auroc, auroc_interval
from gnothi.stats.intervals import mean_interval
from gnothi.types import Decoding, Generation, Prompt, Question, Samples, StateSpec

PARTS = ("known", "speed")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question under one method."""

    right: float
    usage: events.Usage
    decisions: tuple[events.Decided, ...]
    probability: float
    """Of the answer: the geometric mean over its tokens; meant where the method's uncertainty is the perplexity."""


class Bench:
    def __init__(self, model: LanguageModel, retriever: Retriever, n: int, seed: int) -> None:
        self.model, self.retriever, self.n, self.seed = model, retriever, n, seed

    def questions(self, kind: lab.Kind, n: int | None = None) -> list[Question]:
        return lab.questions(lab.world(), kind, n or self.n, self.seed)

    async def run(
        self, name: str, settings: Mapping[str, object], questions: Sequence[Question], model: LanguageModel | None = None
    ) -> list[Outcome]:
        """All questions at once."""
        method = methods.create(name, {"model": model or self.model, "retriever": self.retriever}, settings)

        async def one(question: Question) -> Outcome:
            with question_scope(self.seed, question.id), events.record() as recorded:
                answer = await method(question)
            decisions = tuple(event for event in recorded if isinstance(event, events.Decided))
            right = score(answer.text, question.answers)["em"]
            return Outcome(right, events.Usage.of(recorded), decisions, 1 / max(answer.uncertainty or 1.0, 1.0))

        return await gather(*(one(question) for question in questions))

    async def known(self) -> dict[str, Any]:
        """AUROC of the tries' disagreement for "the model was never shown this fact", and for "its answer is wrong"."""
        asked = self.questions("one_hop")
        settings = {"decompose": False, "k": 1}
        familiar = [question.metadata["familiarity"] for question in asked]
        direct = await self.run("direct", {}, asked)
        result: dict[str, Any] = {"n": len(asked), "familiarity": {level: familiar.count(level) for level in set(familiar)}}
        for schedule in ("at_once", "waves"):
            outcomes = await self.run("keqa", settings | {"schedule": schedule}, asked)
            doubt = [outcome.decisions[0].score or 0.0 for outcome in outcomes]
            clear = [place for place, level in enumerate(familiar) if level != "seldom"]
            result[schedule] = {
                "often against never": _auroc([doubt[i] for i in clear], [familiar[i] == "never" for i in clear]),
                "seen against never": _auroc(doubt, [level == "never" for level in familiar]),
                "greedy answer right against wrong": _auroc(doubt, [outcome.right < 1 for outcome in direct]),
                **{
                    f"retrieves where {level} seen": fmean(
                        outcome.decisions[0].verdict == "retrieve"
                        for outcome, one in zip(outcomes, familiar, strict=True)
                        if one == level
                    )
                    for level in ("often", "seldom", "never")
                },
            }
            if schedule == "at_once":  # all tries are made, so that T_c is known: the paper's figure 3
                result["probability of the answer by T_c"] = curve([1 - one for one in doubt], direct)
        return result

    async def speed(self) -> dict[str, Any]:
        """Wall time one request at a time, tries one by one as published, against concurrent; on this machine's model, and
        on the same model behind a delay of 200 ms a request, which stands in for a remote endpoint without rate limit."""
        result: dict[str, Any] = {}
        for kind in ("two_hop", "comparison"):
            asked = self.questions(kind, 12)
            for place, delay, rounds in (("in this process", 0.0, 3), ("200 ms away", 0.2, 1)):
                remote = Delayed(self.model, delay)
                one_by_one = {"schedule": "one_by_one"}
                sequential = await self._seconds(asked, OneAtATime(remote), one_by_one, together=False, rounds=rounds)
                single = await self._seconds(asked, remote, {}, together=False, rounds=rounds)
                at_once = await self._seconds(asked, remote, {"schedule": "at_once"}, together=False, rounds=rounds)
                together = await self._seconds(asked, remote, {}, together=True, rounds=rounds)
                result[f"{len(asked)} {kind}, {place}"] = {
                    "sequential": sequential,
                    "concurrent within a question": single,
                    "concurrent within a question, schedule=at_once": at_once,
                    "concurrent within and across questions": together,
                    "times faster, one question": sequential / single,
                    "times faster, one question, schedule=at_once": sequential / at_once,
                    "times faster, all questions": sequential / together,
                }
        return result

    async def _seconds(
        self, questions: Sequence[Question], model: LanguageModel, settings: Mapping[str, object], together: bool, rounds: int
    ) -> float:
        """Per question, the median of the rounds over all of them."""
        seconds = []
        for _ in range(rounds):
            started = time.perf_counter()
            for batch in [questions] if together else [[question] for question in questions]:
                await self.run("keqa", settings, batch, model)
            seconds.append((time.perf_counter() - started) / len(questions))
        return sorted(seconds)[rounds // 2]


class Delayed(Wrapper):
    """Every request takes a fixed time more, however many there are."""

    def __init__(self, model: LanguageModel, seconds: float) -> None:
        super().__init__(model)
        self._wait = seconds

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        await asyncio.sleep(self._wait)
        return await super().generate(prompt, decoding)

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        await asyncio.sleep(self._wait)
        return await super().sample(prompt, n, decoding, hidden)


class OneAtATime(Wrapper):
    """One request at a time, whatever a method sends at once."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model)
        self._turn = asyncio.Lock()

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        async with self._turn:
            return await super().generate(prompt, decoding)

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        async with self._turn:
            return await super().sample(prompt, n, decoding, hidden)


def _auroc(scores: Sequence[float], positive: Sequence[bool]) -> dict[str, Any]:
    return {"auroc": auroc(scores, positive), "interval": auroc_interval(scores, positive), "positive": sum(positive)}


def curve(agreement: Sequence[float], direct: Sequence[Outcome]) -> dict[str, dict[str, float]]:
    """By share of agreeing tries: how many questions, the mean probability of the greedy answer, and how often it is right."""
    found: dict[str, list[Outcome]] = {}
    for share, outcome in sorted(zip(agreement, direct, strict=True), key=lambda pair: pair[0]):
        found.setdefault(f"{share:.1f}", []).append(outcome)
    return {
        share: {"n": len(own), "probability": fmean(one.probability for one in own), "em": fmean(one.right for one in own)}
        for share, own in found.items()
    }


def row(rows: Sequence[Outcome]) -> dict[str, Any]:
    """Means over questions; searches and calls per question, ``searched`` the share of questions with a search."""
    return {
        "n": len(rows),
        "em": fmean(row.right for row in rows),
        "interval": mean_interval([row.right for row in rows]),
        "searches": fmean(row.usage.retrievals for row in rows),
        "searched": fmean(row.usage.retrievals > 0 for row in rows),
        "calls": fmean(row.usage.model_calls for row in rows),
        "tokens": fmean(row.usage.prompt_tokens + row.usage.generated_tokens for row in rows),
    }


async def measure(spec: str, n: int, seed: int, parts: Sequence[str]) -> dict[str, Any]:
    model = load_model(spec, settings_class(spec)(cache="off"))
    try:
        bench = Bench(model, Traced(BM25Index.in_memory(lab.passages(), "lab")), n, seed)
        return {part: await getattr(bench, part)() for part in parts}
    finally:
        await model.aclose()


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="lab")
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", action="append", choices=PARTS)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    results = asyncio.run(measure(given.model, given.n, given.seed, given.part or PARTS))
    if given.json:
        sys.stdout.write(json.dumps(results, indent=2) + "\n")
        return
    for part, result in results.items():
        sys.stdout.write(f"{part}\n")
        for path, value in _leaves(result):
            sys.stdout.write(f"  {' / '.join(path):<72} {value}\n")


def _leaves(value: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in _leaves(inner, (*path, str(key)))]
    numbers = value if isinstance(value, tuple | list) else [value]
    return [(path, " - ".join(f"{number:.4g}" if isinstance(number, float) else str(number) for number in numbers))]


if __name__ == "__main__":
    main(sys.argv[1:])
