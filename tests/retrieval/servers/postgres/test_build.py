"""Building into a real PostgreSQL: added to, changed, killed with SIGKILL again and again, refused where it would do harm."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.retrieval.build import build
from gnothi.retrieval.dense.encoders import Encoding
from gnothi.types import Passage
from tests.retrieval.dense import words
from tests.retrieval.documents import contents, made_up, write_jsonl
from tests.retrieval.servers.postgres.conftest import stored
from tests.retrieval.servers.postgres.engine import NEEDED, Engine
from tests.retrieval.servers.postgres.test_search import described, found

pytestmark = [NEEDED, pytest.mark.slow]
Run = Callable[..., tuple[int, str, str]]
_BUILD = """
import sys
from gnothi.retrieval import build as module
module._COMMIT_BYTES = 60_000
print("ready", flush=True)
module.build([sys.argv[1]], sys.argv[2])
"""


def start(source: Path, spec: str) -> subprocess.Popen[str]:
    root = Path(__file__).parents[4]
    process = subprocess.Popen(
        [sys.executable, "-c", _BUILD, str(source), spec],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": f"{root / 'src'}:{root}", "PATH": os.environ["PATH"]},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def ended(process: subprocess.Popen[str]) -> str:
    _, errors = process.communicate(timeout=250)
    return errors if process.returncode else ""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    write_jsonl(folder / "corpus.jsonl", [*made_up(1, 2500), Passage("s1-3", "Of one id the last counts.")])
    for i in range(30):
        (folder / f"note {i}.txt").write_text(f"Note {i}. " * 400)
    return folder


def test_the_same_passages_as_in_a_folder_whatever_changes(source: Path, tmp_path: Path, engine: Engine) -> None:
    spec = f"postgres:{engine.server}#changes"
    for change in ("nothing", "shorter", "gone", "back"):
        if change == "shorter":
            (source / "note 3.txt").write_text("Shorter.")
            write_jsonl(source / "corpus.jsonl", made_up(1, 800))
        if change == "gone":
            (source / "note 4.txt").rename(source / "note 40.txt")
        ours, theirs = build([source], spec), build([source], tmp_path / "folder")
        assert (ours.passages, ours.added, ours.replaced) == (theirs.passages, theirs.added, theirs.replaced)
        assert stored(engine, "changes") == contents(tmp_path / "folder")


def test_killed_builds_resume_to_the_same_table(source: Path, tmp_path: Path, engine: Engine) -> None:
    build([source], tmp_path / "folder")
    expected = contents(tmp_path / "folder")
    spec = f"postgres:{engine.server}#killed"
    kills = partial = 0
    while kills < 4 or not partial:
        process = start(source, spec)
        time.sleep(random.uniform(0, 0.5))
        kills += process.poll() is None
        process.kill()
        process.communicate()
        try:
            now = stored(engine, "killed")
        except Exception:  # noqa: BLE001 - there is no table yet
            continue
        assert set(now) <= set(expected)
        partial += 0 < len(now) < len(expected)
        if len(now) == len(expected):
            break
    assert kills >= 1
    _lock_is_free(engine)
    assert ended(start(source, spec)) == ""
    assert stored(engine, "killed") == expected


def test_the_server_killed_under_a_build(source: Path, tmp_path: Path, other: Engine) -> None:
    build([source], tmp_path / "folder")
    spec = f"postgres:{other.server}#under"
    process = start(source, spec)
    time.sleep(0.2)
    other.kill()
    errors = ended(process)
    other.start()
    assert not errors or "IndexUnavailable" in errors
    assert ended(start(source, spec)) == ""
    assert stored(other, "under") == contents(tmp_path / "folder")


def test_one_build_at_a_time(source: Path, engine: Engine) -> None:
    import psycopg

    from gnothi.retrieval.servers.postgres.table import tables
    from gnothi.retrieval.servers.postgres.writer import opened

    argument = f"{engine.server}#busy"
    with opened(argument, tables(argument)), pytest.raises(IndexUnavailable, match="one at a time"):
        build([source], f"postgres:{argument}")
    assert psycopg.__version__


def test_a_table_of_others_is_not_touched(engine: Engine, tmp_path: Path) -> None:
    import psycopg

    with psycopg.connect(f"postgresql:{engine.server}", autocommit=True) as connection:
        connection.execute("CREATE TABLE precious (id text, title text, text text)")
    with pytest.raises(IndexUnavailable, match="no build of ours made it"):
        build([write_jsonl(tmp_path / "a.jsonl", [Passage("a", "b")])], f"postgres:{engine.server}#precious")
    assert stored(engine, "precious") == {}


def test_a_build_writes_to_one_server(engine: Engine, other: Engine, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="got 2 servers"):
        build([tmp_path], described(tmp_path, engine, other, tables=("a", "a")))


def test_vectors_come_with_the_passages_or_not_at_all(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Encoding, "passages", lambda _: words.passages)
    monkeypatch.setattr(Encoding, "fingerprint", lambda _: "first weights")
    source = write_jsonl(tmp_path / "a.jsonl", [Passage("a", "b")])
    spec = described(tmp_path, engine, tables=("encoded",), more='encoder = "words"\nby = "vectors"')
    build([source], spec)
    with pytest.raises(IndexUnavailable, match="built with vectors"):
        build([source], f"postgres:{engine.server}#encoded")
    monkeypatch.setattr(Encoding, "fingerprint", lambda _: "other weights")
    with pytest.raises(IndexUnavailable, match="other weights"):
        build([source], spec)


async def test_text_that_the_server_cannot_hold_is_replaced(engine: Engine, tmp_path: Path) -> None:
    spec = f"postgres:{engine.server}#odd"
    build([write_jsonl(tmp_path / "a.jsonl", [Passage("a\0b", "A heron\0 stands.", "\0")])], spec)
    assert await found(spec, "heron") == [Passage("a\ufffdb", "A heron\ufffd stands.", "\ufffd")]
    build([write_jsonl(tmp_path / "a.jsonl", [Passage("a\0b", "A heron\0 stands.", "\0")])], spec)
    assert len(stored(engine, "odd")) == 1


def test_the_command_line(gnothi: Run, engine: Engine, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [Passage("a", "A heron stands in water.", "Heron")])
    spec = f"postgres:{engine.server}#shown"
    code, out, err = gnothi("index", "build", str(source), "--to", spec)
    assert (code, err) == (0, "")
    assert "1 passage (1 added or changed)" in out
    code, out, _ = gnothi("index", "search", spec, "herons", "--json")
    assert [one["id"] for one in json.loads(out)["results"]] == ["a"]
    code, out, _ = gnothi("ask", "Who?", "--model", "lab", "--method", "rag", "--index", spec, "--json")
    assert code == 0
    code, _, err = gnothi("index", "search", "postgres://postgres@127.0.0.1:9/x", "herons")
    assert code == 3
    assert "cannot be reached" in err
    assert "Traceback" not in err


def _lock_is_free(engine: Engine) -> None:
    """The server has noticed that the one who held it is gone."""
    import psycopg

    deadline = time.monotonic() + 30
    with psycopg.connect(f"postgresql:{engine.server}", autocommit=True) as connection:
        query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
        while connection.execute(query).fetchone() != (0,):
            assert time.monotonic() < deadline
            time.sleep(0.05)
