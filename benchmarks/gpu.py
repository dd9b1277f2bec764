"""What one card does: U beside greedy and other libraries, answers beside the CPU's, real and taught models. In half an hour.

    python -m benchmarks gpu --out gpu.json                        all steps that fit in --minutes (resumable: the same command)
    python -m benchmarks gpu --out gpu.json --vllm PYTHON --polygraph PYTHON     with interpreters that can import them
    python -m benchmarks gpu --out gpu.json --taught taught-runs/seed-0/teaching/model
    python -m benchmarks gpu --out gpu.json --page                 Markdown of what is done
    python -m benchmarks gpu --out tiny.json --device cpu --tiny   every step in small sizes, to try the program itself

Steps that need what is not here (data sets, a package) are left out, and the page says so. Every step is a program or a command
of gnothi in a process of its own; what it gave is in the file at once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._data import find_data
from benchmarks._real_plan import PARTS
from benchmarks._shared import machine, say, shown, table
from gnothi.runs.folder import read_rows
from gnothi.runs.rows import group

GREEDY = {"perplexity", "least_likely", "energy", "self_report", "prompt"}
"""Signals of the greedy answer alone: samples differ from device to device, since their random numbers do."""
ENOUGH = 1.05
"""A step is begun where so many times what it is thought to take are left."""


@dataclass(frozen=True)
class Step:
    """``minutes``: what it is thought to take on an H100. ``command``: arguments of Python. ``run``: the folder of its run."""

    name: str
    minutes: float
    command: tuple[str, ...]
    run: Path | None = None


def main() -> int:
    options = _options()
    document: dict[str, Any] = json.loads(options.out.read_text("utf-8")) if options.out.is_file() else {"steps": {}}
    if options.page:
        sys.stdout.write("\n".join(page(document)) + "\n")
        return 0
    document["machine"] = machine() | _card(options.device)
    began, failed = time.monotonic(), 0
    for step in steps(options):
        if document["steps"].get(step.name, {}).get("code") == 0 or not step.name.startswith(options.only):
            continue
        left = options.minutes - (time.monotonic() - began) / 60
        if left < step.minutes * ENOUGH and not options.tiny:
            say(f"{step.name}: left out, {left:.1f} minutes are left and it takes {step.minutes:.0f}")
            continue
        document["steps"][step.name] = done = _do(step, left * 60)
        failed = max(failed, int(done["code"] != 0))
        part = options.out.with_suffix(".part")
        part.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        os.replace(part, options.out)
    return failed


def _do(step: Step, seconds: float) -> dict[str, Any]:
    say(f"{step.name}: python {' '.join(step.command)}")
    began = time.monotonic()
    try:
        made = subprocess.run([sys.executable, *step.command], capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        say(f"{step.name}: stopped, the time is over")
        return {"code": 124, "seconds": seconds, "said": "the time was over"}
    found: dict[str, Any] = {"code": made.returncode, "seconds": time.monotonic() - began}
    if made.returncode:
        found["said"] = made.stderr[-600:]
    elif step.run:
        found["rows"] = _rows(step.run)
    else:
        found["document"] = json.loads(made.stdout)
    say(
        f"{step.name}: exit code {made.returncode}, {found['seconds']:.0f} s"
        + (f"\n{made.stderr[-600:]}" if made.returncode else "")
    )
    return found


def _rows(run: Path) -> dict[str, Any]:
    """Method → question → answer, accuracy, scores, seconds and tokens."""
    return {
        name: {
            row.question_id: {
                "answer": row.answer,
                "accuracy": row.metrics["accuracy"],
                "signals": {name: found["score"] for name, found in row.signals.items() if found["score"] is not None},
                "seconds": row.cost["seconds"],
                "tokens": row.cost["prompt_tokens"] + row.cost["generated_tokens"],
            }
            for row in rows
            if not row.failed
        }
        for name, rows in group(read_rows(run)).items()
    }


def steps(options: argparse.Namespace) -> Iterator[Step]:
    tiny = options.tiny
    rivals = [word for name in ("vllm", "polygraph") if (path := getattr(options, name)) for word in (f"--{name}", path)]
    sizes = ["--sizes", "24:12", "--tokens", "3", "--k", "3", "--repeats", "1"] if tiny else []
    for name, layers, hidden, minutes in (("small", 8, 512, 2.0), ("large", 32, 4096, 8.0)):
        shape = ["--layers", "2", "--hidden", "64"] if tiny else ["--layers", str(layers), "--hidden", str(hidden)]
        command = ("-m", "benchmarks.uncertainty", "--device", options.device, *shape, *sizes, *rivals, "--json")
        yield Step(f"uncertainty, {name}", minutes, command)
    folder = options.out.with_suffix("")
    models = {"lab": ("lab", "lab")} if tiny else {}
    data = options.data or find_data()
    for part in PARTS if data and not tiny else ():
        models |= {
            f"{Path(name).name or name}, {part}": (name, str(data / PARTS[part])) for name in ("smollm2", *options.taught)
        }
    for place, (name, (model, questions)) in enumerate(models.items()):
        limit = "3" if tiny else "100"
        asked = ["-m", "gnothi", "eval", questions, "--model", model, "--method", "panel,direct", "--limit", limit]
        for device in dict.fromkeys(("cpu", options.device) if tiny or place == 0 else (options.device,)):
            run = folder / f"{place}-{device}"
            at = ["--set", f"model.device={device}", "--set", "model.dtype=float32", "--out", str(run)]
            yield Step(f"{name} on {device}", 3.0 if device == "cpu" else 1.0, (*asked, *at), run)


# --- the page --------------------------------------------------------------------------------------------------------


def page(document: Mapping[str, Any]) -> Iterator[str]:
    about = document.get("machine", {})
    yield f"Measured on {about.get('card', 'no card')}: " + ", ".join(f"{key} {value}" for key, value in about.items())
    done = {name: step for name, step in document["steps"].items() if step["code"] == 0}
    for name, step in done.items():
        if "document" in step:
            yield from ["", f"## {name}", "", *_costs(step["document"])]
    runs = {name: step["rows"] for name, step in done.items() if "rows" in step}
    if runs:
        header = [
            "questions",
            "accuracy of direct",
            "seconds a question, panel",
            "tokens, panel",
            "same answers",
            "largest difference",
        ]
        yield from ["", "## Answers", "", *table(header, [[name, *_answers(name, runs)] for name in runs])]
    for name, step in document["steps"].items():
        if step["code"]:
            yield from [
                "",
                f"{name}: exit code {step['code']}. {step['said'].strip().splitlines()[-1] if step['said'] else ''}",
            ]


def _costs(document: Mapping[str, Any]) -> Iterator[str]:
    for result in document["results"]:
        yield f"A prompt of {result['prompt']} tokens, {result['parameters'] / 1e6:,.0f} M parameters:"
        yield ""
        lines, extra = [], result["extra_mb"]
        for name, multiple in result["multiples_of_floor"].items():
            seconds = statistics.median(one[name] for one in result["seconds"])
            lines.append([name, shown(seconds), shown(multiple["median"]), shown(extra[name]) if name in extra else ""])
        yield from table(["", "seconds", "x greedy", "extra MB"], lines)
        yield ""


def _answers(name: str, runs: Mapping[str, Any]) -> list[str]:
    """A run, and where the CPU answered the same questions: the share of equal answers, the largest difference of a score."""
    panel, direct = runs[name]["panel"], runs[name]["direct"]
    cells = [shown(_mean(direct, "accuracy")), shown(_mean(panel, "seconds")), shown(_mean(panel, "tokens"))]
    base = runs.get(f"{name.rpartition(' on ')[0]} on cpu")
    if base is None or name.endswith(" on cpu"):
        return [*cells, "", ""]
    both = [(panel[key], base["panel"][key]) for key in panel.keys() & base["panel"].keys()]
    same = sum(one["answer"] == other["answer"] for one, other in both) / max(len(both), 1)
    apart = [
        abs(one["signals"][key] - other["signals"][key])
        for one, other in both
        for key in one["signals"].keys() & other["signals"].keys() & GREEDY
    ]
    return [*cells, f"{same:.2f}", shown(max(apart, default=0.0))]


def _mean(rows: Mapping[str, Mapping[str, float]], key: str) -> float:
    return statistics.fmean(row[key] for row in rows.values())


def _card(device: str) -> dict[str, Any]:
    if device == "cpu":
        return {}
    import torch

    told = torch.cuda.get_device_properties(0)
    return {"card": told.name, "memory of the card, GB": round(told.total_memory / 2**30)}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("gpu.json"), help="the document; runs lie beside it [%(default)s]")
    parser.add_argument("--device", default="cuda", help="cuda or cpu [%(default)s]")
    parser.add_argument("--minutes", type=float, default=25.0, help="nothing is begun that does not fit [%(default)s]")
    parser.add_argument("--data", type=Path, help="folder of the data sets [shared/data, where there is one]")
    parser.add_argument("--taught", action="append", default=[], help="folder of a taught model (repeatable)")
    parser.add_argument("--vllm", metavar="PYTHON", help="an interpreter that can import vllm")
    parser.add_argument("--polygraph", metavar="PYTHON", help="an interpreter that can import lm_polygraph")
    parser.add_argument("--only", default="", metavar="STEP", help="steps whose names begin so")
    parser.add_argument("--tiny", action="store_true", help="small sizes, and the lab's model")
    parser.add_argument("--page", action="store_true", help="print Markdown of what is done, and run nothing")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
