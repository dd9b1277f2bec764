"""Tables of LanceDB: conformance, tables of others, builds that are added to, changed and killed with SIGKILL."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gnothi.errors import IndexUnavailable, InvalidSetting, MissingDependency
from gnothi.protocols import Retriever
from gnothi.retrieval.build import build
from gnothi.retrieval.listing import delete_sources
from gnothi.retrieval.registry import index_fingerprint, open_index
from gnothi.testing.conformance.retriever import CORPUS, RetrieverConformance
from gnothi.types import Passage
from tests.retrieval.dense import words
from tests.retrieval.documents import bare, write_jsonl
from tests.retrieval.servers.builds import Run, check_changes, check_command_line, check_kills, make_sources
from tests.retrieval.test_sync import as_texts, kill_twice, walk

needed = pytest.mark.skipif(
    importlib.util.find_spec("lancedb") is None,
    reason="lancedb is not installed: `make test-beside` installs it in an environment of its own",
)
KILLS = 4


def built(folder: Path, passages: tuple[Passage, ...] | list[Passage] = CORPUS, table: str = "passages") -> str:
    spec = f"lancedb:{folder / 'lance'}#{table}"
    build([write_jsonl(folder / "passages.jsonl", passages)], spec)
    return spec


def stored(spec: str) -> dict[str, Passage]:
    """Every passage of a table, read by LanceDB alone."""
    import lancedb

    folder, _, table = spec.removeprefix("lancedb:").partition("#")
    rows = lancedb.connect(folder).open_table(table).to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: Passage(row["id"], row["text"], row["title"], json.loads(row["gnothi_metadata"])) for row in rows}


async def found(spec: str, query: str, k: int = 3) -> list[Passage]:
    return [bare(one.passage) for one in await open_index(spec).search(query, k)]


@needed
class TestOneTable(RetrieverConformance):
    @pytest.fixture
    async def retriever(self, tmp_path: Path) -> AsyncIterator[Retriever]:
        retriever = open_index(built(tmp_path))
        yield retriever
        await retriever.aclose()


@pytest.mark.skipif(importlib.util.find_spec("lancedb") is not None, reason="lancedb is installed")
def test_without_the_package(tmp_path: Path) -> None:
    with pytest.raises(MissingDependency, match="lancedb"):
        open_index(f"lancedb:{tmp_path}#passages")


def test_no_folder_is_made_by_a_search(tmp_path: Path) -> None:
    with pytest.raises(IndexUnavailable, match="there is no folder"):
        open_index(f"lancedb:{tmp_path / 'none'}#passages")
    assert list(tmp_path.iterdir()) == []


@needed
async def test_a_table_of_others_is_searched_by_a_mapping_and_never_written(tmp_path: Path) -> None:
    import lancedb

    rows = [{"The Body": "Salted plums keep.", "nr": 1}, {"The Body": None, "nr": 2}, {"The Body": "Herons.", "nr": 3}]
    lancedb.connect(tmp_path / "shop").create_table("articles", rows)
    with pytest.raises(IndexUnavailable, match="no column gnothi_words, id, text, title; there are The Body, nr"):
        open_index(f"lancedb:{tmp_path / 'shop'}#articles")
    with pytest.raises(IndexUnavailable, match="no table 'nothing', expected one of articles"):
        open_index(f"lancedb:{tmp_path / 'shop'}#nothing")
    names = 'table = "articles"\nid = "nr"\ntext = "The Body"\ntitle = ""\nwords = ""\nprefix = "shop/"\n'
    (tmp_path / "shop.toml").write_text(f'server = "{tmp_path / "shop"}"\n{names}')
    spec = f"lancedb:{tmp_path / 'shop.toml'}"
    assert await found(spec, "plums, salted") == [Passage("shop/1", "Salted plums keep.")]
    assert index_fingerprint(spec) == ""
    with pytest.raises(InvalidSetting, match="prefix"):
        build([tmp_path], spec)
    with pytest.raises(IndexUnavailable, match="no build of ours made it"):
        build([write_jsonl(tmp_path / "a.jsonl", [Passage("a", "b")])], f"lancedb:{tmp_path / 'shop'}#articles")
    assert lancedb.connect(tmp_path / "shop").open_table("articles").count_rows() == 3


@needed
def test_the_fingerprint_changes_with_the_passages(tmp_path: Path) -> None:
    spec = built(tmp_path, CORPUS[:3])
    first = index_fingerprint(spec)
    assert first
    build([tmp_path / "passages.jsonl"], spec)
    assert index_fingerprint(spec) == first
    built(tmp_path, CORPUS)
    assert index_fingerprint(spec) != first


@needed
async def test_nothing_in_ids_is_sql(tmp_path: Path) -> None:
    nasty = ["x'; DROP TABLE passages; --", 'q"q', "back\\slash", "`t` %s", "nul\0", "a\nb", "ü東", "') OR ('1'='1"]
    passages = [Passage(one, f"lighthouse {one}", one) for one in nasty]
    spec = built(tmp_path, passages)
    built(tmp_path, passages)
    assert {key: bare(one) for key, one in stored(spec).items()} == {one.id: one for one in passages}
    assert {one.id for one in await found(spec, "lighthouse", 20)} == set(nasty)


@needed
def test_one_build_at_a_time(tmp_path: Path) -> None:
    from gnothi.retrieval.servers.lancedb.writer import opened

    with opened(f"{tmp_path / 'lance'}#passages"), pytest.raises(IndexUnavailable, match="one at a time"):
        built(tmp_path)


@needed
def test_the_command_line(gnothi: Run, tmp_path: Path) -> None:
    check_command_line(gnothi, tmp_path, f"lancedb:{tmp_path / 'lance'}#birds")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make_sources(tmp_path / "docs", 2500, 30)


@needed
@pytest.mark.slow
def test_the_same_passages_as_in_a_folder_whatever_changes(source: Path, tmp_path: Path) -> None:
    spec = f"lancedb:{tmp_path / 'lance'}#changes"
    check_changes(source, spec, tmp_path / "folder", lambda: stored(spec), shorter=800)


@needed
@pytest.mark.slow
@pytest.mark.parametrize("vectors", [False, True])
def test_killed_builds_resume_to_the_same_table(source: Path, tmp_path: Path, vectors: bool) -> None:
    spec = f"lancedb:{tmp_path / 'lance'}#killed"
    target = spec
    if vectors:
        (tmp_path / "index.toml").write_text(f'server = "{tmp_path / "lance"}"\ntable = "killed"\nencoder = "words"\n')
        target = f"lancedb:{tmp_path / 'index.toml'}"
    undisturbed = f"lancedb:{tmp_path / 'lance'}#undisturbed"
    check_kills(source, undisturbed, target, tmp_path / "folder", lambda: stored(spec), KILLS, killed=lambda: stored(spec))
    if vectors:
        import lancedb

        rows = lancedb.connect(tmp_path / "lance").open_table("killed").to_arrow().to_pylist()
        ours = words.passages([Passage(row["id"], row["text"], row["title"]) for row in rows])
        assert [row["gnothi_vector"] for row in rows] == ours.tolist()


@needed
def test_what_a_kill_left_of_a_file_that_then_changed_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gnothi.retrieval.servers.lancedb.table import LanceLedger

    def killed(_: LanceLedger) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(LanceLedger, "save", killed)  # after the passages, before the ledger
        with pytest.raises(KeyboardInterrupt):
            built(tmp_path, CORPUS)
    spec = f"lancedb:{tmp_path / 'lance'}#passages"
    assert len(stored(spec)) == len(CORPUS)
    built(tmp_path, CORPUS[:2])
    assert {key: bare(one) for key, one in stored(spec).items()} == {one.id: one for one in CORPUS[:2]}


@needed
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_it_follows_its_folders_whatever_is_killed(tmp_path: Path, seed: int) -> None:
    from gnothi.retrieval.servers.lancedb.table import LanceLedger
    from gnothi.retrieval.servers.lancedb.writer import LanceWriter

    spec = f"lancedb:{tmp_path / 'lance'}#walk"
    walk(tmp_path, spec, seed, 40, lambda: as_texts(stored(spec)), LanceWriter, LanceLedger)


@needed
def test_two_builds_killed_one_after_the_other(tmp_path: Path) -> None:
    from gnothi.retrieval.servers.lancedb.table import LanceLedger

    spec = f"lancedb:{tmp_path / 'lance'}#twice"
    kill_twice(tmp_path, spec, lambda: as_texts(stored(spec)), LanceLedger)


@needed
def test_files_are_deleted_from_what_is_there_alone(gnothi: Run, tmp_path: Path) -> None:
    spec = f"lancedb:{tmp_path / 'lance'}#passages"
    code, _, err = gnothi("index", "delete", spec, "passages.jsonl")
    assert (code, "Traceback" in err) == (3, False)
    assert not (tmp_path / "lance").exists()
    built(tmp_path)
    assert delete_sources(spec, ["passages.jsonl"]).sources == ("passages.jsonl",)
    assert stored(spec) == {}
    for how in ((), ("--files",)):
        code, _, err = gnothi("index", "info", spec, *how)
        assert (code, "expected the folder" in err) == (2, True)


@needed
def test_a_table_of_an_earlier_version_is_refused_with_the_command(tmp_path: Path) -> None:
    import lancedb

    spec = built(tmp_path)
    lancedb.connect(tmp_path / "lance").open_table("passages").drop_columns(["gnothi_metadata"])
    with pytest.raises(IndexUnavailable, match="gnothi index build SOURCE"):
        build([tmp_path / "passages.jsonl"], spec)
