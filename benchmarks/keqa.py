"""KEQA on the laboratory: does consistency tell what the model knows, and what does concurrency save?

Parts: known, speed (--part, repeat; default: both); judges (table 2: --judge MODEL, repeat; --questions SET): pairs of answers,
labelled anew by the model itself in place of GPT-3.5, and how many of these labels each judge gives. --n questions, --json for
programs. Questions are those that `gnothi eval lab:KIND` takes (seed 0), unless --seed says otherwise. What KEQA's parts are
worth, and its sweeps: `gnothi reproduce` with keqa, keqa_alpha and keqa_k.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from gnothi import events, lab, methods
from gnothi.concurrency import gather
from gnothi.methods.steps.parsing import read_reply
from gnothi.methods.steps.prompts import ANSWER, EQUIVALENT, ask
from gnothi.methods.steps.settings import SHORT_STOPS
from gnothi.metrics import score
from gnothi.metrics.bertscore import BertScore
from gnothi.models import load_model, settings_class
from gnothi.models.wrappers import Wrapper
from gnothi.protocols import LanguageModel, Retriever
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.wrappers import Traced
from gnothi.seeding import question_scope
from gnothi.session.data import load_questions
from gnothi.signals.judge import says_yes
from gnothi.signals.replies import normalized, says_nothing
from gnothi.stats.auroc import auroc, auroc_interval
from gnothi.stats.intervals import mean_interval
from gnothi.types import Decoding, Generation, Prompt, Question, Samples, StateSpec

PARTS = ("known", "speed")
JUDGES = "judges"
TRIES = 5


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
        self, name: str, settings: Mapping[str, object], asked: Sequence[Question], model: LanguageModel | None = None
    ) -> list[Outcome]:
        """All questions at once."""
        method = methods.create(name, {"model": model or self.model, "retriever": self.retriever}, settings)

        async def one(question: Question) -> Outcome:
            with question_scope(self.seed, question.id), events.record() as recorded:
                answer = await method(question)
            decisions = tuple(event for event in recorded if isinstance(event, events.Decided))
            right = score(answer.text, question.answers)["em"]
            return Outcome(right, events.Usage.of(recorded), decisions, 1 / max(answer.uncertainty or 1.0, 1.0))

        return await gather(*(one(question) for question in asked))

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
        self, asked: Sequence[Question], model: LanguageModel, settings: Mapping[str, object], together: bool, rounds: int
    ) -> float:
        """Per question, the median of the rounds over all of them."""
        seconds = []
        for _ in range(rounds):
            started = time.perf_counter()
            for batch in [asked] if together else [[question] for question in asked]:
                await self.run("keqa", settings, batch, model)
            seconds.append((time.perf_counter() - started) / len(asked))
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


async def judges(
    model: LanguageModel,
    named: Mapping[str, LanguageModel],
    asked: Sequence[Question],
    alike: Callable[[Sequence[str], Sequence[str]], Sequence[float]] | None = None,
) -> dict[str, Any]:
    """Of each question the first of five sampled answers beside each other one that is spelt otherwise. ``all alike``: the
    larger share of the two labels, which a judge has that always says the same. ``alike`` (BERTScore) calls two the same from
    the threshold on that is best for these very pairs: the paper prints none."""
    decoding = Decoding(32, temperature=1.0, stop=SHORT_STOPS)

    async def pairs(question: Question) -> list[Prompt]:
        with question_scope(0, question.id):
            samples = await model.sample(ask(ANSWER, question), TRIES, decoding)
        texts = [text for one in samples.generations if not says_nothing(text := read_reply(one.text, question.text).answer)]
        forms = {normalized(text): text for text in reversed(texts)}
        others = [text for form, text in forms.items() if texts and form != normalized(texts[0])]
        return [Prompt(EQUIVALENT, question.text, choices=(texts[0], other)) for other in others]

    found = [prompt for own in await gather(*map(pairs, asked)) for prompt in own]
    labels = [await says_yes(model, prompt) for prompt in found]
    result: dict[str, Any] = {"questions": len(asked), "pairs": len(found), "the same": sum(labels)}
    result["all alike"] = max(sum(labels), len(labels) - sum(labels)) / max(len(labels), 1)
    for name, judge in named.items():
        agree = [float(await says_yes(judge, prompt) == label) for prompt, label in zip(found, labels, strict=True)]
        result[name] = {"right": fmean(agree) if agree else None, "interval": mean_interval(agree)}
    if alike is not None and found:
        scores = alike([one.choices[0] for one in found], [one.choices[1] for one in found])
        right = [fmean((score >= bar) == label for score, label in zip(scores, labels, strict=True)) for bar in (*scores, 2.0)]
        result["BERTScore"] = {"right, at its best threshold": max(right), "AUROC": auroc(scores, labels)}
    return result


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


async def judged(
    spec: str, named: Sequence[str], questions: str, n: int, bertscore: str | None, layer: int | None
) -> dict[str, Any]:
    alike = BertScore(bertscore, layer) if bertscore else None
    async with AsyncExitStack() as stack:
        opened = {one: load_model(one, settings_class(one)(cache="off")) for one in dict.fromkeys([spec, *named])}
        for model in opened.values():
            stack.push_async_callback(model.aclose)
        return await judges(opened[spec], {one: opened[one] for one in named}, load_questions(questions)[:n], alike)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="lab")
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", action="append", choices=(*PARTS, JUDGES))
    parser.add_argument("--judge", action="append", default=[])
    parser.add_argument("--questions", default="lab:one_hop")
    parser.add_argument("--bertscore", metavar="MODEL", help="roberta-large, say; needs gnothi[bertscore]")
    parser.add_argument("--layer", type=int, help="of --bertscore, where its package does not know the model")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    parts = given.part or PARTS
    results = asyncio.run(measure(given.model, given.n, given.seed, [part for part in parts if part != JUDGES]))
    if JUDGES in parts:
        results[JUDGES] = asyncio.run(judged(given.model, given.judge, given.questions, given.n, given.bertscore, given.layer))
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
