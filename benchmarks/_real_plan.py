"""What the real benchmark asks and in which order: data sets, splits, and the commands of ``gnothi`` that answer them."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PARTS: Mapping[str, str] = {
    "popqa": "popqa.json",
    "squad": "xquad.en.json",
    "hotpotqa": "hotpotqa.jsonl",
    "2wiki": "2wikimultihopqa.jsonl",
    "nq": "nq_open.dev.jsonl",
    "trivia": "recorded/trivia.test.jsonl",
}
"""Data set → its file in the data folder. The passages at hand answer few of the questions of nq and trivia."""
ENDS = ("direct", "cot", "rag", "ircot")
"""Methods without a threshold, on the calibration questions, too: never, always, and what a classifier learns from."""
GATED = ("seakr", "keqa")
"""Methods whose thresholds are chosen by asking the calibration questions with the gate shut and with it open."""
PARTS_OF_WHOLES = {
    "seakr_simple": ("seakr", {"form": "simple"}, "gram"),
    "probe_gate": ("compose", {"gate": "probe"}, "probe"),
    "best_signal": ("compose", {}, ""),
}
"""Row → method, settings, signal of the panel its threshold is chosen by (empty: the best one on the calibration questions)."""
BY_THE_TOKEN = ("flare", "dragin")
"""Methods whose thresholds are for a token, which no outcome of a whole question places: run by defaults."""
JUDGED = "skill_rag_judge"
"""``skill_rag`` with the trained judge of ``--judge``, beside the row of the untrained model."""
METHODS = (*ENDS, *GATED, *BY_THE_TOKEN, *PARTS_OF_WHOLES, "skill_rag", JUDGED, "adaptive_rag")
PRICE = 0.05
METRIC = "accuracy"
SPLITS = ("training", "calibration", "test")


@dataclass(frozen=True)
class Arguments:
    """``sizes``: questions of each split. ``extra``: further arguments of every command that opens the model."""

    data: Path
    out: Path
    model: str
    sizes: tuple[int, int, int]
    methods: tuple[str, ...]
    judge: str | None = None
    extra: tuple[str, ...] = ()
    seed: int = 0


# --- questions and passages ------------------------------------------------------------------------------------------


def prepare(arguments: Arguments, part: str) -> Path:
    """Write the part's splits and, once for all parts, the passages; returns the part's folder."""
    folder = arguments.out / part
    folder.mkdir(parents=True, exist_ok=True)
    if not (arguments.out / "passages.jsonl").is_file():
        _write(arguments.out / "passages.jsonl", passages(arguments.data))
    for name, lines in splits(arguments, part).items():
        path, text = folder / f"{name}.jsonl", "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        if path.is_file() and path.read_text("utf-8") != text:
            sys.exit(f"{path} holds other questions: got another --questions or --seed than before; give another --out")
        path.write_text(text, encoding="utf-8")
    return folder


def splits(arguments: Arguments, part: str) -> dict[str, list[dict[str, Any]]]:
    """Disjoint draws; where a data set is too small, the splits keep their proportions."""
    from gnothi.datasets import load

    questions = load(str(arguments.data / PARTS[part]))
    random.Random(arguments.seed).shuffle(questions)
    share = min(1.0, len(questions) / sum(arguments.sizes))
    found, begun = {}, 0
    for name, size in zip(SPLITS, arguments.sizes, strict=True):
        taken = questions[begun : begun + int(share * size)]
        begun += len(taken)
        found[name] = [
            {
                "id": one.id,
                "question": one.text,
                "answers": list(one.answers),
                "kind": one.kind,
                "metadata": _popularity(one.metadata),
            }
            for one in taken
        ]
    return found


def _popularity(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {"popularity": metadata["popularity"]} if "popularity" in metadata else {}


def passages(data: Path) -> Iterator[dict[str, Any]]:
    """Every passage at hand, once."""
    seen: set[tuple[str, str]] = set()
    for title, text in _all_passages(data):
        if (title, text) not in seen:
            seen.add((title, text))
            yield {"id": f"p{len(seen)}", "title": title, "text": text}


def _all_passages(data: Path) -> Iterator[tuple[str, str]]:
    for record in _json(data / "popqa.json"):
        yield from ((one["title"], one["text"]) for one in record["paragraphs"])
    for line in (data / "hotpotqa.jsonl").read_text("utf-8").splitlines():
        yield from ((one["title"], one["text"]) for one in json.loads(line)["passages"])
    yield from ((one["title"], one["text"]) for one in _json(data / "2wikimultihopqa_corpus.json"))
    for article in _json(data / "xquad.en.json")["data"]:
        yield from ((article["title"].replace("_", " "), one["context"]) for one in article["paragraphs"])


def _json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def _write(path: Path, lines: Iterator[dict[str, Any]]) -> None:
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")


# --- commands --------------------------------------------------------------------------------------------------------

Command = list[str]


def commands(arguments: Arguments, part: str, best: str = "SIGNAL") -> Iterator[tuple[str, Command]]:
    """(what for, arguments of ``gnothi``) in order. ``best`` is the signal that ``best_signal`` gates by, once it is known."""
    from gnothi.signals import registry

    learnt = {name for name in registry.names() if registry.reads_probe(name) or registry.counts(name)}
    index, folder = str(arguments.out / "index"), arguments.out / part
    split = {name: str(folder / f"{name}.jsonl") for name in SPLITS}
    opened = ["--model", arguments.model, *arguments.extra]
    asked = [*opened, "--index", index]
    chosen, wanted = folder / "thresholds", set(arguments.methods)
    yield "index", ["index", "build", str(arguments.out / "passages.jsonl"), "--out", index]
    probe = ["--set", f"panel.signal.probe={folder / 'probe'}"] if "probe_gate" in wanted else []
    if probe:
        yield (
            "probe",
            ["train", "probe", split["training"], *opened, "--out", str(folder / "probe"), "--set", f"metric={METRIC}"],
        )
    ends = [name for name in ENDS if name in wanted or "adaptive_rag" in wanted or name in ("direct", "rag")]
    both = ",".join(["panel", *ends])
    yield "calibration", ["eval", split["calibration"], "--method", both, *asked, *probe, "--out", str(folder / "calibration")]
    weighed = ["--search-cost", str(PRICE), "--metric", METRIC]
    for name in GATED:
        if name in wanted:
            file = str(chosen / f"{name}.toml")
            yield f"threshold of {name}", ["calibrate", split["calibration"], "--method", name, *asked, *weighed, "--out", file]
    for name, (_, _, signal) in PARTS_OF_WHOLES.items():
        if name in wanted:
            file = str(chosen / f"{name}.toml")
            run = [str(folder / "calibration"), "--method", "panel", "--never", "panel", "--always", "rag"]
            yield f"threshold of {name}", ["calibrate", *run, "--signal", signal or best, *weighed, "--out", file]
    if "adaptive_rag" in wanted:
        learns = ["--set", f"metric={METRIC}", "--out", str(folder / "classifier")]
        yield "classifier", ["train", "complexity", str(folder / "calibration"), *learns]
    yield "test: the ends", ["eval", split["test"], "--method", both, *asked, *probe, "--out", str(folder / "test")]
    for name in METHODS:
        if name not in wanted or name in ENDS:
            continue
        method, settings, signal = PARTS_OF_WHOLES.get(name, (name, {}, ""))
        method = "skill_rag" if name == JUDGED else method
        given_settings = settings | ({"gate": best} if name == "best_signal" else {})
        gate = given_settings.get("gate", signal)
        given_settings |= {"signal.probe": str(folder / "probe")} if gate in learnt else {}
        given_settings |= {"classifier": str(folder / "classifier")} if name == "adaptive_rag" else {}
        given_settings |= {"judge": arguments.judge} if name == JUDGED and arguments.judge else {}
        thresholds = ["--calibration", str(chosen / f"{name}.toml")] if name in (*GATED, *PARTS_OF_WHOLES) else []
        more = [word for key, value in given_settings.items() for word in ("--set", f"{key}={value}")]
        yield (
            f"test: {name}",
            ["eval", split["test"], "--method", method, *asked, *more, *thresholds, "--out", str(folder / f"test-{name}")],
        )


def as_text(command: Sequence[str], arguments: Arguments) -> str:
    """The command as a reader may type it, with the folders' names alone."""
    words = ["gnothi", *command]
    return " ".join(word.replace(str(arguments.out), "real") for word in words)
