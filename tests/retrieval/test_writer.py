from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.folder import read_manifest
from gnothi.retrieval.writer import IndexWriter
from gnothi.types import Passage
from tests.messages import refused
from tests.retrieval.documents import contents, made_up


def test_adds_and_deletes_become_visible_to_an_open_reader_at_the_commit(tmp_path: Path) -> None:
    path = tmp_path / "index"
    with IndexWriter(path) as writer:
        writer.put(Passage("a", "herons"))
        writer.commit()
        reader = BM25Index.open(path)
        writer.put(Passage("b", "herons"))
        writer.delete("a")
        assert [r.passage.id for r in reader.search_blocking("heron", 5)] == ["a"]
        writer.commit()
        assert [r.passage.id for r in reader.search_blocking("heron", 5)] == ["b"]
        assert len(reader) == writer.passages == 1


def test_put_tells_what_it_did(tmp_path: Path) -> None:
    with IndexWriter(tmp_path / "index") as writer:
        assert writer.put(Passage("a", "x"), "o") == "added"
        assert writer.put(Passage("a", "y"), "o") == "replaced"
        writer.commit()
        assert writer.put(Passage("a", "y"), "o") == "standing"
        assert writer.put(Passage("a", "y"), "other") == "replaced"
        assert writer.put(Passage("a", "z"), "o") == "replaced"
        writer.commit()
        assert contents(tmp_path / "index") == {"a": Passage("a", "z")}


def test_delete_tells_whether_there_was_something(tmp_path: Path) -> None:
    with IndexWriter(tmp_path / "index") as writer:
        writer.put(Passage("a", "x"))
        assert writer.delete("a")
        assert not writer.delete("a")
        writer.put(Passage("a", "y"))
        writer.commit()
        assert writer.delete("a")
        assert not writer.delete("b")
        assert not writer.delete("\udc00")


def test_an_origin_is_deleted_as_a_whole_but_not_what_has_moved_on(tmp_path: Path) -> None:
    with IndexWriter(tmp_path / "index") as writer:
        for i in range(5):
            writer.put(Passage(f"p{i}", "old"), "v1")
        writer.commit()
        for i in range(2):
            writer.put(Passage(f"p{i}", "new"), "v2")
        writer.delete_origin("v1")
        writer.commit()
    assert contents(tmp_path / "index") == {f"p{i}": Passage(f"p{i}", "new") for i in range(2)}


IDS = st.sampled_from(["a", "b", "c", "d"])
ACTIONS = st.one_of(
    st.tuples(st.just("put"), IDS, st.text(max_size=8), st.sampled_from(["o1", "o2"])),
    st.tuples(st.just("delete"), IDS),
    st.tuples(st.just("delete_origin"), st.sampled_from(["o1", "o2"])),
    st.tuples(st.just("commit")),
)


@given(actions=st.lists(ACTIONS, max_size=14))
@settings(max_examples=15)
def test_the_index_is_a_dictionary(tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, ...]]) -> None:
    path = tmp_path_factory.mktemp("writer") / "index"
    expected: dict[str, tuple[str, str]] = {}
    with IndexWriter(path) as writer:
        for action, *rest in actions:
            if action == "put":
                expected[rest[0]] = (rest[1], rest[2])
                writer.put(Passage(rest[0], rest[1]), rest[2])
            elif action == "delete":
                assert writer.delete(rest[0]) == (expected.pop(rest[0], None) is not None)
            elif action == "delete_origin":
                expected = {key: value for key, value in expected.items() if value[1] != rest[0]}
                writer.delete_origin(rest[0])
            else:
                writer.commit()
        writer.commit()
    assert {key: passage.text for key, passage in contents(path).items()} == {key: text for key, (text, _) in expected.items()}


def test_lone_surrogates_are_replaced_not_fatal(tmp_path: Path) -> None:
    with IndexWriter(tmp_path / "index") as writer:
        writer.put(Passage("a\ud800", "b\udfff", "c\ud800"))
        writer.commit()
    assert contents(tmp_path / "index") == {"a?": Passage("a?", "b?", "c?")}


def test_leaving_without_a_commit_drops_the_rest_and_frees_the_lock(tmp_path: Path) -> None:
    with IndexWriter(tmp_path / "index") as writer:
        writer.put(Passage("a", "x"))
        writer.commit()
        writer.put(Passage("b", "x"))
    with refused(IndexUnavailable):
        writer.put(Passage("c", "x"))
    with IndexWriter(tmp_path / "index") as again:
        assert again.passages == 1


def test_one_writer_at_a_time_in_this_process(tmp_path: Path) -> None:
    with IndexWriter(tmp_path / "index") as writer:
        writer.put(Passage("a", "x"))
        writer.commit()
        with refused(IndexUnavailable):
            IndexWriter(tmp_path / "index")
        writer.put(Passage("b", "x"))
        writer.commit()
    assert set(contents(tmp_path / "index")) == {"a", "b"}


def test_one_writer_at_a_time_between_processes(tmp_path: Path) -> None:
    with IndexWriter(tmp_path / "index"):
        code = f"from gnothi.retrieval.writer import IndexWriter; IndexWriter({str(tmp_path / 'index')!r})"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=_environment(), check=False)
    assert other.returncode != 0
    assert "one writer at a time" in other.stderr


def test_the_manifest_counts_along(tmp_path: Path) -> None:
    with IndexWriter(tmp_path / "index") as writer:
        assert not read_manifest(tmp_path / "index").complete
        for passage in made_up(1, 20):
            writer.put(passage)
        writer.commit(complete=False)
        assert read_manifest(tmp_path / "index").passages == 20
        assert not read_manifest(tmp_path / "index").complete
        writer.commit()
    assert read_manifest(tmp_path / "index").complete


def test_too_little_memory_is_refused(tmp_path: Path) -> None:
    with refused(InvalidSetting):
        IndexWriter(tmp_path / "index", memory_mb=10)


# Under this limit no file can grow beyond 60 kB, which is what a full disk looks like to the engine's threads.
_FULL_DISK = """
import resource, sys
from gnothi.errors import GnothiError
from gnothi.retrieval.writer import IndexWriter
from tests.retrieval.documents import made_up
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
try:
    with IndexWriter(sys.argv[1]) as writer:
        for passage in made_up(2, 5000):
            writer.put(passage)
        writer.commit()
except GnothiError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def test_a_full_disk_is_said_and_what_was_committed_stays(tmp_path: Path) -> None:
    path = tmp_path / "index"
    with IndexWriter(path) as writer:
        for passage in made_up(1, 50):
            writer.put(passage)
        writer.commit()
    before = contents(path)
    full = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, str(path)], capture_output=True, text=True, env=_environment(), check=False
    )
    assert (full.returncode, full.stderr) == (3, "")
    assert "the disk is full" in full.stdout
    assert "run the same command again" in full.stdout
    assert contents(path) == before
    with IndexWriter(path) as writer:
        for passage in made_up(2, 5000):
            writer.put(passage)
        writer.commit()
    assert contents(path) == before | {passage.id: passage for passage in made_up(2, 5000)}


def _environment() -> dict[str, str]:
    root = Path(__file__).parents[2]
    return {"PYTHONPATH": f"{root / 'src'}:{root}"}
