"""What every kind of server must hold to: conformance by words, vectors and both, on one table and two; tables of others;
builds that are changed, killed and followed; filters; the command line."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.protocols import Retriever
from gnothi.retrieval.build import build
from gnothi.retrieval.dense.encoders import Encoding
from gnothi.retrieval.dense.fusion import fuse
from gnothi.retrieval.filtering import filtered
from gnothi.retrieval.filters import as_filters
from gnothi.retrieval.listing import delete_sources
from gnothi.retrieval.registry import index_fingerprint, open_index
from gnothi.retrieval.targets import target
from gnothi.testing.conformance.retriever import CORPUS, EXPECTED, RetrieverConformance
from gnothi.types import Passage
from tests.command_line import Run
from tests.messages import refused
from tests.retrieval.dense import words
from tests.retrieval.documents import bare, contents, made_up, write_jsonl
from tests.retrieval.filtered import check, passages, sourced
from tests.retrieval.servers.backends import Backend
from tests.retrieval.test_sync import as_texts, kill_twice, walk
from tests.stopping import Stopping, moments

HERON = "heron fish water"
ENCODED = 'encoder = "words"\n'
NASTY = ("x'; DROP TABLE t; --", 'q"q', "back\\slash", "`t` %s {}", "a\nb", "ü東", "') OR ('1'='1", "$$; --", "a:* & b | !d")


def built(backend: Backend, given: Any = CORPUS, table: str = "passages", more: str = "") -> str:
    source = write_jsonl(backend.folder / "passages.jsonl", given)
    spec = backend.described(table, more=more) if more else backend.spec(table)
    build([source], spec)
    return spec


async def found(spec: str, query: str, k: int = 3) -> list[Passage]:
    retriever = open_index(spec)
    try:
        return [bare(one.passage) for one in await retriever.search(query, k)]
    finally:
        await retriever.aclose()


def refused_by(backend: Backend, kind: type[Exception]) -> AbstractContextManager[object]:
    """The wording is held of the two that are tested in every environment."""
    return refused(kind) if backend.scheme in ("elasticsearch", "opensearch") else pytest.raises(kind)


class Conformance(RetrieverConformance):
    """On one index for all tests of a class, which write nothing."""

    more = ""

    @classmethod
    def build(cls, backend: Backend) -> str:
        return built(backend, more=cls.more)

    @pytest.fixture(scope="class")
    @classmethod
    def spec(cls, standing: Backend) -> str:
        return cls.build(standing)

    @pytest.fixture
    async def retriever(self, spec: str) -> AsyncIterator[Retriever]:
        retriever = open_index(spec)
        yield retriever
        await retriever.aclose()


class TestWords(Conformance): ...


class TestVectors(Conformance):
    lexical = False
    more = f'{ENCODED}by = "vectors"'


@pytest.mark.slow
class TestByDistance(Conformance):
    lexical = False
    more = f'{ENCODED}by = "vectors"\ndistance = "euclidean"'


@pytest.mark.slow
class TestBoth(Conformance):
    lexical = False
    more = f'{ENCODED}by = "both"'


class TestTwoTables(Conformance):
    """Ranks count where scores of two are not of one kind."""

    expected: Mapping[str, str] = MappingProxyType({key: EXPECTED[key] for key in (HERON, "naïve quoted text")})

    @classmethod
    def build(cls, backend: Backend) -> str:
        built(backend, CORPUS[:3], "one")
        built(backend, CORPUS[3:], "two")
        return backend.described("one", "two")


@pytest.mark.slow
class TestTwoTablesOfVectors(Conformance):
    """Scores of one encoder are of one kind: the order is that of one table with all passages."""

    lexical = False

    @classmethod
    def build(cls, backend: Backend) -> str:
        for table, part in (("one", CORPUS[::2]), ("two", CORPUS[1::2])):
            built(backend, part, table, ENCODED)
        return backend.described("one", "two", more=f'{ENCODED}by = "vectors"')


# Tables of others, and what does not fit.


async def test_a_table_of_others_is_searched_by_a_mapping_and_never_written(backend: Backend) -> None:
    names = backend.theirs("shop", [(1, "Salted plums keep."), (2, None), (3, "Herons.")])
    before = backend.rows("shop")
    for table in ("shop", "nothing"):
        with pytest.raises(IndexUnavailable):
            open_index(backend.spec(table))
    spec = backend.described("shop", more=f'{names}prefix = "shop/"\n')
    assert await found(spec, "plums, salted") == [Passage("shop/1", "Salted plums keep.")]
    assert index_fingerprint(spec) == ""
    index = open_index(spec)
    with refused_by(backend, InvalidSetting):
        await filtered(index, as_filters("source=a")).search("heron", 3)
    await index.aclose()
    with refused_by(backend, InvalidSetting):
        build([backend.folder], spec)
    with refused_by(backend, IndexUnavailable):
        built(backend, table="shop")
    assert backend.rows("shop") == before


@pytest.mark.usefixtures("encoded")
async def test_vectors_of_the_wrong_size_or_by_nobody(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = built(backend, more=f'{ENCODED}by = "vectors"')
    if backend.scheme != "postgres":  # which tells it at the first search
        with refused_by(backend, IndexUnavailable):
            open_index(backend.described("passages", more=f'{ENCODED}by = "vectors"\nvectors = "text"'))
    backend.described("passages", more=f'{ENCODED}by = "vectors"')
    monkeypatch.setattr(Encoding, "questions", lambda _: lambda asked: words.questions(asked)[:, :7])
    with refused_by(backend, IndexUnavailable):
        await found(spec, "plums")
    with refused_by(backend, InvalidSetting):
        open_index(backend.described("passages", more='by = "vectors"'))


@pytest.mark.usefixtures("encoded")
def test_tables_are_searched_one_way_and_built_one_by_one(backend: Backend) -> None:
    built(backend, more=ENCODED)
    with refused_by(backend, InvalidSetting):
        build([backend.folder], backend.described("passages", "other"))
    spec = backend.described("passages", "passages", more=ENCODED)
    file = backend.folder / "index.toml"
    file.write_text(file.read_text() + '\nby = "vectors"\n')
    with refused_by(backend, IndexUnavailable):
        open_index(spec)


@pytest.mark.usefixtures("encoded")
async def test_both_fuses_the_scores_of_each(backend: Backend) -> None:
    both = built(backend, more=f'{ENCODED}by = "both"')
    alone = {}
    for by in ("words", "vectors"):
        retriever = open_index(backend.described("passages", more=f'{ENCODED}by = "{by}"'))
        alone[by] = await retriever.search("heron fish plums", 100)
        await retriever.aclose()
    backend.described("passages", more=f'{ENCODED}by = "both"')
    retriever = open_index(both)
    assert await retriever.search("heron fish plums", 5) == fuse(alone["words"], alone["vectors"], 5)
    await retriever.aclose()


# What is built.


def test_the_fingerprint_changes_with_the_passages(backend: Backend) -> None:
    spec = built(backend, CORPUS[:3])
    first = index_fingerprint(spec)
    assert first
    built(backend, CORPUS[:3])
    assert index_fingerprint(spec) == first
    built(backend)
    assert index_fingerprint(spec) != first


async def test_nothing_in_queries_ids_or_texts_is_code(backend: Backend) -> None:
    given = [Passage(one, f"lighthouse {one}", one) for one in NASTY]
    spec = built(backend, given)
    built(backend, given)
    assert {key: bare(one) for key, one in backend.stored("passages").items()} == {one.id: one for one in given}
    for passage in given:
        assert passage in await found(spec, f"lighthouse {passage.text}", 20)


@pytest.mark.usefixtures("encoded")
def test_vectors_come_with_the_passages_or_not_at_all(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Encoding, "fingerprint", lambda _: "first weights")
    spec = built(backend, more=f'{ENCODED}by = "vectors"\n')
    source = backend.folder / "passages.jsonl"
    open_index(spec)
    with refused_by(backend, IndexUnavailable):
        build([source], backend.spec("passages"))
    monkeypatch.setattr(Encoding, "fingerprint", lambda _: "other weights")
    for act in (lambda: build([source], spec), lambda: open_index(spec)):
        with refused_by(backend, IndexUnavailable):
            act()
    if backend.scheme != "lancedb":  # it answers, so it may not be done without
        with refused_by(backend, IndexUnavailable):
            open_index(backend.described("passages", more=f'{ENCODED}by = "vectors"\noptional = true'))
    built(backend, table="bare")
    with refused_by(backend, IndexUnavailable):
        build([source], backend.described("bare", more=ENCODED))


def test_a_table_of_an_earlier_version_is_refused_with_the_command(backend: Backend) -> None:
    built(backend)
    backend.spoil("passages")
    with refused_by(backend, IndexUnavailable):
        built(backend)


def test_files_are_deleted_from_what_is_there_alone(gnothi: Run, backend: Backend) -> None:
    spec = backend.spec("passages")
    code, _, err = gnothi("index", "delete", spec, "passages.jsonl")
    assert (code, "Traceback" in err) == (3, False)
    assert backend.rows("passages") == []
    built(backend)
    assert delete_sources(spec, ["passages.jsonl"]).sources == ("passages.jsonl",)
    assert backend.stored("passages") == {}
    for how in ((), ("--files",)):
        code, _, err = gnothi("index", "info", spec, *how)
        assert (code, "expected the folder" in err) == (2, True)


def test_the_command_line(gnothi: Run, backend: Backend) -> None:
    source = write_jsonl(backend.folder / "a.jsonl", [Passage("a", "A heron stands in water.", "Heron")])
    spec = backend.spec("shown")
    code, out, err = gnothi("index", "build", str(source), "--to", spec)
    assert (code, err) == (0, "")
    assert "1 passage (1 added, changed or moved)" in out
    code, out, _ = gnothi("index", "search", spec, "herons", "--json")
    assert [one["id"] for one in json.loads(out)["results"]] == ["a"]
    code, _, _ = gnothi("ask", "Who?", "--model", "lab", "--method", "rag", "--index", spec, "--json")
    assert code == 0
    if backend.scheme != "lancedb":
        away = f"{backend.scheme}:{'//postgres@' if backend.scheme == 'postgres' else 'http://'}127.0.0.1:9/x"
        code, _, err = gnothi("index", "search", away, "herons")
        assert (code, "cannot be reached" in err, "Traceback" in err) == (3, True, False)


# Changes and kills.


@pytest.fixture
def source(backend: Backend) -> Path:
    """A folder of a collection, in which one id comes twice, and of notes."""
    folder = backend.folder / "docs"
    folder.mkdir()
    given = [*made_up(1, backend.size[0]), Passage("s1-3", "Of one id the last counts."), Passage("x" * 500, "Long.")]
    write_jsonl(folder / "corpus.jsonl", given)
    for number in range(backend.size[1]):
        (folder / f"note {number}.txt").write_text(f"Note {number}. " * 400)
    return folder


@pytest.mark.slow
def test_the_same_passages_as_in_a_folder_whatever_changes(source: Path, backend: Backend) -> None:
    for change in ("nothing", "shorter", "gone", "back"):
        if change == "shorter":
            (source / "note 3.txt").write_text("Shorter.")
            write_jsonl(source / "corpus.jsonl", made_up(1, 300))
        if change == "gone":
            (source / "note 4.txt").rename(source / "note 40.txt")
        folder = backend.folder / "folder"
        ours, theirs = build([source], backend.spec("changes")), build([source], folder)
        assert (ours.passages, ours.added, ours.replaced) == (theirs.passages, theirs.added, theirs.replaced)
        assert backend.stored("changes") == contents(folder)


@pytest.mark.slow
def test_builds_killed_with_sigkill_resume_to_the_same_table(source: Path, backend: Backend) -> None:
    """With vectors, which a killed build may not lose."""

    def start(out: str) -> Stopping:
        return Stopping("tests.retrieval.stopping_build", str(source), out, backend.size[2])

    chance = random.Random(1)
    build([source], backend.folder / "folder")
    expected = contents(backend.folder / "folder")
    partial = 0
    spec = backend.described("killed", more=ENCODED)
    for number in moments(start(backend.spec("undisturbed")).finish(), 4):
        process = start(spec)
        assert process.go(number)
        process.kill(chance.uniform(0, 0.02))
        now = backend.killed("killed")
        assert set(now) <= set(expected)
        partial += 0 < len(now) < len(expected)
    assert partial
    start(spec).finish()
    assert backend.stored("killed") == expected
    if backend.scheme != "postgres":
        rows = backend.rows("killed")
        vectors = words.passages([Passage(row["id"], row["text"], row["title"]) for row in rows])
        assert [row["gnothi_vector"] for row in rows] == [pytest.approx(one) for one in vectors.tolist()]


def test_what_a_kill_left_of_a_file_that_then_changed_goes(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(backend.classes()[1], "save", killed)  # after the passages, before the ledger
        with pytest.raises(KeyboardInterrupt):
            built(backend)
    built(backend, CORPUS[:2])
    assert {key: bare(one) for key, one in backend.stored("passages").items()} == {one.id: one for one in CORPUS[:2]}


def test_what_stands_there_is_not_written_again(backend: Backend) -> None:
    one = Passage("a", "Herons fish.", "Birds")
    with target(backend.spec("again"), 100) as opened:
        for expected in ("added", "standing"):
            assert opened.writer.put_all([(one, "o")]) == [expected]
            opened.writer.commit()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_it_follows_its_folders_whatever_is_killed(backend: Backend, seed: int) -> None:
    read = lambda: as_texts(backend.stored("walk"))  # noqa: E731
    walk(backend.folder, backend.spec("walk"), seed, 40, read, *backend.classes())


def test_two_builds_killed_one_after_the_other(backend: Backend) -> None:
    kill_twice(backend.folder, backend.spec("twice"), lambda: as_texts(backend.stored("twice")), backend.classes()[1])


@pytest.mark.slow
async def test_a_filtered_search_finds_what_a_plain_scan_lets_through(backend: Backend) -> None:
    corpus = passages(1)
    index = open_index(built(backend, corpus))
    await check(index, sourced(corpus, "passages.jsonl"), seed=2)
    await index.aclose()
