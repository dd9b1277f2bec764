"""Re-ranking on the lab: how often the fact a two-hop question needs is among the top m, with and without internal knowledge.

The fact is about an entity that the question does not name. Asked are those of lab:two_hop_choice whose fact is in the graph.

python -m benchmarks.reranker                                    the shipped re-ranker, the untrained judge, words in common
python -m benchmarks.reranker --reranker mine --without theirs   other re-rankers: trained with, and without, internal knowledge
What the model says about the entities is kept in --work.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._shared import machine, publish, say, table
from gnothi import lab
from gnothi.concurrency import gather
from gnothi.lab.language import BY_NAME
from gnothi.lab.named import graph
from gnothi.methods.steps.reflection import query, reflect, subjects
from gnothi.models import load_model
from gnothi.protocols import Reranker
from gnothi.retrieval.rerank import LAB_FOLDER, CrossEncoderReranker
from gnothi.stats.intervals import wilson_interval
from gnothi.stats.paired import paired_test
from gnothi.testing.retriever import FakeReranker
from gnothi.types import Question

TOP = (1, 5, 10, 30, 50, 100)
LEVELS = ("often", "seldom", "never")
Prepared = dict[str, Any]
"""``level`` (of the first hop, what internal knowledge is asked for), ``facts``, ``needed``, ``queries`` (with and without)."""


def needed(question: Question) -> str:
    """The second fact, as the graph says it."""
    hop = question.metadata["hops"][1]
    return BY_NAME[hop["relation"]].statements[0].format(s=hop["subject"], o=hop["object"])


async def prepare(questions: Sequence[Question]) -> list[Prepared]:
    """Candidates and queries of the questions whose needed fact is within reach."""
    model, world = load_model("lab"), graph()

    async def one(question: Question) -> Prepared | None:
        about = await subjects(world, question)
        around = await world.neighbourhood([subject.node for subject in about], 2, 100)
        facts = [fact.text for fact in around.facts]
        if needed(question) not in facts:
            return None
        internal = await reflect(model, about, 100)
        first = question.metadata["hops"][0]
        return {
            "level": first["familiarity"],
            "facts": facts,
            "needed": needed(question),
            "queries": {"with": query(question, internal), "without": query(question)},
            "recalled": any(first["object"] in passage.text for passage in internal if passage.title == first["subject"]),
        }

    try:
        found = await gather(*(one(question) for question in questions))
    finally:
        await model.aclose()
    return [asked for asked in found if asked is not None]


async def ranks(reranker: Reranker, prepared: Sequence[Prepared], knowledge: str) -> list[int]:
    """The place of the needed fact among each question's candidates, from 1; ties count against it."""

    async def one(question: Prepared) -> int:
        scores = await reranker.score(question["queries"][knowledge], question["facts"])
        own = scores[question["facts"].index(question["needed"])]
        return sum(score >= own for score in scores)

    return [await one(question) for question in prepared]


def rows(name: str, places: Sequence[int], prepared: Sequence[Prepared]) -> list[list[str]]:
    """Recall at each m: of all questions with intervals, then by how familiar the first hop is."""
    found = []
    for level in ("all", *LEVELS):
        own = [place for place, question in zip(places, prepared, strict=True) if level in ("all", question["level"])]
        cells = []
        for m in TOP:
            hits = sum(place <= m for place in own)
            low, high = wilson_interval(hits, len(own)) if own else (0.0, 0.0)
            cells.append(f"{hits / max(1, len(own)):.3f}" + (f" ({low:.3f}–{high:.3f})" if level == "all" else ""))
        found.append([name if level == "all" else f"  {level}", str(len(own)), *cells])
    return found


async def compare(contenders: Mapping[str, tuple[Reranker, str]], prepared: Sequence[Prepared]) -> dict[str, list[int]]:
    places = {}
    for name, (reranker, knowledge) in contenders.items():
        say(f"{name} ...")
        places[name] = await ranks(reranker, prepared, knowledge)
        await reranker.aclose()
    return places


def judged() -> CrossEncoderReranker:
    from gnothi.lab.judge import judge

    return CrossEncoderReranker(judge(), "judge")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--n", type=int, default=500, help="questions of lab:two_hop_choice")
    parser.add_argument("--reranker", default=str(LAB_FOLDER), help="folder of the re-ranker [the shipped one]")
    parser.add_argument("--without", help="folder of one that was trained without internal knowledge")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--work", type=Path, help="keep what the model says there")
    given = parser.parse_args(arguments)
    questions = lab.questions(lab.world(), "two_hop_choice", given.n)
    kept = given.work / f"asked-{given.n}.json" if given.work else None
    if kept is not None and kept.is_file():
        asked = json.loads(kept.read_text("utf-8"))
    else:
        asked = asyncio.run(prepare(questions))
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(asked), "utf-8")
    contenders: dict[str, tuple[Reranker, str]] = {}
    for knowledge in ("with", "without"):
        contenders[f"words in common, {knowledge}"] = FakeReranker(), knowledge
        contenders[f"untrained judge, {knowledge}"] = judged(), knowledge
        contenders[f"trained, {knowledge}"] = CrossEncoderReranker.open(given.reranker), knowledge
    if given.without:
        contenders["trained without, without"] = CrossEncoderReranker.open(given.without), "without"
    places = asyncio.run(compare(contenders, asked))
    facts = sorted(len(question["facts"]) for question in asked)
    recalled = sum(question["recalled"] for question in asked)
    lines = [
        f"{len(asked)} of {len(questions)} questions have the fact they need among their candidates (median "
        f"{facts[len(facts) // 2]}); of {recalled} the model recalls the first hop.",
        *table(["", "n", *(f"m = {m}" for m in TOP)], [row for name in places for row in rows(name, places[name], asked)]),
    ]
    best = "trained, with"
    for name in places:
        if name != best:
            tests = {m: paired_test([p <= m for p in places[best]], [p <= m for p in places[name]]) for m in (1, 10, 50)}
            shown = ", ".join(f"{test.difference:+.3f} p = {test.p:.2g} (m = {m})" for m, test in tests.items())
            lines.append(f"{best} against {name}: {shown}")
    publish({"machine": machine(), "questions": len(asked), "places": places}, lines, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
