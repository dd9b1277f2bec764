"""An index follows its folders: after each build, whatever happened before, it holds what one built afresh holds."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import pytest

from gnothi.errors import IndexUnavailable, InvalidInput
from gnothi.retrieval import build as module
from gnothi.retrieval import left_out
from gnothi.retrieval.build import BuildReport, build
from gnothi.retrieval.folder import read_manifest
from gnothi.retrieval.ingest.base import Unreadable
from gnothi.retrieval.ledger import FolderLedger
from gnothi.retrieval.listing import delete_sources, sources
from gnothi.retrieval.writer import IndexWriter
from gnothi.types import Passage
from tests.messages import refused
from tests.retrieval.documents import contents

Texts = list[tuple[str, str, str]]


def texts(out: Path) -> Texts:
    return as_texts(contents(out))


def as_texts(passages: Mapping[str, Passage]) -> Texts:
    return sorted((key, one.title, one.text) for key, one in passages.items())


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def records(path: Path, **texts_by_id: str) -> Path:
    return write(path, "".join(json.dumps({"id": key, "text": text}) + "\n" for key, text in texts_by_id.items()))


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    write(tmp_path / "docs" / "a.txt", "The heron waits.")
    write(tmp_path / "docs" / "sub" / "b.md", "# Plums\nSalted plums keep.")
    records(tmp_path / "docs" / "c.jsonl", x1="one", x2="two")
    return tmp_path / "docs"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "index"


def assert_as_afresh(
    docs: Path, out: Path | str, fresh: Path | None = None, read: Callable[[], Texts] | None = None
) -> BuildReport:
    report = build([docs], out)
    fresh = fresh or Path(out).with_name("fresh")
    shutil.rmtree(fresh, ignore_errors=True)
    build([docs], fresh)
    assert (read() if read else texts(Path(out))) == texts(fresh)
    return report


def test_deleted_moved_renamed_and_replaced_by_a_folder(docs: Path, out: Path) -> None:
    build([docs], out)
    (docs / "c.jsonl").unlink()
    (docs / "a.txt").rename(docs / "sub" / "a.txt")
    (docs / "sub").rename(docs / "other")
    report = assert_as_afresh(docs, out)
    assert (report.moved, report.deleted, report.gone.first) == (2, 1, ["docs/c.jsonl"])
    (docs / "other" / "a.txt").unlink()
    write(docs / "other" / "a.txt" / "inner.txt", "Inside.")
    assert_as_afresh(docs, out)


def test_what_is_gone_is_kept_on_demand_and_a_move_is_followed_nevertheless(docs: Path, out: Path) -> None:
    build([docs], out)
    (docs / "a.txt").unlink()
    (docs / "sub" / "b.md").rename(docs / "b2.md")
    report = build([docs], out, keep_missing=True)
    assert (report.moved, report.deleted) == (1, 0)
    assert set(contents(out)) == {"docs/a.txt#1", "docs/b2.md#1", "x1", "x2"}


def test_other_roots_stay_and_a_missing_one_is_told(docs: Path, out: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other" / "a.txt", "Another text.").parent
    build([docs, other], out)
    shutil.rmtree(other)
    report = build([docs], out)
    assert "other/a.txt#1" in contents(out)
    assert f"{other} is not there" in report.notices.first[0]
    with refused(InvalidInput):
        build([docs, other], out)


@pytest.mark.parametrize("how", ["empty", "hidden"])
def test_a_folder_that_is_suddenly_empty_is_refused_until_it_is_meant(docs: Path, out: Path, how: str) -> None:
    build([docs], out)
    before = texts(out)
    shutil.rmtree(docs)
    docs.mkdir()
    if how == "hidden":
        write(docs / ".keep", "")
    with refused(InvalidInput):
        build([docs], out)
    assert build([docs], out, keep_missing=True).deleted == 0
    assert texts(out) == before
    deleted = delete_sources(out, [str(docs)])
    assert (len(deleted.sources), deleted.there, deleted.passages) == (3, (), 0)
    assert build([docs], out).passages == 0


def test_a_folder_that_cannot_be_read_loses_nothing(docs: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build([docs], out)
    before = texts(out)
    listed = os.listdir

    def refuse(path: Path) -> list[str]:
        if Path(path).name == "sub":
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(os, "listdir", refuse)
    assert build([docs], out).unreadable.count == 1
    assert texts(out) == before


def test_one_folder_by_many_paths(docs: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build([docs], out)
    before = texts(out)
    (tmp_path / "link").symlink_to(docs, target_is_directory=True)
    monkeypatch.chdir(docs)
    for path in (tmp_path / "link", f"{docs}/", "../docs", ".", docs / "sub" / "..", tmp_path / "link" / "sub", docs / "sub"):
        report = build([path], out)
        assert (report.unchanged, report.deleted) == (report.sources, 0)
        assert texts(out) == before
    (docs / "sub" / "b.md").unlink()
    write(docs / "sub" / "new.txt", "New.")
    build([tmp_path / "link" / "sub"], out)
    assert_as_afresh(docs, out)


def test_nested_folders_read_a_file_once(docs: Path, out: Path) -> None:
    build([docs / "sub"], out)
    report = build([docs / "sub", docs], out)
    assert (report.sources, report.unchanged) == (3, 1)
    assert len(contents(out)) == 4
    shutil.rmtree(docs / "sub")
    assert build([docs], out).deleted == 1


def test_a_hidden_folder_that_was_named_stays(docs: Path, out: Path) -> None:
    hidden = write(docs / ".notes" / "n.txt", "Hidden.").parent
    build([docs, hidden], out)
    build([docs], out)
    assert any("Hidden." in text for _, _, text in texts(out))


def test_a_folder_that_moved_is_followed(docs: Path, out: Path, tmp_path: Path) -> None:
    build([docs], out)
    docs.rename(tmp_path / "papers")
    write(tmp_path / "papers" / "a.txt", "Changed meanwhile.")
    (tmp_path / "papers" / "sub" / "b.md").unlink()
    assert_as_afresh(tmp_path / "papers", out)


def test_ids_that_two_files_have_come_back_when_one_goes(docs: Path, out: Path) -> None:
    records(docs / "d.jsonl", x2="another two", x3="three")
    assert build([docs], out).replaced == 1
    assert build([docs], out).replaced == 0
    records(docs / "c.jsonl", x1="one", x2="changed")  # the later file still has the id
    assert_as_afresh(docs, out)
    records(docs / "b.jsonl", x1="early", x3="early")  # an earlier one does not take it
    assert_as_afresh(docs, out)
    records(docs / "d.jsonl", x3="three")
    assert_as_afresh(docs, out)
    (docs / "d.jsonl").unlink()
    assert_as_afresh(docs, out)


def test_a_copy_that_goes_takes_nothing_with_it(docs: Path, out: Path) -> None:
    shutil.copy(docs / "c.jsonl", docs / "z.jsonl")
    build([docs], out)
    (docs / "z.jsonl").unlink()
    assert_as_afresh(docs, out)


def test_a_change_that_leaves_size_and_time_is_seen(docs: Path, out: Path) -> None:
    build([docs], out)
    status = (docs / "a.txt").stat()
    write(docs / "a.txt", "The heron sleeps"[: status.st_size])
    os.utime(docs / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert_as_afresh(docs, out)


def test_a_touched_file_is_not_read_again(docs: Path, out: Path) -> None:
    build([docs], out)
    os.utime(docs / "a.txt", ns=(1, 1))
    assert build([docs], out).unchanged == 3


def test_what_a_file_is_when_it_was_read_counts(docs: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = module._steps

    def changing(found: object, *given: object) -> object:
        yield from steps(found, *given)  # type: ignore[arg-type]
        if Path(found.path).name == "a.txt":  # type: ignore[attr-defined]
            write(docs / "a.txt", "Changed after it was read.")

    with monkeypatch.context() as context:
        context.setattr(module, "_steps", changing)
        assert "changed while it was read" in build([docs], out).notices.first[0]
    assert_as_afresh(docs, out)


def test_a_document_whose_new_version_breaks_off_keeps_the_old(docs: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(docs / "a.txt", "The heron waits. " * 100)
    build([docs], out)
    before = texts(out)
    write(docs / "a.txt", "It left. " * 1000)
    steps = module._steps

    def breaking(*given: object) -> object:
        for number, step in enumerate(steps(*given)):  # type: ignore[arg-type]
            if number == 3:
                raise Unreadable("it breaks off.")
            yield step

    monkeypatch.setattr(module, "_steps", breaking)
    report = build([docs], out)
    assert "What was read from it before stays." in report.unreadable.first[0]
    assert texts(out) == before


def test_sources_are_listed_with_their_state(docs: Path, out: Path) -> None:
    build([docs], out)
    (docs / "a.txt").unlink()
    write(docs / "sub" / "b.md", "Changed, and longer.")
    found = {one.source: (one.passages, one.state) for one in sources(out)}
    assert found == {"docs/a.txt": (1, "gone"), "docs/sub/b.md": (1, "changed"), "docs/c.jsonl": (2, "read")}


def test_a_deleted_source_is_read_again_if_it_is_there(docs: Path, out: Path) -> None:
    build([docs], out)
    deleted = delete_sources(out, ["docs/sub", "nothing"])
    assert (deleted.sources, deleted.there) == (("docs/sub/b.md",), (str(docs / "sub" / "b.md"),))
    assert (deleted.missing, deleted.deleted) == (("nothing",), 1)
    assert_as_afresh(docs, out)


def test_an_index_with_a_broken_file_stays_complete_when_another_is_deleted(docs: Path, out: Path) -> None:
    write(docs / "d.jsonl", '{"text": "One."}\n{"text": broken\n')
    build([docs], out)
    (left,) = left_out.read(out)
    assert (left.path, left.reason[:7]) == (str(docs / "d.jsonl"), "line 2:")
    delete_sources(out, ["docs/sub"])
    assert read_manifest(out).complete


def test_notices_stay_as_long_as_their_file_does(docs: Path, out: Path) -> None:
    def notices() -> list[tuple[str, bool]]:
        return [(Path(one.path).name, one.unreadable) for one in left_out.read(out) if one.read]

    (docs / "d.txt").write_bytes("Die Brücke ist alt.".encode("cp1252"))
    for _ in range(2):
        build([docs], out)
        assert notices() == [("d.txt", False)]
    write(docs / "d.txt", "Die Brücke ist sehr alt.")
    build([docs], out)
    assert notices() == []
    (docs / "d.txt").write_bytes("Die Brücke war alt.".encode("cp1252"))
    build([docs], out)
    assert notices() == [("d.txt", False)]
    (docs / "d.txt").unlink()
    build([docs], out)
    assert notices() == []


def test_shared_ids_are_noted_as_long_as_they_are(docs: Path, out: Path, tmp_path: Path) -> None:
    def lost(folder: Path) -> list[tuple[str, str]]:
        return [(Path(one.path).name, one.reason.partition(":")[0]) for one in left_out.read(folder)]

    def assert_noted(*expected: tuple[str, str]) -> None:
        assert_as_afresh(docs, out)
        assert lost(out) == list(expected)

    two = "has 2 passages with an id that docs/d.jsonl has too"
    one = "has 1 passage with an id that docs/d.jsonl has too"
    records(docs / "d.jsonl", x1="another one", x2="another two")
    assert_noted(("c.jsonl", two))
    records(docs / "c.jsonl", x1="changed", x2="changed", x3="three")
    assert_noted(("c.jsonl", two))
    records(docs / "d.jsonl", x1="changed as well", x4="four")
    assert_noted(("c.jsonl", one))
    records(docs / "b.jsonl", x1="early")
    assert_noted(("b.jsonl", one), ("c.jsonl", one))
    (docs / "d.jsonl").unlink()
    (docs / "b.jsonl").unlink()
    write(docs / "e.jsonl", '{"id": "e", "text": "one"}\n{"id": "e", "text": "two"}\n')
    repeats = ("e.jsonl", "has passages of the same id")
    assert_noted(repeats)
    records(docs / "f.jsonl", e="three")
    assert_noted(("e.jsonl", "has 1 passage with an id that docs/f.jsonl has too"), repeats)
    (docs / "f.jsonl").unlink()
    assert_noted(repeats)
    other = records(tmp_path / "other" / "f.jsonl", x1="elsewhere")
    build([other.parent], out)
    assert lost(out)[0] == ("c.jsonl", "has 1 passage with an id that other/f.jsonl has too")
    records(other, x9="nine")
    build([other.parent], out)
    assert [name for name, _ in lost(out)] == ["e.jsonl"]


def test_an_index_of_an_earlier_version_is_refused(docs: Path, out: Path) -> None:
    import sqlite3

    build([docs], out)
    (out / "gnothi-sources.sqlite").unlink()
    old = sqlite3.connect(out / "gnothi-sources.sqlite")
    old.execute("CREATE TABLE sources (key TEXT PRIMARY KEY, path TEXT)")
    old.close()
    with refused(IndexUnavailable):
        build([docs], out)


class Killed(BaseException):
    """In the place of a kill: nothing after it is done."""


def kill_twice(root: Path, out: Path | str, read: Callable[[], Texts], ledger: type) -> None:
    """What killed builds stored goes with its files, and gives back what it took from others."""
    folder, save = root / "docs", ledger.save  # type: ignore[attr-defined]
    saved = 0

    def stop(self: object) -> None:
        nonlocal saved
        if saved == 0:
            raise Killed
        saved -= 1
        save(self)

    records(folder / "b.jsonl", x="Of b.")
    build([folder], out)
    records(folder / "z.jsonl", x="Of z.", y="Of z, too.")
    with patch.object(ledger, "save", stop), suppress(Killed):
        build([folder], out)
    (folder / "z.jsonl").unlink()
    for number in range(4):
        write(folder / f"{number}.txt", "A heron waits. " * 9)
    saved = 2
    with patch.object(ledger, "save", stop), patch.object(module, "_COMMIT_BYTES", 50), suppress(Killed):
        build([folder], out)
    build([folder], out)
    build([folder], root / "fresh")
    assert read() == texts(root / "fresh")


def test_two_builds_killed_one_after_the_other(tmp_path: Path, out: Path) -> None:
    kill_twice(tmp_path, out, lambda: texts(out), FolderLedger)


def test_whom_a_killed_build_took_a_passage_from_gets_it_back_when_another_folder_is_built(docs: Path, out: Path) -> None:
    """The next build finds the passage standing and cannot know whose place it took, whose folder it does not read."""
    other = docs.with_name("other")
    records(other / "d.jsonl", x2="another two")
    records(other / "e.jsonl", x3="three")
    build([docs], out)
    with patch.object(FolderLedger, "save", side_effect=Killed), suppress(Killed):
        build([other], out)
    build([other], out)
    assert contents(out)["x2"].text == "another two"
    (other / "d.jsonl").unlink()
    build([other], out)
    assert contents(out)["x2"].text == "two"


def walk(
    root: Path,
    out: Path | str,
    seed: int,
    operations: int,
    read: Callable[[], Texts] | None = None,
    writer: type = IndexWriter,
    ledger: type = FolderLedger,
) -> None:
    """Files and folders are changed at random, with builds between, some of which end early at a point drawn. ``read`` gives
    what ``out`` holds."""
    chance = random.Random(seed)
    folder = root / "docs"
    names = ["a.txt", "b.md", "c.txt", "d.jsonl", "e.jsonl", "f.jsonl"]
    write(folder / "stays.txt", "This one stays.")

    def fill(path: Path) -> None:
        words = " ".join(chance.choices(["heron", "plum", "lamp", "tide", "oak"], k=chance.randint(1, 40)))
        if path.suffix == ".jsonl":
            records(path, **{f"id{chance.randint(0, 6)}": f"{words} {n}" for n in range(chance.randint(0, 4))})
        else:
            write(path, words)

    def any_place() -> Path:
        return folder.joinpath(*chance.choices(["x", "y", "z"], k=chance.randint(0, 2)))

    def change() -> None:
        files = [one for one in folder.rglob("*") if one.is_file() and one.name != "stays.txt"]
        folders = [one for one in folder.rglob("*") if one.is_dir()]
        what = chance.choice(["make", "make", "edit", "move", "copy", "delete", "swap", "move folder", "delete folder", "turn"])
        path = any_place() / chance.choice(names)
        one = chance.choice(files) if files else None
        try:
            if what == "make":
                fill(path)
            elif what == "edit" and one:
                fill(one)
            elif what in ("move", "copy") and one and not (path := path.with_suffix(one.suffix)).exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                (shutil.move if what == "move" else shutil.copy2)(one, path)
            elif what == "delete" and one:
                one.unlink()
            elif what == "swap" and one:  # with one of its format: an unreadable file keeps what it held
                other = chance.choice([file for file in files if file.suffix == one.suffix])
                one.rename(root / "aside")
                if other != one:
                    other.rename(one)
                (root / "aside").rename(other)
            elif what == "move folder" and folders:
                chance.choice(folders).rename(any_place())
            elif what == "delete folder" and folders:
                shutil.rmtree(chance.choice(folders))
            elif what == "turn" and one:
                one.unlink()
                write(one / "inner.txt", "Inside.")
        except OSError:  # a folder into itself, a file where a folder would be
            pass

    def killed_build() -> None:
        owner, name = chance.choice([(writer, "commit"), (ledger, "save"), (writer, "put_all"), (writer, "delete_origin")])
        left, after = chance.randint(0, 3), chance.random() < 0.5
        done = getattr(owner, name)

        def stop(*given: object, **more: object) -> object:
            nonlocal left
            left -= 1
            result = done(*given, **more) if left >= 0 or after else None
            if left < 0:
                raise Killed
            return result

        small = patch.multiple(module, _COMMIT_BYTES=300, BATCH=2)
        with suppress(Killed), small, patch.object(owner, name, stop):
            build([folder], out)

    for number in range(operations):
        change()
        while chance.random() < 0.15:
            killed_build()
            if chance.random() < 0.5:
                change()
        if number % 8 == 0 or number == operations - 1:
            part = [one for one in folder.iterdir() if one.is_dir() and any(f.is_file() for f in one.rglob("*"))]
            if part and chance.random() < 0.3:
                build([chance.choice(part)], out)
            assert_as_afresh(folder, out, root / "fresh", read)


@pytest.mark.parametrize("seed", range(2))
def test_a_short_walk(tmp_path: Path, seed: int) -> None:
    walk(tmp_path, tmp_path / "index", seed, 40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [100, *(pytest.param(seed, marks=pytest.mark.long) for seed in (101, 102, 103))])
def test_a_long_walk(tmp_path: Path, seed: int) -> None:
    walk(tmp_path, tmp_path / "index", seed, 200)
