"""Vectors in tables of LanceDB: conformance, tables of others, whose weights made them, builds that are killed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.protocols import Retriever
from gnothi.retrieval.build import build
from gnothi.retrieval.dense.encoders import Encoding
from gnothi.retrieval.dense.fusion import Fusion
from gnothi.retrieval.registry import open_index
from gnothi.testing.conformance.retriever import CORPUS, RetrieverConformance
from gnothi.types import Passage
from tests.retrieval.dense import words
from tests.retrieval.documents import write_jsonl
from tests.retrieval.servers.lancedb.test_lancedb import found, needed

pytestmark = needed


@pytest.fixture(autouse=True)
def encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoder that needs no weights."""
    monkeypatch.setattr(Encoding, "questions", lambda _: words.questions)
    monkeypatch.setattr(Encoding, "passages", lambda _: words.passages)


def described(folder: Path, more: str) -> str:
    file = folder / "index.toml"
    file.write_text(f'server = "{folder / "lance"}"\n{more}\n')
    return f"lancedb:{file}"


def built(folder: Path, more: str) -> str:
    spec = described(folder, f'encoder = "words"\n{more}')
    build([write_jsonl(folder / "passages.jsonl", CORPUS)], spec)
    return spec


class TestVectors(RetrieverConformance):
    lexical = False

    @pytest.fixture
    async def retriever(self, tmp_path: Path) -> AsyncIterator[Retriever]:
        retriever = open_index(built(tmp_path, 'by = "vectors"'))
        yield retriever
        await retriever.aclose()


class TestBoth(RetrieverConformance):
    lexical = False

    @pytest.fixture
    async def retriever(self, tmp_path: Path) -> AsyncIterator[Retriever]:
        retriever = open_index(built(tmp_path, 'by = "both"'))
        yield retriever
        await retriever.aclose()


@pytest.mark.parametrize("distance", ["inner", "cosine", "euclidean"])
async def test_a_table_of_others_is_searched_by_a_mapping(tmp_path: Path, distance: str) -> None:
    import lancedb
    import pyarrow

    texts = ["Salted plums keep.", "Herons stand in water.", "No vector."]
    vectors = [*words.passages([Passage("", one) for one in texts[:2]]).tolist(), None]
    kind = pyarrow.list_(pyarrow.float32(), len(vectors[0]))
    columns = {"nr": pyarrow.array([1, 2, 3]), "body": pyarrow.array(texts), "near": pyarrow.array(vectors, kind)}
    lancedb.connect(tmp_path / "lance").create_table("articles", pyarrow.table(columns), on_bad_vectors="null")
    names = (
        f'table = "articles"\nid = "nr"\ntext = "body"\ntitle = ""\ndistance = "{distance}"\nencoder = "words"\nby = "vectors"'
    )
    assert [one.id for one in await found(described(tmp_path, f'{names}\nvectors = "near"'), "salted plums")] == ["1", "2"]
    with pytest.raises(IndexUnavailable, match="no column gnothi_vector"):
        open_index(described(tmp_path, names))
    with pytest.raises(IndexUnavailable, match="expected vectors of one length"):
        open_index(described(tmp_path, f'{names}\nvectors = "body"'))


async def test_an_encoder_of_another_size_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = built(tmp_path, 'by = "vectors"')
    monkeypatch.setattr(Encoding, "questions", lambda _: lambda asked: words.questions(asked)[:, :7])
    with pytest.raises(IndexUnavailable, match="makes vectors of 7 numbers"):
        await found(spec, "plums")


def test_vectors_by_no_encoder(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="got no encoder"):
        open_index(described(tmp_path, 'by = "vectors"'))


def test_vectors_come_with_the_passages_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Encoding, "fingerprint", lambda _: "first weights")
    spec = built(tmp_path, 'by = "vectors"')
    with pytest.raises(IndexUnavailable, match="built with vectors"):
        build([tmp_path / "passages.jsonl"], f"lancedb:{tmp_path / 'lance'}#passages")
    monkeypatch.setattr(Encoding, "fingerprint", lambda _: "other weights")
    for act in (lambda: build([tmp_path / "passages.jsonl"], spec), lambda: open_index(spec)):
        with pytest.raises(IndexUnavailable, match="made by other weights"):
            act()


async def test_both_fuses_the_scores_of_each(tmp_path: Path) -> None:
    """Of one table; not ranks made into scores."""
    both = built(tmp_path, 'by = "both"')
    found = {}
    for by in ("words", "vectors"):
        retriever = open_index(described(tmp_path, f'encoder = "words"\nby = "{by}"'))
        found[by] = await retriever.search("heron fish plums", 100)
        await retriever.aclose()
    assert all(one.score > 1 for one in found["words"])
    described(tmp_path, 'encoder = "words"\nby = "both"')
    assert await open_index(both).search("heron fish plums", 5) == Fusion().fuse(found["words"], found["vectors"], 5)
