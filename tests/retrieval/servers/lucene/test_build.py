"""Building: added to, changed, interrupted, two at a time, refused where it would do harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.retrieval.build import build
from gnothi.retrieval.listing import delete_sources
from gnothi.retrieval.servers.lucene.notes import LuceneLedger
from gnothi.retrieval.servers.lucene.writer import LuceneWriter, opened
from gnothi.types import Passage
from tests.retrieval.documents import contents, made_up, write_jsonl
from tests.retrieval.servers.builds import Run, check_changes, check_command_line, check_kills, make_sources
from tests.retrieval.servers.lucene.conftest import described, stored
from tests.retrieval.servers.lucene.fake import Fake, Shelf
from tests.retrieval.test_sync import Texts, as_texts, kill_twice, walk

KILLS = 3


def target(fake: Fake, index: str) -> str:
    return f"{fake.engine}:{fake.url}/{index}"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make_sources(tmp_path / "docs", 500, 6, (Passage("x" * 500, "Long."),))


def test_the_same_passages_as_in_a_folder_whatever_changes(source: Path, tmp_path: Path, fake: Fake) -> None:
    check_changes(source, target(fake, "changes"), tmp_path / "folder", lambda: stored(fake, "changes"), shorter=300)


def test_what_a_killed_build_left_of_a_version_that_is_gone_is_deleted(
    source: Path, tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(LuceneWriter, "commit", killed)
        with pytest.raises(Killed):
            build([source], target(fake, "killed"))
    assert len(fake.shelves["killed"].documents) > 300
    write_jsonl(source / "corpus.jsonl", made_up(2, 50))
    build([source], target(fake, "killed"))
    build([source], tmp_path / "folder")
    assert stored(fake, "killed") == contents(tmp_path / "folder")


@pytest.mark.slow
def test_builds_killed_with_sigkill_resume_to_the_same_index(source: Path, tmp_path: Path, fake: Fake) -> None:
    check_kills(
        source,
        target(fake, "undisturbed"),
        target(fake, "sigkill"),
        tmp_path / "folder",
        lambda: stored(fake, "sigkill"),
        KILLS,
        "5",
        killed=lambda: {one["id"]: Passage(one["id"], one["text"]) for one in fake.shelves["sigkill"].documents.values()},
    )


def test_a_build_that_begins_later_takes_over(source: Path, tmp_path: Path, fake: Fake) -> None:
    argument = target(fake, "busy").partition(":")[2]
    with opened(argument, fake.engine) as first:  # type: ignore[arg-type]
        first.writer.put_all([(Passage("a", "b"), "origin")])
        build([source], target(fake, "busy"))
        with pytest.raises(IndexUnavailable, match="another build, which began later"):
            first.writer.put_all([(Passage("c", "d"), "origin")])
    build([source], tmp_path / "folder")
    assert stored(fake, "busy") == contents(tmp_path / "folder")


def test_an_index_of_others_is_not_touched(source: Path, fake: Fake) -> None:
    fake.shelves["precious"] = Shelf({})
    with pytest.raises(IndexUnavailable, match="no build of ours made it"):
        build([source], target(fake, "precious"))
    assert list(fake.shelves) == ["precious"]


def test_an_index_that_was_removed_is_built_whole(source: Path, fake: Fake) -> None:
    build([source], target(fake, "removed"))
    before = stored(fake, "removed")
    del fake.shelves["removed"]
    build([source], target(fake, "removed"))
    assert stored(fake, "removed") == before


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('prefix = "x/"', "prefix"),
        ('id = "_id"', "names of fields"),
        ('words = ""', "names of fields"),
        ('title = ""', "names of fields"),
    ],
)
def test_what_cannot_be_built(source: Path, tmp_path: Path, fake: Fake, more: str, said: str) -> None:
    with pytest.raises(InvalidSetting, match=said):
        build([source], described(tmp_path, fake, index="odd", more=more))
    for name in ("Notes", "notes*", "_all", "a" * 250):
        with pytest.raises(InvalidSetting, match="small letters"):
            build([source], target(fake, name))
    assert fake.shelves == {}


def test_a_passage_that_the_server_does_not_take_is_named(tmp_path: Path, fake: Fake) -> None:
    with pytest.raises(IndexUnavailable, match=r"does not take a passage: .*strict"):
        build([write_jsonl(tmp_path / "a.jsonl", [Passage("a", "unacceptable")])], target(fake, "odd"))


def test_large_passages_go_in_several_requests(tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnothi.retrieval.servers.lucene.client._REQUEST_BYTES", 2_000)
    passages = [Passage(str(i), f"heron {i} " * 100) for i in range(10)]
    build([write_jsonl(tmp_path / "a.jsonl", passages)], target(fake, "large"), words=0)
    assert len(stored(fake, "large")) == 10


def test_the_command_line(gnothi: Run, fake: Fake, tmp_path: Path) -> None:
    check_command_line(gnothi, tmp_path, target(fake, "shown"), f"{fake.engine}:http://127.0.0.1:9/x")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_it_follows_its_folders_whatever_is_killed(tmp_path: Path, fake: Fake, seed: int) -> None:
    def read() -> Texts:
        return as_texts(stored(fake, "walk"))

    walk(tmp_path, target(fake, "walk"), seed, 80, read, LuceneWriter, LuceneLedger)


def test_two_builds_killed_one_after_the_other(tmp_path: Path, fake: Fake) -> None:
    kill_twice(tmp_path, target(fake, "twice"), lambda: as_texts(stored(fake, "twice")), LuceneLedger)


def test_files_are_deleted_from_what_is_there_alone(gnothi: Run, source: Path, fake: Fake) -> None:
    spec = target(fake, "sources")
    code, _, err = gnothi("index", "delete", spec, "docs")
    assert (code, "Traceback" in err) == (3, False)
    assert fake.shelves == {}
    build([source], spec)
    assert delete_sources(spec, ["docs/note 3.txt"]).sources == ("docs/note 3.txt",)
    assert not any("Note 3." in one.text for one in stored(fake, "sources").values())
    for how in ((), ("--files",)):
        code, _, err = gnothi("index", "info", spec, *how)
        assert (code, "expected the folder" in err) == (2, True)


def test_an_index_of_an_earlier_version_is_refused_with_the_command(source: Path, fake: Fake) -> None:
    build([source], target(fake, "old"))
    del fake.shelves["old-gnothi"].documents["notes"]["version"]
    with pytest.raises(IndexUnavailable, match="gnothi index build SOURCE"):
        build([source], target(fake, "old"))
