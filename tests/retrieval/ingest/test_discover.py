from __future__ import annotations

import os
from pathlib import Path

import pytest

from gnothi.errors import InvalidInput
from gnothi.retrieval.ingest.discover import Skipped, SourceFile, discover
from gnothi.retrieval.ingest.formats import FORMATS
from tests.messages import refused


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    for name in ("b.txt", "a.MD", "sub/c.html", "sub/deep/d.pdf", ".hidden/e.txt", ".f.txt", "g.png", "Makefile", "out/h.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("words")
    return root


def found(tree: Path, *sources: Path) -> tuple[list[str], list[str]]:
    items = list(discover(sources or [tree], tree / "out", FORMATS))
    return (
        [str(item.path.relative_to(tree)) for item in items if isinstance(item, SourceFile)],
        [f"{item.path.relative_to(tree)}: {item.reason}" for item in items if isinstance(item, Skipped)],
    )


def test_a_folder_is_walked_in_order_without_hidden_files_and_the_index(tree: Path) -> None:
    files, skipped = found(tree)
    assert files == ["a.MD", "b.txt", "sub/c.html", "sub/deep/d.pdf"]
    assert skipped == ["Makefile: is of no known format", "g.png: is of no known format (.png)"]


def test_what_is_no_regular_file_is_skipped_and_links_to_folders_are_not_followed(tree: Path) -> None:
    os.mkfifo(tree / "pipe.txt")  # reading it would wait for ever
    (tree / "loop").symlink_to(tree, target_is_directory=True)
    (tree / "nothing.txt").symlink_to(tree / "gone")
    (tree / "link.txt").symlink_to(tree / ".f.txt")
    (tree / "twice.txt").symlink_to(tree / "sub" / "c.html")
    (tree / "self.txt").symlink_to(tree / "self.txt")
    files, skipped = found(tree)
    assert files == ["a.MD", "b.txt", "link.txt", "sub/c.html", "sub/deep/d.pdf"]
    assert "self.txt: cannot be read: Too many levels of symbolic links" in skipped
    assert "twice.txt: is a link to sub/c.html, which is read itself" in skipped
    assert "nothing.txt: is a link to nothing" in skipped
    assert "pipe.txt: is not a regular file" in skipped


def test_folders_may_be_nested_deeply(tree: Path) -> None:
    deep = tree
    for _ in range(1000):
        deep /= "d"
        deep.mkdir()
    (deep / "z.txt").write_text("words")
    files, _ = found(tree)
    assert f"{'d/' * 1000}z.txt" in files
    assert len(files) == 5
    (deep / "z.txt").unlink()
    for folder in (deep, *deep.parents[:999]):  # pytest could not
        folder.rmdir()


def test_a_named_file_stands_for_itself(tree: Path) -> None:
    (item,) = discover([tree / "b.txt"], tree / "out", FORMATS)
    assert isinstance(item, SourceFile)
    assert item.named
    assert item.size == 5


@pytest.mark.parametrize("name", ["gone", "g.png", "b.txr"])
def test_a_named_source_that_cannot_be_used_is_an_error(tree: Path, name: str) -> None:
    with refused(InvalidInput):
        list(discover([tree / name], tree / "out", FORMATS))


def test_the_stamp_changes_with_the_file(tree: Path) -> None:
    def stamp() -> str:
        (item,) = discover([tree / "b.txt"], tree / "out", FORMATS)
        assert isinstance(item, SourceFile)
        return item.stamp

    before = stamp()
    assert stamp() == before
    (tree / "b.txt").write_text("Words")
    os.utime(tree / "b.txt", ns=(1, 1))
    assert stamp() != before
