"""Self-knowledge training of a real model on real questions: AUROC of P("Yes") on unseen questions before and after, by seed.

    python -m benchmarks real_self_knowledge --out FOLDER           everything (resumable: the same command goes on)
    python -m benchmarks real_self_knowledge --out FOLDER --tables  a Markdown table of what is done

Every training is `gnothi train self-knowledge` in a process of its own; answers are sampled once for all seeds. Then each model
is asked test questions: whether it knows, and the answer. Questions: TriviaQA's and PopQA's of the shared data folder, without
the calibration and test questions that `benchmarks real` takes from PopQA (and those of any `--without FILE`), so that what is
trained can judge there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._data import data_folder
from benchmarks._real_plan import Arguments, splits
from benchmarks._shared import machine, publish, say, spread, table
from gnothi.concurrency import gather
from gnothi.datasets import load
from gnothi.methods.steps.parsing import read_reply
from gnothi.methods.steps.prompts import ANSWER, ask
from gnothi.methods.steps.settings import SHORT_STOPS
from gnothi.metrics.normalise import normalise
from gnothi.models import load_model
from gnothi.models.engine.loading import load as load_weights
from gnothi.models.settings import ModelSettings
from gnothi.protocols import LanguageModel
from gnothi.signals.kinds.perplexity import Perplexity
from gnothi.signals.kinds.self_report import AFFIRMATIVE, KNOW, NEGATIVE, probability_of_yes
from gnothi.stats.auroc import auroc, auroc_interval
from gnothi.training.finetuning import HEADER
from gnothi.training.self_knowledge.settings import AnswerSettings
from gnothi.training.self_knowledge.stages import WARM_START
from gnothi.types import Decoding, Question
from gnothi.weights import DECLARATION

SOURCES: Mapping[str, tuple[str, ...]] = {
    "trivia": ("recorded/trivia.dev.jsonl", "recorded/trivia.test.jsonl"),
    "popqa": ("popqa.json",),
}
SHOWN = "skill-rag"
"""The paper's own prompt, which has no worked examples: a third of the tokens of ours."""
SHORTEST = 3
"""Letters of the shortest accepted answer of a question that is asked: "the D" for Detroit is in many a wrong answer."""
ANSWER_TOKENS = 12
SETTINGS: Mapping[str, Any] = {
    "model.demonstrations": SHOWN,
    "answers.n": 5,
    "answers.temperature": 0.3,  # at 1 a model of this size writes nonsense, and knows next to nothing by the trainer's measure
    "answers.max_tokens": ANSWER_TOKENS,
}
TRAINING: Mapping[str, Any] = {
    "model.dtype": "bfloat16",
    "warm_start_steps": 30,
    "warm_start_batch": 16,
    "warm_start_rate": 1e-3,  # as on the laboratory's model
    "steps": 6,
    "evaluate_every": 6,
    "learning_rate": 1e-4,  # at the usual 3e-4 one step in, every reply was No
    "questions": 4,
    "replies": 4,
    "reply_tokens": ANSWER_TOKENS,
}
"""What two shared processor cores do in half an hour a seed."""
Measured = dict[str, Any]


# --- questions -------------------------------------------------------------------------------------------------------


def draw(
    data: Path, sizes: Mapping[str, tuple[int, int]], seed: int = 0, without: Sequence[Path] = ()
) -> tuple[list[Question], list[Question]]:
    """Questions to train on and to test on; ``sizes``: both counts by source. Exits where a source has too few.

    ``without``: question files of which no text is taken.
    """
    training, held_out = [], []
    judged = _judged(data)
    kept = {normalise(one.text) for file in without for one in load(str(file))}
    for source, (learnt, tested) in sizes.items():
        found = [one for file in SOURCES[source] for one in load(str(data / file))]
        usable = list({one.text: one for one in found if (source, one.id) not in judged and tells(one)}.values())
        usable = [one for one in usable if normalise(one.text) not in kept]
        random.Random(f"{seed}/{source}").shuffle(usable)
        if len(usable) < learnt + tested:
            sys.exit(f"{source}: got {len(usable)} usable questions, expected {learnt + tested}: give smaller --sizes")
        named = [Question(f"{source}-{one.id}", one.text, answers=one.answers) for one in usable[: learnt + tested]]
        training += named[:learnt]
        held_out += named[learnt:]
    random.Random(seed).shuffle(training)
    return training, held_out


def _judged(data: Path) -> set[tuple[str, str]]:
    """The calibration and test questions of the real benchmark."""
    parts = splits(Arguments(data, Path(), "", (200, 100, 100), ()), "popqa")
    return {("popqa", line["id"]) for name in ("calibration", "test") for line in parts[name]}


def tells(question: Question) -> bool:
    """Whether an answer that holds a gold one is likely to be right: none is a word of a letter or two, or the question's."""
    golds = [normalise(answer) for answer in question.answers]
    asked = f" {normalise(question.text)} "
    return bool(golds) and all(len(gold) >= SHORTEST and f" {gold} " not in asked for gold in golds)


def written(path: Path, questions: Sequence[Question]) -> Path:
    lines = [{"id": one.id, "question": one.text, "answers": list(one.answers)} for one in questions]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    if path.is_file() and path.read_text("utf-8") != text:
        sys.exit(f"{path} holds other questions: got other --sizes than before; give another --out")
    path.write_text(text, encoding="utf-8")
    return path


# --- training --------------------------------------------------------------------------------------------------------


def command(args: argparse.Namespace, asked: Path, seed: int, answers_only: bool = False) -> list[str]:
    """The arguments of ``gnothi`` that train with a seed, or sample the answers that all seeds learn from."""
    settings = {**SETTINGS, **TRAINING, **dict(word.split("=", 1) for word in args.set), "seed": seed}
    words = ["train", "self-knowledge", str(asked), "--model", args.model, "--findings", str(args.out / "answers")]
    words += [
        "--out",
        str(args.out / f"seed-{seed}"),
        *(word for key in settings for word in ("--set", f"{key}={settings[key]}")),
    ]
    return [*words, "--collect-only"] if answers_only else words


def run(words: Sequence[str], out: Path, took: Path | None = None) -> int:
    """The exit code of a command of gnothi. Its minutes, by the clock and of processor, are added up in file ``took``."""
    say(" ".join(["gnothi", *words]).replace(str(out), "FOLDER"))
    began, used = time.monotonic(), _used()
    try:
        return subprocess.run([sys.executable, "-m", "gnothi", *words], check=False, stdout=subprocess.DEVNULL).returncode
    finally:
        if took is not None:
            before = json.loads(took.read_text("utf-8")) if took.is_file() else {"minutes": 0.0, "cpu_minutes": 0.0}
            spent = {"minutes": (time.monotonic() - began) / 60, "cpu_minutes": (_used() - used) / 60}
            took.write_text(json.dumps({name: before[name] + spent[name] for name in spent}) + "\n", "utf-8")


def _used() -> float:
    """Seconds of processor time of the processes that were started and are over."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


# --- figures ---------------------------------------------------------------------------------------------------------


def measure(model: LanguageModel, asked: Sequence[Question]) -> Measured:
    """AUROC, with DeLong's interval, of P("Yes") and of the answer's perplexity for the truth of the model's own answer."""
    settings = AnswerSettings()
    decoding = Decoding(ANSWER_TOKENS, stop=SHORT_STOPS)

    async def one(question: Question) -> tuple[float, float, bool]:
        answer = await Perplexity().measure(model, ask(ANSWER, question), decoding)
        yes, no = await model.score(ask(KNOW, question), (AFFIRMATIVE, NEGATIVE))
        right = settings.correct(read_reply(answer.greedy.text).answer, question.answers)
        return probability_of_yes(yes.logprob, no.logprob), answer.uncertainty, right

    async def all_of_them() -> list[tuple[float, float, bool]]:
        try:
            return list(await gather(*(one(question) for question in asked)))
        finally:
            await model.aclose()

    found = asyncio.run(all_of_them())
    truth = [right for _, _, right in found]
    rows = [{"id": question.id, "yes": yes, "right": right} for question, (yes, _, right) in zip(asked, found, strict=True)]
    return {
        **_auroc("yes", [yes for yes, _, _ in found], truth),
        **_auroc("perplexity", [-doubt for _, doubt, _ in found], truth),
        "right": sum(truth),
        "questions": len(truth),
        "yes_right": _mean(yes for yes, _, right in found if right),
        "yes_wrong": _mean(yes for yes, _, right in found if not right),
        "rows": rows,
    }


def _auroc(name: str, scores: Sequence[float], truth: Sequence[bool]) -> Measured:
    interval = auroc_interval(scores, truth)
    return {f"auroc_{name}": auroc(scores, truth), f"interval_{name}": list(interval) if interval else None}


def _mean(values: Iterator[float]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None


def after_warm_start(folder: Path, trained: Path, model: str) -> Path:
    """The model as the supervised stage of a training leaves it, in a folder of its own."""
    from peft import PeftModel

    if not (folder / DECLARATION).is_file():
        net, tokenizer, _ = load_weights(model, model, ModelSettings(dtype="bfloat16", pack_weights=False))
        merged: Any = PeftModel.from_pretrained(net, str(trained / WARM_START)).merge_and_unload()
        merged.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        shutil.copyfile(trained / DECLARATION, folder / DECLARATION)
    return folder


def cached(path: Path, compute: Any) -> Measured:
    if not path.is_file():
        path.write_text(json.dumps(compute(), indent=1) + "\n", "utf-8")
    return dict(json.loads(path.read_text("utf-8")))


def lines(before: Measured, runs: Sequence[Measured]) -> list[str]:
    def shown(measured: Measured, name: str = "yes") -> str:
        value, interval = measured[f"auroc_{name}"], measured[f"interval_{name}"]
        return "" if value is None else f"{value:.3f}" + (f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "")

    def told(measured: Measured) -> list[str]:
        means = "" if measured["yes_right"] is None else f"{measured['yes_right']:.2f} / {measured['yes_wrong']:.2f}"
        return [shown(measured), shown(measured, "perplexity"), means, f"{measured['right']} of {measured['questions']}"]

    def ended(one: Measured) -> list[str]:
        return [f"{one['best']} of {one['steps']}", f"{one['minutes']:.0f}", f"{one['cpu_minutes']:.0f}"]

    rows = [["before", *told(before), "", "", ""]]
    for one in runs:
        if "warm_start" in one:
            rows.append([f"seed {one['seed']}, supervised stage", *told(one["warm_start"]), "", "", ""])
        rows.append([f"seed {one['seed']}", *told(one["after"]), *ended(one)])
    head = [
        "model",
        'AUROC of P("Yes")',
        "of perplexity",
        'mean P("Yes"), right / wrong',
        "right",
        "best step",
        "minutes",
        "of processor",
    ]
    chosen = [one["after"]["auroc_yes"] for one in runs if one["after"]["auroc_yes"] is not None]
    return [*table(head, rows), "", f"After: {spread(chosen)} of {len(chosen)} seeds" if chosen else "No seed is done."]


def main() -> int:
    args = _options()
    seeds = [int(seed) for seed in args.seeds.split(",")]
    training, held_out = draw(args.data or data_folder(), args.sizes, without=args.without)
    args.out.mkdir(parents=True, exist_ok=True)
    asked = written(args.out / "train.jsonl", training)
    written(args.out / "test.jsonl", held_out)
    if not args.tables:
        code = run(command(args, asked, seeds[0], answers_only=True), args.out)
        if code > 1:
            return code
        cached(args.out / "before.json", lambda: measure(load_model(args.model, ModelSettings(demonstrations=SHOWN)), held_out))
        for seed in seeds:
            if code := _one(args, asked, held_out, seed):
                return code
    before = args.out / "before.json"
    if not before.is_file():
        sys.exit(f"{args.out}: nothing measured yet; run without --tables")
    done = [_done(args.out, seed) for seed in seeds if (args.out / f"seed-{seed}-after.json").is_file()]
    measured = json.loads(before.read_text("utf-8"))
    publish({"machine": machine(), "before": measured, "runs": done}, lines(measured, done), args.json)
    return 0


def _one(args: argparse.Namespace, asked: Path, held_out: Sequence[Question], seed: int) -> int:
    """Train with a seed and measure. A training that collapses is told and leaves the others to go on."""
    folder = args.out / f"seed-{seed}"
    if not (folder / HEADER).is_file():
        code = run(command(args, asked, seed), args.out, args.out / f"seed-{seed}-minutes.json")
        say(f"seed {seed}: exit code {code}")
        if not (folder / HEADER).is_file():
            return 0 if code == 1 else code
    cached(args.out / f"seed-{seed}-after.json", lambda: measure(load_model(str(folder)), held_out))
    if args.stages:
        stage = after_warm_start(args.out / f"seed-{seed}-warm-start", folder, args.model)
        cached(args.out / f"seed-{seed}-warm-start.json", lambda: measure(load_model(str(stage)), held_out))
    return 0


def _done(out: Path, seed: int) -> Measured:
    def read(path: Path) -> Measured:
        return dict(json.loads(path.read_text("utf-8")))

    header, stage = read(out / f"seed-{seed}" / HEADER), out / f"seed-{seed}-warm-start.json"
    found: Measured = {
        "seed": seed,
        "best": header["best_step"],
        "steps": header["steps"],
        "after": read(out / f"seed-{seed}-after.json"),
    }
    return found | read(out / f"seed-{seed}-minutes.json") | ({"warm_start": read(stage)} if stage.is_file() else {})


def _sizes(text: str) -> dict[str, tuple[int, int]]:
    found = {}
    for part in text.split(","):
        source, _, counts = part.partition("=")
        learnt, _, tested = counts.partition(":")
        if source not in SOURCES or not (learnt.isdigit() and tested.isdigit()):
            raise argparse.ArgumentTypeError(f"got {text!r}, expected as in trivia=600:270,popqa=400:300")
        found[source] = (int(learnt), int(tested))
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of everything")
    parser.add_argument("--data", type=Path, help="folder of the data sets [shared/data]")
    parser.add_argument("--model", default="smollm2", help="as for gnothi --model [%(default)s]")
    parser.add_argument("--seeds", default="0,1,2", help="[%(default)s]")
    parser.add_argument(
        "--sizes",
        type=_sizes,
        default="trivia=600:260,popqa=400:340",
        help="questions to train on and to test on [%(default)s]",
    )
    parser.add_argument(
        "--without", action="append", default=[], type=Path, metavar="FILE", help="questions to leave out (repeatable)"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="another setting of the training")
    parser.add_argument("--stages", action="store_true", help="measure the model after the supervised stage, too")
    parser.add_argument("--tables", action="store_true", help="print a Markdown table of what is done")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
