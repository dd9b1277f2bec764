"""A reader trained on the lab: right answers before and after, with many facts before each question.

Before a question stand the corpus's passages about what it needs (where the corpus has them) among others that its words
find, in no order: each of about three facts. So finding is given, and what is measured is reading. The model learns on
`lab-train`, is validated on a part of it, and is measured on `lab`, whose questions need none of the facts learnt.

python -m benchmarks.reader                            lab:choice, 16 passages
python -m benchmarks.reader --kind two_hop_choice
python -m benchmarks.reader --rates 1e-3,3e-3          learning rates compared by validation; no test question
Finished trainings are kept in --work and not repeated; an interrupted one goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks._shared import machine, publish, say, table
from gnothi import lab
from gnothi.concurrency import gather
from gnothi.lab.questions import Kind
from gnothi.methods.steps.multiple_choice import choose
from gnothi.methods.steps.parsing import read_reply
from gnothi.methods.steps.prompts import ANSWER, ask
from gnothi.methods.steps.settings import SHORT_STOPS
from gnothi.metrics import exact_match
from gnothi.models import LAB_FOLDER, ModelSettings, load_model
from gnothi.retrieval.bm25 import BM25Index
from gnothi.session.watch import Watch
from gnothi.stats.intervals import mean_interval
from gnothi.stats.paired import paired_test
from gnothi.training.finetuning import METRICS, Origin
from gnothi.training.reader.material import Example, Material, prompt_of
from gnothi.training.reader.stages import ReaderTraining, train
from gnothi.types import Decoding, Passage, Prompt, Question

SETTINGS = ReaderTraining(steps=50, batch=4, learning_rate=3e-3, evaluate_every=50)
AT_ONCE = 32


class Crowded:
    """Puts ``count`` passages before a question: those about the subjects it needs among those that its words find."""

    def __init__(self, count: int) -> None:
        passages = lab.passages()
        self._index = BM25Index.in_memory(passages, "lab")
        self._count = count
        self._about: dict[str, list[Passage]] = {}
        for passage in passages:
            self._about.setdefault(passage.title, []).append(passage)

    async def prompt(self, question: Question) -> Prompt:
        found = await self._index.search(" ".join((question.text, *question.choices)), self._count)
        needed = [one for hop in question.metadata["hops"] for one in self._about.get(hop["subject"], ())]
        wanted = list(dict.fromkeys([*needed, *(scored.passage for scored in found)]))[: self._count]
        random.Random(question.id).shuffle(wanted)
        return ask(ANSWER, question, wanted)


def measure(folder: str, prompts: Sequence[Prompt], questions: Sequence[Question]) -> dict[str, list[float]]:
    """For each question whether the likeliest choice is right, and whether what is generated is."""
    model = load_model(folder)
    pending = iter(range(len(questions)))
    likeliest, said = [0.0] * len(questions), [0.0] * len(questions)

    async def work() -> None:
        for place in pending:
            question, prompt = questions[place], prompts[place]
            chosen = await choose(model, prompt, "tokens")
            reply = await model.generate(prompt, Decoding(max_tokens=20, stop=SHORT_STOPS))
            likeliest[place] = exact_match(chosen.text, question.answers)
            said[place] = exact_match(read_reply(reply.text, choices=question.choices).answer, question.answers)

    async def work_all() -> None:
        try:
            await gather(*(work() for _ in range(AT_ONCE)))
        finally:
            await model.aclose()

    asyncio.run(work_all())
    return {"likelihood": likeliest, "generated": said}


def examples(work: Path, kind: Kind, count: int, passages: int) -> list[Example]:
    """The prompts for training, kept in the folder."""
    asked = lab.training_questions(lab.world(), kind, count)
    with Material(work / "prompts", asked, {"kind": kind, "count": count, "passages": passages}) as material:
        asyncio.run(material.collect(partial(prompt_of, method=Crowded(passages))))
        return material.finish()


def trained(out: Path, material: Sequence[Example], settings: ReaderTraining) -> dict[str, Any]:
    """The header of the training, with the seconds it took here (0 where it was finished before)."""
    out.mkdir(parents=True, exist_ok=True)
    started, cpu = time.perf_counter(), time.process_time()

    class Messages(Watch):
        def line(self, figures: Mapping[str, Any]) -> None:
            if "validation_loss" in figures:
                seconds = time.perf_counter() - started
                said = f"right {figures['validation_accuracy']:.3f}, loss {figures['validation_loss']:.3f}"
                say(f"{out.name}: step {figures['step']}, {seconds:.0f} s, {time.process_time() - cpu:.0f} s of a core: {said}")

    header = train(out, Origin("lab", str(LAB_FOLDER), ModelSettings()), material, settings, watch=Messages())
    seconds = out / "seconds.json"
    if not seconds.exists():
        took = {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - cpu}
        seconds.write_text(json.dumps(took))
    spent = json.loads(seconds.read_text())
    return {**header, **spent}


def compare_rates(work: Path, material: Sequence[Example], rates: Sequence[float], steps: int) -> list[list[str]]:
    """Validation accuracy and loss of each rate, from step 0 on."""
    rows = []
    for rate in rates:
        out = folder_of(work, rate, steps)
        trained(out, material, replace(SETTINGS, learning_rate=rate, steps=steps))
        lines = [json.loads(line) for line in (out / METRICS).read_text().splitlines()]
        figures = [line for line in lines if "validation_loss" in line]
        rows.append([f"{rate:g}", *(f"{one['validation_accuracy']:.3f} / {one['validation_loss']:.2f}" for one in figures)])
    return rows


def folder_of(work: Path, rate: float, steps: int) -> Path:
    return work / f"reader-{rate:g}-{steps}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", default="choice", choices=("choice", "two_hop_choice"))
    parser.add_argument("--questions", type=int, default=300, help="to train on, validation included [%(default)s]")
    parser.add_argument("--tests", type=int, default=500, help="test questions [%(default)s]")
    parser.add_argument("--passages", type=int, default=16, help="before a question, of about three facts each [%(default)s]")
    parser.add_argument("--rates", help="compare these learning rates by validation, and stop")
    parser.add_argument("--rate", type=float, default=SETTINGS.learning_rate, help="learning rate [%(default)s]")
    parser.add_argument("--steps", type=int, default=SETTINGS.steps, help="at most [%(default)s]")
    parser.add_argument("--work", type=Path, default=Path("runs/benchmark-reader"), help="folder for trainings [%(default)s]")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args()
    work = given.work / f"{given.kind}-{given.passages}-{given.questions}"
    material = examples(work, given.kind, given.questions, given.passages)
    if given.rates:
        rows = compare_rates(work, material, [float(rate) for rate in given.rates.split(",")], given.steps)
        validated = [f"step {step}" for step in range(0, given.steps + 1, SETTINGS.evaluate_every)]
        publish({"rates": rows}, table(["rate", *validated], rows), given.json)
        return
    settings = replace(SETTINGS, learning_rate=given.rate, steps=given.steps)
    out = folder_of(work, given.rate, given.steps)
    header = trained(out, material, settings)
    asked = lab.questions(lab.world(), given.kind, given.tests)
    crowded = Crowded(given.passages)

    async def ask_all() -> list[Prompt]:
        return [await crowded.prompt(question) for question in asked]

    prompts = asyncio.run(ask_all())
    before, after = measure("lab", prompts, asked), measure(str(out), prompts, asked)
    rows, tests = [], {}
    actions = [question.metadata["right_action"] for question in asked]
    for way in ("likelihood", "generated"):
        test = paired_test(after[way], before[way])
        tests[way] = test._asdict()
        spread = f" [{test.interval[0]:+.3f}, {test.interval[1]:+.3f}]" if test.interval else ""
        rows.append([way, _share(before[way]), _share(after[way]), f"{test.difference:+.3f}{spread}", f"{test.p:.2g}"])
    for action in dict.fromkeys(actions):
        places = [place for place, one in enumerate(actions) if one == action]
        one, other = ([results["likelihood"][place] for place in places] for results in (before, after))
        rows.append([f"likelihood, {action} ({len(places)})", _share(one), _share(other), "", ""])
    document = {
        "machine": machine(),
        "kind": given.kind,
        "passages": given.passages,
        "training": header,
        "settings": asdict(settings),
        "before": {way: sum(values) / len(values) for way, values in before.items()},
        "after": {way: sum(values) / len(values) for way, values in after.items()},
        "tests": tests,
        "rows": rows,
    }
    note = f"{len(asked)} questions; trained {header['seconds']:.0f} s ({header['cpu_seconds']:.0f} s of a core)"
    publish(document, [*table(["", "backbone", "trained", "difference", "p"], rows), "", note], given.json)


def _share(values: Sequence[float]) -> str:
    interval = mean_interval(values)
    shown = f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else ""
    return f"{sum(values) / len(values):.3f}{shown}"


if __name__ == "__main__":
    main()
