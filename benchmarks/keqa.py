"""KEQA on the laboratory: does consistency tell what the model knows, what does KEQA gain, and what does concurrency save?

Parts: known, accuracy, alpha, topk, speed (--part, repeat; default: all). --n questions each, --plots FOLDER for the sweeps'
pictures, --json for programs. Questions are those `gnothi eval lab:KIND` takes (seed 0), unless --seed says otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from gnothi import events, lab, methods
from gnothi.concurrency import gather
from gnothi.evaluation.metrics import score
from gnothi.evaluation.statistics import auroc, auroc_interval, mean_interval, paired_test
from gnothi.models import load_model, settings_class
from gnothi.models.wrappers import Wrapper
from gnothi.protocols import LanguageModel, Retriever
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.wrappers import Traced
from gnothi.seeding import question_scope
from gnothi.types import Decoding, Generation, Prompt, Question, Samples, StateSpec

PARTS = ("known", "accuracy", "alpha", "topk", "speed")
ALPHAS = (0.2, 0.4, 0.6, 0.8, 1.0)
TOP_K = (1, 2, 5, 10)
SETTINGS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "keqa": ("keqa", {}),
    "cot": ("cot", {}),
    "rag": ("rag", {}),
    "seakr": ("seakr", {}),
    "keqa assess=false": ("keqa", {"assess": False}),
    "keqa pick=false": ("keqa", {"pick": False}),
    "keqa decompose=false": ("keqa", {"decompose": False}),
    "keqa sentences=false": ("keqa", {"sentences": False}),
}
"""Name in the tables → method and settings. Ablations follow table 1 of the paper."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question under one method."""

    right: float
    usage: events.Usage
    decisions: tuple[events.Decided, ...]


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
            return Outcome(score(answer.text, question.answers)["em"], events.Usage.of(recorded), decisions)

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
        return result

    async def accuracy(self) -> dict[str, Any]:
        """Two-hop questions: exact match, searches and calls of KEQA, its ablations and others, with paired tests."""
        asked = self.questions("two_hop")
        outcomes = {name: await self.run(*how, asked) for name, how in SETTINGS.items()}
        right = {name: [one.right for one in rows] for name, rows in outcomes.items()}
        table = {name: row(rows) for name, rows in outcomes.items()}
        for name, values in right.items():
            if name != "keqa":
                test = paired_test(right["keqa"], values)
                table[name] |= {"keqa minus this": test.difference, "p": test.p, "test": test.test}
        return table

    async def alpha(self) -> dict[str, Any]:
        """Figure 4: exact match and searches over the threshold. At alpha 1 all tries must agree."""
        return {
            kind: {alpha: row(await self.run("keqa", {"alpha": alpha}, self.questions(kind))) for alpha in ALPHAS}
            for kind in ("one_hop", "two_hop")
        }

    async def topk(self) -> dict[str, Any]:
        """Figure 5: KEQA and "Full" (every quiz looked up, everything read) over the number of passages."""
        full = {"assess": False, "pick": False}
        return {
            kind: {
                name: {k: row(await self.run("keqa", settings | {"k": k}, self.questions(kind))) for k in TOP_K}
                for name, settings in (("KEQA", {}), ("Full", full))
            }
            for kind in ("one_hop", "two_hop")
        }

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


def plot(results: Mapping[str, Any], folder: Path) -> None:
    """Figures 4 and 5 of the paper, from the laboratory."""
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    if "alpha" in results:
        figure = Figure(figsize=(7.2, 2.9), layout="constrained")
        for axes, (kind, rows) in zip(figure.subplots(1, 2), results["alpha"].items(), strict=True):
            values = [float(alpha) for alpha in rows]
            _with_interval(axes, values, list(rows.values()), "exact match", "o-")
            axes.plot(values, [row["searches"] for row in rows.values()], "s--", label="searches a question")
            _label(axes, kind, "consistency score threshold α", values)
        figure.savefig(folder / "keqa-alpha.png", dpi=150, metadata={"Software": None})
    if "topk" in results:
        figure = Figure(figsize=(7.2, 2.9), layout="constrained")
        for axes, (kind, curves) in zip(figure.subplots(1, 2), results["topk"].items(), strict=True):
            for (name, rows), style in zip(curves.items(), ("o-", "s--"), strict=True):
                _with_interval(axes, [int(k) for k in rows], list(rows.values()), name, style)
            _label(axes, kind, "top-k passages", list(TOP_K))
            axes.set_ylabel("exact match")
        figure.savefig(folder / "keqa-topk.png", dpi=150, metadata={"Software": None})


def _with_interval(axes: Any, values: Sequence[float], rows: Sequence[Mapping[str, Any]], name: str, style: str) -> None:
    (line,) = axes.plot(values, [row["em"] for row in rows], style, label=name)
    low, high = zip(*(row["interval"] for row in rows), strict=True)
    axes.fill_between(values, low, high, color=line.get_color(), alpha=0.12, linewidth=0)


def _label(axes: Any, kind: str, xlabel: str, ticks: Sequence[float]) -> None:
    axes.set(title=f"lab:{kind}", xlabel=xlabel, xticks=ticks, ylim=(0, None))
    axes.legend(frameon=False, fontsize=8)
    axes.grid(alpha=0.3)


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
    parser.add_argument("--plots", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    results = asyncio.run(measure(given.model, given.n, given.seed, given.part or PARTS))
    if given.plots:
        plot(results, given.plots)
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
