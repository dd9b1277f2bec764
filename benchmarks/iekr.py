"""IEKR's tables: what internal knowledge, external knowledge and both add, and how many facts should be read.

python -m benchmarks.iekr                                        the lab: lab:two_hop_choice, its own model and graph
python -m benchmarks.iekr --set reranker=lab --set m=10          any setting of the method
python -m benchmarks.iekr --reader full=READER --reader backbone=OTHER --plots FOLDER
python -m benchmarks.iekr --questions obqa.test.jsonl --model google/flan-t5-xl --graph conceptnet --set reranker=RERANKER

Parts
  table      the paper's table 7: full, − internal, − external, backbone, with paired tests against full (McNemar's exact test)
  sweep      its table 8: accuracy over m, for full and − internal
  baselines  direct, cot, rag, ReFeed and generated-knowledge prompting on the same questions
  expand     rag and skill_rag, their searches with and without reflection (open questions: --questions lab:two_hop)
A reader (made by `gnothi train reader --method iekr`) answers for every row, or for the row that is named before it.
Where recall of the needed fact is asked for: python -m benchmarks.reranker.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._shared import machine, numbers, publish, say, table

PARTS = ("table", "sweep", "baselines", "expand")
ROWS: Mapping[str, Mapping[str, object]] = {
    "full": {},
    "- internal": {"internal": False},
    "- external": {"external": False},
    "backbone": {"internal": False, "external": False},
}
GROUPS = ("right_action", "familiarity")
AT_ONCE = 64
Outcome = list[float]


class Remembered:
    """A re-ranker that scores what it is asked once: rows and values of m that search alike share the work."""

    def __init__(self, reranker: Any) -> None:
        self.reranker = reranker
        self.known: dict[tuple[str, tuple[str, ...]], tuple[float, ...]] = {}

    @property
    def name(self) -> str:
        return str(self.reranker.name)

    async def score(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        key = (query, tuple(texts))
        if key not in self.known:
            self.known[key] = await self.reranker.score(query, texts)
        return self.known[key]

    async def aclose(self) -> None:
        await self.reranker.aclose()


class Bench:
    """The questions, and what methods are made of."""

    def __init__(self, given: argparse.Namespace, resources: Any, questions: Sequence[Any]) -> None:
        self.resources, self.questions, self.given = resources, questions, given
        self.readers: dict[str, Any] = {}
        self.method: Any = resources.method("iekr")
        if self.method.reranker is not None:
            self.method = replace(self.method, reranker=Remembered(self.method.reranker))
        self.outcomes: dict[str, Outcome] = {}
        self.known: dict[tuple[str, str], Any] = {}

    def iekr(self, row: str, settings: Mapping[str, object]) -> Any:
        """The method of a row: as set on the command line, then as the row wants it."""
        reader = self.readers.get(row, self.readers.get(""))
        return replace(self.method, **({"reader": reader} if reader else {}), **settings)

    async def asked(self, method: Any, question: Any) -> Any:
        """The method's answer; what its gate says of a question is measured once for all rows."""
        from gnothi.methods.choosing import WithoutChoices

        if getattr(method, "gate", None) is None or not hasattr(method, "show_choices"):
            return await method(question)
        reader = method.reader or method.model
        key = (reader.name, question.id)
        if key not in self.known:
            shown = reader if method.show_choices else WithoutChoices(reader)
            self.known[key] = await method.from_memory(shown, question)
        return self.known[key] or await replace(method, gate=None)(question)

    async def answered(self, name: str, method: Any) -> Outcome:
        """1 or 0 for each question: does the answer name the right choice (without choices: is it the gold answer)?"""
        from gnothi.evaluation.metrics import score

        gate, began = asyncio.Semaphore(AT_ONCE), time.perf_counter()

        async def one(question: Any) -> float:
            async with gate:
                answer = await self.asked(method, question)
            scores = score(answer.text, question.answers, question.choices)
            return scores["accuracy" if question.choices else "em"]

        right = list(await asyncio.gather(*(one(question) for question in self.questions)))
        say(f"{name}: {sum(right) / len(right):.3f} ({time.perf_counter() - began:.0f} s)")
        self.outcomes[name] = right
        return right

    def figures(self, right: Outcome, against: Outcome | None = None) -> dict[str, Any]:
        from gnothi.evaluation.statistics import mean_interval, paired_test

        values = np.array(right)
        found: dict[str, Any] = {"accuracy": float(values.mean()), "interval": mean_interval(values), "n": len(values)}
        for group in GROUPS:
            labels = [str(question.metadata.get(group, "")) for question in self.questions]
            for label in dict.fromkeys(labels):
                chosen = values[[one == label for one in labels]]
                if label:
                    found.setdefault(group, {})[label] = (float(chosen.mean()), len(chosen))
        if against is not None:
            test = paired_test(np.array(against), values)
            found |= {"full_ahead_by": test.difference, "p": test.p}
        return found


async def table_part(bench: Bench) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for row, settings in ROWS.items():
        right = await bench.answered(row, bench.iekr(row, settings))
        results[row] = bench.figures(right, bench.outcomes["full"] if row != "full" else None)
    return results


async def sweep_part(bench: Bench) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for m in bench.given.m:
        both = {}
        for row in ("full", "- internal"):
            both[row] = await bench.answered(f"{row}, m = {m}", bench.iekr(row, {**ROWS[row], "m": m}))
        results[str(m)] = {
            "full": bench.figures(both["full"]),
            "- internal": bench.figures(both["- internal"], both["full"]),
        }
    return results


async def baselines_part(bench: Bench) -> dict[str, Any]:
    from gnothi import methods

    full = bench.outcomes.get("full") or await bench.answered("full", bench.iekr("full", {}))
    results = {"iekr": bench.figures(full)}
    for name in ("direct", "cot", "rag", "refeed", "gkp"):
        resources = {"model": bench.resources.model, "retriever": bench.resources.retriever}
        if "retriever" in methods.required_resources(name) and bench.resources.retriever is None:
            continue
        known = methods.settings_of(name)
        settings = {"choose": bench.given.choose} if "choose" in known else {}
        right = await bench.answered(name, methods.create(name, resources, settings))
        results[name] = bench.figures(right, full)
    return results


async def expand_part(bench: Bench) -> dict[str, Any]:
    from gnothi import methods
    from gnothi.methods.expansion import Expanded

    results: dict[str, Any] = {}
    model, retriever, graph = bench.resources.model, bench.resources.retriever, bench.resources.graph
    for name, settings in (("rag", {}), ("skill_rag", {"task": "useful"})):
        plain = await bench.answered(name, methods.create(name, {"model": model, "retriever": retriever}, settings))
        longer = {"model": model, "retriever": Expanded(retriever, model, graph)}
        right = await bench.answered(f"{name}, expanded", methods.create(name, longer, settings))
        results[name] = bench.figures(plain, right)
        results[f"{name}, index.expand=reflection"] = bench.figures(right)
    return results


async def measure(given: argparse.Namespace) -> dict[str, Any]:
    from gnothi.cli import options
    from gnothi.cli.resources import load_questions, open_model, open_resources
    from gnothi.models import settings_class

    questions = [one for one in load_questions(given.questions, given.format, given.n) if one.answers]
    settings = options.read(None, [f"choose={given.choose}", *given.set])
    document: dict[str, Any] = {
        "questions": given.questions,
        "n": len(questions),
        "model": given.model,
        "set": given.set,
        "readers": given.reader,
        "machine": machine(),
    }
    async with open_resources(given.model, given.index, settings, ["iekr"], given.graph) as resources:
        bench = Bench(given, resources, questions)
        for one in given.reader:
            row, _, spec = one.rpartition("=")
            bench.readers[row] = open_model(spec, settings_class(spec)())
        for part in given.part or PARTS[:2]:
            say(f"{part}: {len(questions)} questions")
            document[part] = await PART[part](bench)
        for reader in bench.readers.values():
            await reader.aclose()
        document["outcomes"] = {"ids": [question.id for question in questions], **bench.outcomes}
    return document


PART = {"table": table_part, "sweep": sweep_part, "baselines": baselines_part, "expand": expand_part}


def plot(results: Mapping[str, Any], file: Path) -> None:
    """Accuracy over m, with intervals."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panel = pyplot.subplots(figsize=(5.2, 3.6), layout="constrained")
    for row in ("full", "- internal"):
        found = [one[row] for one in results.values()]
        middle = [one["accuracy"] for one in found]
        below = [one["accuracy"] - one["interval"][0] for one in found]
        above = [one["interval"][1] - one["accuracy"] for one in found]
        panel.errorbar([int(m) for m in results], middle, yerr=[below, above], marker="o", capsize=3, label=row)
    panel.set(xscale="log", xlabel="m: facts that are read", ylabel="accuracy")
    panel.set_xticks([int(m) for m in results], list(results))
    panel.minorticks_off()
    panel.legend(frameon=False)
    figure.savefig(file, dpi=110)
    pyplot.close(figure)


def lines(document: Mapping[str, Any]) -> list[str]:
    out: list[str] = []
    for part in ("table", "baselines", "expand"):
        if found := document.get(part):
            out += [part, "", *_rows(found), ""]
    if found := document.get("sweep"):
        rows = [
            [m, *(f"{one[row]['accuracy']:.3f}" for row in ("full", "- internal")), f"{one['- internal']['p']:.2g}"]
            for m, one in found.items()
        ]
        out += ["sweep", "", *table(["m", "full", "- internal", "p"], rows)]
    return out


def _rows(found: Mapping[str, Any]) -> list[str]:
    first = next(iter(found.values()))
    groups = [(group, label) for group in GROUPS for label in first.get(group, {})]
    rows = []
    for name, one in found.items():
        low, high = one["interval"]
        cells = [name, f"{one['accuracy']:.3f}", f"{low:.3f}-{high:.3f}"]
        cells += [f"{one[group][label][0]:.3f}" for group, label in groups]
        cells += [f"{one['full_ahead_by']:+.3f}", f"{one['p']:.2g}"] if "p" in one else ["", ""]
        rows.append(cells)
    names = [f"{label} ({first[group][label][1]})" for group, label in groups]
    return table(["", "accuracy", "interval", *names, "first row ahead by", "p"], rows)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", default="lab:two_hop_choice", help="a data set or file [%(default)s]")
    parser.add_argument("--format", help="format of the file, where it cannot be recognised")
    parser.add_argument("--n", type=int, default=500, help="questions [%(default)s]")
    parser.add_argument("--model", default="lab", help="the model that reflects, and answers without a reader [%(default)s]")
    parser.add_argument("--graph", help="lab or a folder [lab, with the lab model]")
    parser.add_argument("--index", help="lab or a folder [lab, with the lab model]")
    parser.add_argument("--reader", action="append", default=[], metavar="[ROW=]MODEL", help="who answers (repeat)")
    parser.add_argument("--choose", default="likelihood", choices=("likelihood", "text"), help="[%(default)s]")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of iekr (repeat)")
    parser.add_argument("--part", action="append", choices=PARTS, help="only these parts [table, sweep]")
    parser.add_argument("--m", type=numbers, default=[10, 30, 50, 100], help="facts to read in the sweep [10,30,50,100]")
    parser.add_argument("--plots", type=Path, help="folder for the picture")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args(argv)
    document = asyncio.run(measure(given))
    if given.plots and "sweep" in document:
        given.plots.mkdir(parents=True, exist_ok=True)
        plot(document["sweep"], given.plots / "iekr-m.png")
    publish(document, lines(document), given.json)


if __name__ == "__main__":
    main()
