"""Every format carries a version: a sample of each opens, and another version is refused with what to do, never misread."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from gnothi.calibration.feedback import Judged
from gnothi.calibration.feedback import read as read_feedback
from gnothi.calibration.file import read as read_calibration
from gnothi.errors import GnothiError
from gnothi.filtering.complexity import open_complexity
from gnothi.filtering.knowledge import open_knowledge
from gnothi.filtering.learned import open_gate
from gnothi.filtering.reference import open_reference
from gnothi.graph.registry import open_graph
from gnothi.retrieval.registry import open_index
from gnothi.runs.folder import read_config, read_rows
from gnothi.serving.keys import read as read_keys
from gnothi.signals.probe_folder import LAB_FOLDER as PROBE
from gnothi.signals.probe_folder import open_probe

SAMPLES = Path(__file__).parent / "samples"


@dataclass(frozen=True)
class Format:
    """``file`` (within the sample; empty: the sample itself) holds ``key``, the version now being ``version``."""

    sample: Path
    open: Callable[[Path], Any]
    file: str
    key: str
    version: int


def _run(path: Path) -> Any:
    return read_config(path), read_rows(path)


def _named(opening: Callable[[str], Any]) -> Callable[[Path], Any]:
    return lambda path: opening(str(path))


FORMATS = {
    "run": Format(SAMPLES / "run", _run, "config.toml", "format", 2),
    "index": Format(SAMPLES / "index", _named(open_index), "gnothi-index.json", "version", 3),
    "graph": Format(SAMPLES / "graph", _named(open_graph), "gnothi-index.json", "version", 1),
    "calibration": Format(SAMPLES / "calibration.toml", read_calibration, "", "version", 2),
    "learnt gate": Format(SAMPLES / "gate", open_gate, "gate.json", "format", 4),
    "complexity": Format(SAMPLES / "complexity", open_complexity, "complexity.json", "format", 1),
    "knowledge reference": Format(SAMPLES / "knowledge", open_knowledge, "knowledge.json", "format", 2),
    "utility reference": Format(SAMPLES / "reference", _named(open_reference), "reference.json", "format", 1),
    "keys": Format(SAMPLES / "keys.json", read_keys, "", "version", 1),
    "feedback": Format(SAMPLES / "feedback.jsonl", read_feedback, "", "version", 1),
    "probe": Format(PROBE, open_probe, "probe.json", "format", 1),
}


@pytest.fixture(params=list(FORMATS))
def given(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Format, Path]:
    """A format and a copy of its sample."""
    found = FORMATS[request.param]
    copy = tmp_path / found.sample.name
    if found.sample.is_dir():
        shutil.copytree(found.sample, copy)
    else:
        shutil.copyfile(found.sample, copy)
    return found, copy


def _set_version(path: Path, key: str, version: int, other: int | None) -> None:
    """Write another version in the file's place of it, or none at all."""
    text = path.read_text("utf-8")
    if path.suffix == ".toml":
        line = f"{key} = {version}\n"
        assert line in text
        path.write_text(text.replace(line, "" if other is None else f"{key} = {other}\n", 1), "utf-8")
        return
    documents = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else [json.loads(text)]
    for document in documents:
        assert document[key] == version
        document.pop(key)
        document.update({} if other is None else {key: other})
    path.write_text("".join(json.dumps(document) + "\n" for document in documents), "utf-8")


def test_the_sample_of_the_last_release_opens(given: tuple[Format, Path]) -> None:
    found, path = given
    found.open(path)


@pytest.mark.parametrize("change", ["newer", "older", "none"])
def test_another_version_is_refused_with_what_to_do(given: tuple[Format, Path], change: str) -> None:
    found, path = given
    other = {"newer": found.version + 1, "older": found.version - 1, "none": None}[change]
    _set_version(path / found.file if found.file else path, found.key, found.version, other)
    with pytest.raises(GnothiError) as refused:
        found.open(path)
    said = refused.value.message
    assert path.name in said, "which file"
    assert "expected" in said or f"reads {found.version}" in said or "gnothi" in said, said


def test_the_sample_of_feedback_is_what_is_written_now() -> None:
    (line,) = (SAMPLES / "feedback.jsonl").read_text("utf-8").splitlines()
    (one,) = read_feedback(SAMPLES / "feedback.jsonl")
    assert isinstance(one, Judged)
    assert json.loads(line) == json.loads(json.dumps(one.as_dict()))


_DEEP = "deep"


@pytest.mark.parametrize("value", [10**400, -1, "\x00", None, _DEEP], ids=["huge", "-1", "text", "none", "deep"])
def test_a_value_that_cannot_be_is_refused_or_does_no_harm(given: tuple[Format, Path], value: Any) -> None:
    found, path = given
    file = path / found.file if found.file else path
    toml = file.suffix == ".toml"
    read, write = (tomllib.loads, tomli_w.dumps) if toml else (json.loads, json.dumps)
    lines = file.read_text("utf-8").splitlines() if file.suffix == ".jsonl" else [file.read_text("utf-8")]
    count = len(_places(read(lines[0])))
    for place in range(0, count, 1 + count // 60):  # all, or as many from all over the document
        root = read(lines[0])
        holder, key = _places(root)[place]
        holder[key] = "" if toml and value is None else value  # TOML has no null
        deep = "[" * 800 + "]" * 800
        file.write_text("\n".join([write(root).replace(f'"{_DEEP}"', deep), *lines[1:]]) + "\n", "utf-8")
        with suppress(GnothiError):
            found.open(path)


def _places(root: Any) -> list[tuple[Any, Any]]:
    """Every place of a value in a tree of JSON: what holds it, and the key."""
    found = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            found.append((node, key))
            waiting.append(node[key])
    return found
