"""What bfloat16 does to U itself: the same sampled answers, read in both precisions.

    python -m benchmarks precision_same_words --questions FILE --model smollm2 --out FOLDER [--limit N]

`precision` compares two runs, whose sampled words part as soon as one digit differs. Here each question's answers are sampled
once, in float32, and then read in both precisions: U of the hidden states at the last token of each, by layer. The truth is
that of the greedy answer in float32. The same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._shared import say, table
from gnothi.concurrency import gather
from gnothi.datasets import load
from gnothi.methods.steps.parsing import read_reply
from gnothi.methods.steps.prompts import ANSWER, ask
from gnothi.methods.steps.settings import SHORT_STOPS
from gnothi.metrics import accuracy
from gnothi.models import load_model
from gnothi.models.settings import ModelSettings, Precision
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Sampling
from gnothi.signals.kinds.gram import gram_uncertainty
from gnothi.stats.auroc import auroc
from gnothi.types import Decoding, Question, StateSpec

PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16")
PLACES: Mapping[str, StateSpec] = {
    f"{site}, layer {layer}": StateSpec(None if layer == "middle" else 1.0, site, "predicting")
    for site in ("ffn", "residual")
    for layer in ("middle", "last")
}
ANSWER_TOKENS = 24
AT_ONCE = 8
DRAWS = 5000


def main() -> int:
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "measured.jsonl"
    questions = load(options.questions)[: options.limit]
    if left := [question for question in questions if question.id not in {line["id"] for line in _lines(path)}]:
        asyncio.run(_measure(left, options.model, path))
    sys.stdout.write("\n".join(page(_lines(path))) + "\n")
    return 0


async def _measure(questions: Sequence[Question], spec: str, path: Path) -> None:
    models: dict[str, LanguageModel] = {name: load_model(spec, ModelSettings(dtype=name)) for name in PRECISIONS}
    done = 0

    async def one(question: Question) -> None:
        nonlocal done
        measured = await _measured(models, question)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"id": question.id, **measured}) + "\n")
        done += 1
        if done % 20 == 0:
            say(f"{done} of {len(questions)} questions")

    for begin in range(0, len(questions), AT_ONCE):
        await gather(*(one(question) for question in questions[begin : begin + AT_ONCE]))
    for model in models.values():
        await model.aclose()


async def _measured(models: Mapping[str, LanguageModel], question: Question) -> dict[str, Any]:
    prompt = ask(ANSWER, question)
    greedy = Decoding(max_tokens=ANSWER_TOKENS, stop=SHORT_STOPS)
    said = await models["float32"].generate(prompt, greedy)
    samples = await Sampling().draw(models["float32"], prompt, greedy)
    texts = [generation.text.strip() for generation in samples.generations if generation.text.strip()]
    found = {name: await _u(model, question, texts) for name, model in models.items()}
    right = accuracy(read_reply(said.text, question.text).answer, question.answers)
    return {"right": right, "samples": texts, **found}


async def _u(model: LanguageModel, question: Question, texts: Sequence[str]) -> list[float]:
    """U by place."""
    read = await gather(*(model.states(ask(ANSWER, question, so_far=text), tuple(PLACES.values())) for text in texts))
    return [gram_uncertainty(np.stack([one.states[place] for one in read])) for place in range(len(PLACES))]


def page(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    wrong = np.array([line["right"] < 1 for line in lines])
    told = f"{len(lines)} questions, {int((~wrong).sum())} answered rightly."
    if wrong.all() or not wrong.any():
        return [f"{told} An AUROC needs right and wrong ones."]
    drawn = np.random.default_rng(0).integers(0, len(lines), (DRAWS, len(lines)))
    rows = []
    for place, name in enumerate(PLACES):
        a, b = (np.array([line[precision][place] for line in lines]) for precision in PRECISIONS)
        differences = [_difference(a[draw], b[draw], wrong[draw]) for draw in drawn]
        low, high = np.nanquantile(differences, [0.025, 0.975])
        middle = float(np.median(a))
        rows.append(
            [
                name,
                f"{auroc(a, wrong):.4f}",
                f"{auroc(b, wrong):.4f}",
                f"{_difference(a, b, wrong):+.4f}",
                f"{low:+.4f} to {high:+.4f}",
                f"{np.median(abs(a - b)):.4f}",
                f"{a.std():.3f}",
                f"{np.mean((a > middle) != (b > middle)):.1%}",
            ]
        )
    header = ["U of", "AUROC, float32", "bfloat16", "difference", "95% interval"]
    header += ["median shift", "spread", "decided otherwise"]
    return [told, "", *table(header, rows)]


def _difference(a: NDArray[np.float64], b: NDArray[np.float64], wrong: NDArray[np.bool_]) -> float:
    one, other = auroc(a, wrong), auroc(b, wrong)
    return float("nan") if one is None or other is None else other - one


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.is_file() else []


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", required=True)
    parser.add_argument("--model", default="smollm2", help="as for gnothi --model [%(default)s]")
    parser.add_argument("--out", type=Path, required=True, help="folder of what was measured")
    parser.add_argument("--limit", type=int, help="only the first questions")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
