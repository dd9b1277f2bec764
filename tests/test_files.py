"""Only what ends is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gnothi.errors import GnothiError
from gnothi.files import all_regular, home_expanded, regular
from gnothi.filtering.complexity import open_complexity
from gnothi.filtering.knowledge import open_knowledge
from gnothi.filtering.learned import open_gate
from gnothi.filtering.reference import open_reference
from gnothi.graph.registry import open_graph
from gnothi.models.places import locate
from gnothi.retrieval.registry import open_index
from gnothi.runs.folder import read_rows
from gnothi.runs.journal import read_config
from gnothi.signals.probe_folder import open_probe
from tests.messages import refused

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")


def test_a_pipe_and_a_device_are_refused_and_what_is_absent_is_not(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "to pipe").symlink_to("pipe")
    for odd in (tmp_path / "pipe", tmp_path / "to pipe", Path(os.devnull)):
        with refused(OSError):
            regular(odd)
    (tmp_path / "file").touch()
    for fine in (tmp_path / "file", tmp_path, tmp_path / "absent"):
        assert regular(fine) == fine
    with refused(OSError):
        all_regular(tmp_path)


def test_the_home_of_a_user_who_is_not_there_names_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home_expanded("~/a") == tmp_path / "a"
    assert home_expanded("~nobody-of-that-name/a") == Path("~nobody-of-that-name/a")
    with pytest.raises(GnothiError):
        locate("~nobody-of-that-name/a", "one", on_the_hub=False)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("name", "opening"),
    [
        ("gnothi-index.json", lambda folder: open_index(f"{folder}")),
        ("gnothi-index.json", lambda folder: open_graph(f"{folder}")),
        ("gate.json", open_gate),
        ("complexity.json", open_complexity),
        ("knowledge.json", open_knowledge),
        ("reference.json", lambda folder: open_reference(str(folder))),
        ("probe.json", open_probe),
        ("config.toml", read_config),
        ("rows.jsonl", read_rows),
        ("config.json", lambda folder: locate(str(folder), "it")),
    ],
)
def test_a_folder_with_a_pipe_is_refused_at_once(tmp_path: Path, name: str, opening: object) -> None:
    os.mkfifo(tmp_path / name)
    assert callable(opening)
    with pytest.raises((GnothiError, OSError)) as refused:
        opening(tmp_path)
    assert str(refused.value)
