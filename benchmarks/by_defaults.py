"""Every method by its defaults on a real model: accuracy beside `direct`, and answers that are none.

    python -m benchmarks by_defaults --questions FILE --model smollm2 --index PATH --out FOLDER [--limit 100]

Each method is `gnothi eval` in a process of its own; the same command goes on where it stopped. Then a table. Odd answers are
those without a letter or digit, those that a worked example of Gnothi gave, and those that the question itself holds (where a
right answer is not odd); an empty one is none.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from benchmarks._shared import say, table
from gnothi.metrics.normalise import normalise
from gnothi.report.summary import Method, summarise
from gnothi.runs.folder import read_rows
from gnothi.runs.rows import Row, group
from gnothi.stats.paired import paired_test

FIRST = ("direct", "cot", "rag", "ircot", "seakr", "keqa", "skill_rag", "iekr")
NOT_BY_DEFAULTS = {
    "self_rag": "a model with reflection tokens",
    "adaptive_rag": "a trained classifier",
    "skr": "a trained index",
}
"""Methods that refuse without something that is to be trained first, and what."""
CONCLUDES = "so the answer is"
MEASURED = "accuracy"


def main() -> int:
    options = _options()
    for method in options.methods:
        words = [options.questions, "--method", method, "--model", options.model, "--index", options.index]
        words += ["--limit", str(options.limit), "--out", str(options.out / method)]
        say(f"gnothi eval {' '.join(words)}")
        code = subprocess.run(
            [sys.executable, "-m", "gnothi", "eval", *words], check=False, stdout=subprocess.DEVNULL
        ).returncode
        if code not in (0, 1):
            say(f"{method}: exit code {code}")
            if code in (130, -2, -15):
                return code
    sys.stdout.write("\n".join(page(options.out, options.methods)) + "\n")
    return 0


def page(out: Path, methods: Sequence[str]) -> list[str]:
    """A row a method that has answered anything."""
    answered = {name: group(read_rows(out / name))[name] for name in methods if _has_rows(out / name)}
    header = ["method", "questions", "accuracy", "95% interval", "EM", "against direct, p"]
    header += ["searches", "calls", "tokens", "punctuation", "example's", "question's"]
    copied = demonstrated()
    return table(header, (line(name, rows, answered.get("direct", []), copied) for name, rows in answered.items()))


def line(name: str, rows: Sequence[Row], direct: Sequence[Row], copied: frozenset[str]) -> list[str]:
    (one,) = summarise(rows, "questions").methods
    ends = one.intervals[MEASURED]
    cells = [
        name,
        f"{len(rows)}",
        f"{one.accuracy or 0:.3f}",
        f"{ends.low:.3f}–{ends.high:.3f}" if ends else "",
        f"{one.em or 0:.3f}",
    ]
    cells.append("" if name == "direct" else _against(rows, direct))
    cells += _costs(one)
    found = odd(rows, copied)
    return cells + [f"{found[kind]}" for kind in ("punctuation", "example", "question")]


def odd(rows: Sequence[Row], copied: frozenset[str]) -> Mapping[str, int]:
    """How many answers are no answer, by kind; each counts once."""
    kinds = dict.fromkeys(("punctuation", "example", "question"), 0)
    for row in rows:
        said, asked = normalise(row.answer or ""), normalise(row.question.replace("'s", " "))
        right = row.metrics.get(MEASURED, 0.0) > 0
        if (row.answer or "").strip() and not any(map(str.isalnum, row.answer or "")):
            kinds["punctuation"] += 1
        elif said and not right and said in copied:
            kinds["example"] += 1
        elif said and not right and f" {said} " in f" {asked} ":
            kinds["question"] += 1
    return kinds


def demonstrated() -> frozenset[str]:
    """The short answers of all worked examples."""
    return frozenset(normalise(answer) for name in ("default", "short") for answer in _answers(name))


def _answers(name: str) -> Iterator[str]:
    tasks: Mapping[str, Any] = tomllib.loads(files("gnothi.prompts").joinpath(f"{name}.toml").read_text("utf-8"))
    for task in tasks.values():
        for example in task.get("demonstrations", ()):
            answer = example["answer"]
            yield answer
            if CONCLUDES in answer.lower():
                yield answer[answer.lower().rindex(CONCLUDES) + len(CONCLUDES) :].strip(" .")


def _costs(one: Method) -> list[str]:
    tokens = None if one.prompt_tokens is None else one.prompt_tokens + (one.generated_tokens or 0)
    return [
        "" if value is None else f"{value:,.{digits}f}"
        for value, digits in ((one.retrievals, 2), (one.model_calls, 1), (tokens, 0))
    ]


def _against(rows: Sequence[Row], direct: Sequence[Row]) -> str:
    """McNemar's exact test on the questions that both answered."""
    mine, theirs = ({row.question_id: row.metrics[MEASURED] for row in some if not row.failed} for some in (rows, direct))
    common = sorted(mine.keys() & theirs.keys())
    return f"{paired_test([mine[key] for key in common], [theirs[key] for key in common]).p:.2g}" if common else ""


def _has_rows(run: Path) -> bool:
    return (run / "rows.jsonl").is_file() and bool(read_rows(run))


def _options() -> argparse.Namespace:
    from gnothi.methods.registry import names

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", required=True)
    parser.add_argument("--model", default="smollm2", help="as for gnothi --model [%(default)s]")
    parser.add_argument("--index", required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder of all runs")
    parser.add_argument("--limit", type=int, default=100, help="questions [%(default)s]")
    parser.add_argument("--methods", help=f"[all but panel, and {', '.join(NOT_BY_DEFAULTS)}, which need training first]")
    options = parser.parse_args()
    others = sorted(set(names()) - {"panel", *FIRST, *NOT_BY_DEFAULTS})
    options.methods = options.methods.split(",") if options.methods else [*FIRST, *others]
    return options


if __name__ == "__main__":
    sys.exit(main())
