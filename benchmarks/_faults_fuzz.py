"""Fuzzed input: a real file of each kind, changed, and the commands that read it."""

from __future__ import annotations

import functools
import gzip
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from benchmarks._faults_mutate import CANARY, mutate
from benchmarks._faults_trial import WATCH, call, confine, scripted
from benchmarks._shared import ROOT

QUESTION = "Who wrote the book?"
_ASK = ("ask", QUESTION, "--model", "lab", "--index", "lab")
_OUT = ("--out", "made")
_DIRECT, _MODELS = ("--method", "direct", "--set", "max_tokens=8"), ("./model", "./model.gguf")
_RUN = tuple("eval sets/plain.jsonl --method direct,rag,seakr --model lab --index lab --out run".split())

# What is changed, and the commands that read it.
TARGETS: Mapping[str, tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]] = {
    "documents": (("docs",), (("index", "build", "docs", *_OUT), ("index", "build", "docs", "--skip-invalid", *_OUT))),
    "triples": (
        ("triples",),
        (("index", "build", "triples", "--graph", *_OUT), ("index", "build", "triples", "--graph", "--skip-invalid", *_OUT)),
    ),
    "templates": (
        ("templates.toml",),
        (("index", "build", "triples/a.tsv", "--graph", "--templates", "templates.toml", *_OUT),),
    ),
    "index": (
        ("index",),
        (
            ("index", "search", "index", "heron plum"),
            ("index", "info", "index"),
            ("index", "build", "docs", "--out", "index"),
            ("index", "delete", "index", "docs/a.txt"),
            ("ask", QUESTION, "--model", "lab", "--method", "rag", "--index", "index"),
        ),
    ),
    "vectors": (
        ("vectors",),
        (
            ("index", "info", "vectors"),
            ("index", "search", "dense:vectors", "heron plum"),
            ("index", "search", "hybrid:vectors", "heron plum"),
            ("index", "embed", "vectors"),
        ),
    ),
    "graph": (
        ("graph",),
        (
            ("index", "search", "graph", "heron"),
            ("index", "info", "graph"),
            ("index", "build", "triples", "--graph", "--out", "graph"),
        ),
    ),
    "data sets": (
        ("sets",),
        tuple(
            ("eval", f"sets/{name}", "--method", "direct", "--model", "lab", "--limit", "3", *_OUT)
            for name in ("plain.jsonl", "squad.json", "hotpot.json", "popqa.tsv", "choices.jsonl")
        ),
    ),
    "runs": (
        ("run",),
        (
            ("report", "run"),
            ("report", "run", "--html", "made.html"),
            ("report", "run", "--csv", "made"),
            ("report", "run", "--json"),
            ("export", "run", "--to", "jsonl", "--out", "made.jsonl"),
            ("export", "run", "--to", "inspect", "--method", "rag", "--out", "made.json"),
            ("calibrate", "--replay", "run"),
            ("calibrate", "run", "--signal", "gram", "--out", "made.toml"),
            _RUN,
        ),
    ),
    "calibrations": (("cal.toml",), ((*_ASK, "--method", "seakr", "--calibration", "cal.toml"),)),
    "configurations": (
        ("config.toml", "prices.toml", "study.toml"),
        (
            (*_ASK, "--method", "rag", "--config", "config.toml"),
            (
                "eval",
                "sets/plain.jsonl",
                "--method",
                "rag",
                "--model",
                "lab",
                "--index",
                "lab",
                "--config",
                "config.toml",
                *_OUT,
            ),
            ("report", "run", "--prices", "prices.toml"),
            ("reproduce", "study.toml", "--limit", "3", *_OUT),
        ),
    ),
    "probes": (("probe",), ((*_ASK, "--method", "compose", "--set", "gate=question", "--set", "signal.probe=probe"),)),
    "what was learnt": (
        ("gate", "complexity", "knowledge", "reference"),
        tuple(
            (*_ASK, "--method", method, *(word for setting in settings for word in ("--set", setting)))
            for method, *settings in (
                ("compose", "answer=learned", "learned=gate"),
                ("cascade", "learned=gate"),
                ("adaptive_rag", "classifier=complexity"),
                ("skr", "reference=knowledge"),
                ("compose", "filter=utility", "reference=reference"),
            )
        ),
    ),
    "of a server": (
        ("keys.json", "feedback.jsonl"),
        (
            ("keys", "keys.json"),
            ("keys", "keys.json", "--add", "guest"),
            ("keys", "keys.json", "--revoke", "reader"),
            ("calibrate", "--feedback", "feedback.jsonl", "--target-error", "0.4", "--out", "made.toml"),
        ),
    ),
    "recorded outcomes": (
        ("scores.csv", "outcomes.jsonl"),
        (
            ("calibrate", "--replay", "scores.csv"),
            ("calibrate", "--replay", "outcomes.jsonl"),
            ("calibrate", "scores.csv", "--signal", "doubt", "--out", "made.toml"),
            ("calibrate", "outcomes.jsonl", "--signal", "doubt", "--out", "made.toml"),
        ),
    ),
    "models": (
        ("model", "model.gguf", "tasks.toml"),
        tuple(("ask", QUESTION, *_DIRECT, "--set", "model.demonstrations=tasks.toml", "--model", model) for model in _MODELS),
    ),
}
_LONGEST = 300.0
"""Seconds in which what is tried later is made."""
_TOLD = (".json", ".toml", ".sqlite")
"""Files that say what others hold: changed more often."""
_SLOW: Mapping[str, float] = {"--html": 0.1, "--json": 0.2, "--csv": 0.2}
"""Reports that draw pictures or many samples: how often they are drawn beside the other commands, so that more is tried."""
_ALSO: Mapping[str, tuple[str, ...]] = {"study.toml": ("sets",), "cal.toml": ("cal.toml.runs",)}
"""What else a file that a command names leads to."""
HEAVY = "models"
"""Needs torch and transformers, so it is asked for by name."""


def seeds(folder: Path, heavy: bool) -> None:
    """Real files of every kind, made by the commands that make them."""
    folder.mkdir(parents=True)
    here = Path.cwd()
    os.chdir(folder)
    try:
        _texts()
        with scripted():
            for command in (
                ("index", "build", "docs", "--out", "index"),
                ("index", "build", "triples", "--graph", "--out", "graph"),
                _RUN,
                (
                    "calibrate",
                    "sets/plain.jsonl",
                    "--method",
                    "seakr",
                    "--model",
                    "lab",
                    "--index",
                    "lab",
                    "--limit",
                    "24",
                    "--out",
                    "cal.toml",
                ),
            ):
                done = call(command, _LONGEST)
                if done.code or done.problems:
                    raise RuntimeError(f"{command}: {done}")
        from gnothi.signals.probe_folder import LAB_FOLDER

        shutil.copytree(LAB_FOLDER, "probe")
        samples = ROOT / "tests" / "samples"
        for learnt in ("gate", "complexity", "knowledge", "reference"):
            shutil.copytree(samples / learnt, learnt)
        shutil.copyfile(samples / "keys.json", "keys.json")
        judged = json.loads((samples / "feedback.jsonl").read_text("utf-8"))
        lines = [judged | {"answer_id": f"a{n}", "score": n / 99 - 9, "trusted": True, "right": n % 9 != 0} for n in range(99)]
        Path("feedback.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        if heavy:
            from benchmarks._shared import small_model
            from tests.models.tiny_gguf import write as write_gguf

            model, tokenizer = small_model(layers=1, hidden=64)
            model.save_pretrained("model")
            tokenizer.save_pretrained("model")
            write_gguf(Path("model.gguf"))
    finally:
        os.chdir(here)


def _vectors(folder: Path) -> None:
    """Beside the other seeds. Only this part needs them: their library takes seconds to import."""
    from tests.retrieval.cross_encoders import classifier

    shutil.copytree(folder / "index", folder / "vectors")
    encoder = classifier(folder.parent / "encoder", architecture="BertModel")
    if (found := call(("index", "embed", str(folder / "vectors"), "--encoder", encoder))).code:
        raise RuntimeError(f"no vectors: {found}")


KINDS = tuple(TARGETS)
"""What ``--only`` may name."""


def prepare(folder: Path, only: str) -> None:
    """Once a process. Every command does its work on files that nobody changed: otherwise nothing would be tried."""
    import matplotlib.pyplot  # noqa: F401 - its cache is written once
    import sentence_transformers  # noqa: F401 - a changed reference names an encoder: its import takes too long for a trial

    os.environ["GNOTHI_CACHE"] = "cache"  # in the folder of each trial
    keep_the_library()
    seeds(folder / "seeds", only == HEAVY)
    _vectors(folder / "seeds")
    for command in [one for name, (_, commands) in TARGETS.items() for one in commands if (name == HEAVY) == (only == HEAVY)]:
        _fresh(folder, command)
        with scripted():
            if (found := call(command)).code:
                raise RuntimeError(f"{command} on unchanged files: {found}")
    confine()


def trial(number: int, seed: int, folder: Path, only: str = "") -> dict[str, Any]:
    """One file changed and one command; ``folder`` holds the seeds and is worked in."""
    rng = Random(f"{seed} fuzz {number}")
    names = [only] if only else [name for name in TARGETS if name != HEAVY]
    name = rng.choice(names)
    changed, commands = TARGETS[name]
    command = rng.choices(commands, [_SLOW.get(one[2] if len(one) > 2 else "", 1.0) for one in commands])[0]
    work = _fresh(folder, command)
    (folder / CANARY).write_text("secret")
    WATCH.forbidden = "" if command[0] == "reproduce" else CANARY  # a study says what is read: that is what it is for
    files = sorted(file for top in changed for file in ((work / top).rglob("*") if (work / top).is_dir() else [work / top]))
    files = [file for file in files if file.is_file()]
    named = [file for file in files if {str(file.relative_to(work)), file.relative_to(work).parts[0]} & set(command)]
    done = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        among = named or files
        file = rng.choices(among, [6 if one.suffix in _TOLD else 1 for one in among])[0]
        if os.path.lexists(file):
            done.append(f"{file.relative_to(work)}: {mutate(file, rng)}")
    with scripted():
        found = call(command)
        problems = list(found.problems)
        if command[:2] == ("index", "build") and found.code in (0, 1):  # what was let in comes out again
            problems += call(("index", "search", command[-1], "heron plums reeds")).problems
    return {
        "target": name,
        "command": " ".join(command),
        "changed": done,
        "code": found.code,
        "problems": problems,
        "said": (found.err.strip().splitlines() or [""])[-1][:200],
    }


def _fresh(folder: Path, command: tuple[str, ...]) -> Path:
    """A folder to work in, with the seeds that the command names, once more, and no others: copies cost the most time."""
    work = folder / "work"
    while work.exists():  # a thread of the search engine may still put its lock there
        shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    words = {re.split("[=:]", word)[-1].removeprefix("./").partition("/")[0] for word in command}
    for name in sorted(words | {more for word in words for more in _ALSO.get(word, ())}):
        seed = folder / "seeds" / name
        if seed.is_dir():
            shutil.copytree(seed, work / name, symlinks=True, copy_function=shutil.copyfile)
        elif seed.is_file():
            shutil.copyfile(seed, work / name)
    os.chdir(work)
    return work


def keep_the_library() -> None:
    """``--index lab``, which no trial changes, is indexed once a process."""
    from gnothi.lab import named

    vars(named)["INDEX"] = replace(named.INDEX, open=functools.cache(named.INDEX.open))


def _texts() -> None:
    for name in ("docs", "triples", "sets"):
        Path(name).mkdir()
    rows = [{"id": f"p{n}", "title": f"Heron {n}", "text": f"The heron number {n} waits in shallow water."} for n in range(6)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    Path("docs/a.txt").write_text("The heron waits in shallow water.\n\nIt eats fish.\n")
    Path("docs/b.md").write_text("# Plums\n\nSalted *plums* keep long.\n\n```\ncode\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    Path("docs/c.html").write_text(
        '<!doctype html><html><head><meta charset="utf-8"><title>Reeds</title></head><body><h1>Reeds</h1>'
        "<p>Reeds &amp; rushes <a href='x'>grow</a>.</p><script>1</script></body></html>"
    )
    Path("docs/d.jsonl").write_text(lines)
    Path("docs/e.tsv").write_text("id\ttext\ttitle\n" + "".join(f"{n}\tA plum of kind {n}.\tPlum {n}\n" for n in range(5)))
    Path("docs/f.jsonl.gz").write_bytes(gzip.compress(lines.replace('"p', '"z').encode(), mtime=0))
    Path("docs/g.pdf").write_bytes(_pdf())
    Path("triples/a.tsv").write_text("head\trelation\ttail\nheron\teats\tfish\nheron\tlives in\treeds\nfish\tlives in\twater\n")
    Path("triples/b.jsonl").write_text('{"head": "plum", "relation": "is a", "tail": "fruit", "weight": 2.0}\n' * 2)
    Path("triples/c.nt").write_text(
        '<http://x.org/a> <http://x.org/b> <http://x.org/c> .\n<http://x.org/a> <http://x.org/n> "A\\u00e9"@en .\n'
    )
    Path("triples/d.csv").write_text(
        '/a/[/r/IsA/,/c/en/cat/,/c/en/animal/]\t/r/IsA\t/c/en/cat\t/c/en/animal\t{"weight": 1.0}\n'
    )
    Path("templates.toml").write_text('[relations]\n"eats" = "{head} eats {tail}."\n"lives in" = "{head} lives in {tail}."\n')
    asked = [{"id": f"q{n}", "question": f"Who wrote book {'x' * n}?", "answers": ["Ada Bram", "A"]} for n in range(24)]
    Path("sets/plain.jsonl").write_text("".join(json.dumps(one) + "\n" for one in asked))
    squad = [
        {"id": f"s{n}", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}], "is_impossible": False}
        for n in range(2)
    ]
    Path("sets/squad.json").write_text(
        json.dumps({"version": "2", "data": [{"title": "T", "paragraphs": [{"context": "Ada.", "qas": squad}]}]})
    )
    hop = {
        "_id": "h",
        "question": "Who?",
        "answer": "Ada",
        "type": "bridge",
        "level": "easy",
        "supporting_facts": [["T", 0]],
        "context": [["T", ["Ada."]]],
    }
    Path("sets/hotpot.json").write_text(json.dumps([hop]))
    Path("sets/popqa.tsv").write_text('id\tquestion\tpossible_answers\ts_pop\n1\tWho is it?\t["Ada", "A"]\t10\n')
    choices = {
        "id": "c",
        "question": {"stem": "Which?", "choices": [{"label": "A", "text": "x"}, {"label": "B", "text": "y"}]},
        "answerKey": "A",
    }
    Path("sets/choices.jsonl").write_text(json.dumps(choices) + "\n")
    Path("config.toml").write_text('k = 3\n[model]\ncache = "off"\n')
    Path("tasks.toml").write_text(
        '[answer]\ninstruction = "Say it."\n[[answer.demonstrations]]\nquestion = "Who?"\nanswer = "Ada"\n'
    )
    Path("prices.toml").write_text("prompt = 0.5\ngenerated = 1.5\n")
    variants = "".join(
        f'[[variant]]\nlabel = "{one}"\nmethod = "{one}"\nsettings = {{ max_tokens = 20 }}\n' for one in ("rag", "seakr")
    )
    sources = 'dataset = "sets/plain.jsonl"\nmetric = "em"\nmodel = "lab"\nindex = "lab"\n'
    Path("study.toml").write_text(f'title = "T"\n{sources}[settings]\nreason = true\n{variants}')
    Path("scores.csv").write_text(
        "id,question,never,always,doubt\n" + "".join(f"{n},Who?,{n % 2},{1 - n % 3 // 2},{n / 3}\n" for n in range(24))
    )
    outcomes = [
        {
            "question": "Who?",
            "answers": ["Ada"],
            "no_retrieval": "Ada" if n % 2 else "Bo",
            "one_retrieval": "Ada",
            "direct": {"answer": "Ada", "doubt": n / 7},
        }
        for n in range(24)
    ]
    Path("outcomes.jsonl").write_text("".join(json.dumps(one) + "\n" for one in outcomes))


def _pdf() -> bytes:
    """One page with one line, whole."""
    stream = "BT /F1 12 Tf 72 720 Td (The bittern booms.) Tj ET"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 "
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
    ]
    body, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    trailer = f"trailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return (body + f"xref\n0 5\n0000000000 65535 f \n{table}" + trailer).encode("latin-1")
