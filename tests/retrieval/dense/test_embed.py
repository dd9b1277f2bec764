"""Making vectors: only those that are missing, whatever happened before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from gnothi.errors import IndexUnavailable, InvalidSetting, ModelUnavailable
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.build import build
from gnothi.retrieval.dense.embed import BATCH, embed
from gnothi.retrieval.dense.encoders import Encoding
from gnothi.retrieval.dense.index import DenseIndex
from gnothi.retrieval.dense.store import FOLDER, read_manifest
from gnothi.retrieval.registry import DENSE
from gnothi.types import Passage
from tests.messages import refused
from tests.retrieval.dense import words
from tests.retrieval.documents import made_up


def vectors(path: Path) -> dict[str, tuple[float, ...]]:
    index = DenseIndex.open(path, words.questions)
    ids = index._rows.ids(range(len(index._vectors)))
    return {key: tuple(index._vectors[row].tolist()) for row, key in ids.items()}


def expected(corpus: Sequence[Passage]) -> dict[str, tuple[float, ...]]:
    return {one.id: tuple(row.tolist()) for one, row in zip(corpus, words.passages(corpus), strict=True)}


def test_only_new_and_changed_passages_are_encoded_and_those_gone_are_dropped(tmp_path: Path) -> None:
    corpus = made_up(1, 10)
    first = words.embedded(tmp_path, corpus)
    assert (first.passages, first.encoded, first.dropped, first.dimension) == (10, 10, 0, words.DIMENSION)
    before = DENSE.fingerprint(str(tmp_path))
    changed = Passage(corpus[3].id, "altogether other words", corpus[3].title)
    words.put(tmp_path, [changed, Passage("new", "a new one")], gone=[corpus[5].id])
    counted = words.Counted()
    second = embed(tmp_path, encode=counted)
    assert sorted(counted.seen) == sorted([changed.id, "new"])
    assert (second.passages, second.encoded, second.dropped) == (10, 2, 1)
    left = [*(one for one in corpus if one.id not in (corpus[3].id, corpus[5].id)), changed, Passage("new", "a new one")]
    assert vectors(tmp_path) == expected(left)
    assert DENSE.fingerprint(str(tmp_path)) != before
    assert embed(tmp_path, encode=counted).encoded == 0


def test_a_file_that_is_renamed_is_not_encoded_again(tmp_path: Path) -> None:
    docs, index = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    for number in range(4):
        (docs / f"{number}.md").write_text(f"# Station {number}\nIts height is {number}.")
    build([docs], index)
    embed(index, Encoding("words"), encode=words.passages)
    (docs / "0.md").rename(docs / "renamed.md")
    (docs / "1.md").write_text("# Station 1\nIt is gone.")
    build([docs], index)
    counted = words.Counted()
    report = embed(index, encode=counted)
    assert (report.passages, report.encoded, report.dropped) == (4, 1, 1)
    assert counted.seen == ["docs/1.md#1"]
    assert vectors(index) == expected(list(BM25Index.open(index).passages()))


def test_an_interruption_costs_one_batch_at_most(tmp_path: Path) -> None:
    corpus = made_up(1, 3 * BATCH + 10)
    words.put(tmp_path, corpus)
    calls = 0

    def interrupted(given: Sequence[Passage]) -> NDArray[np.float32]:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return words.passages(given)

    with pytest.raises(KeyboardInterrupt):
        embed(tmp_path, Encoding("words"), encode=interrupted)
    with refused(IndexUnavailable):
        DenseIndex.open(tmp_path, words.questions)
    counted = words.Counted()
    report = embed(tmp_path, encode=counted)
    assert report.encoded == len(counted.seen) == BATCH + 10
    assert vectors(tmp_path) == expected(corpus)


def test_vectors_whose_passages_were_not_noted_are_cut_off(tmp_path: Path) -> None:
    corpus = made_up(1, 5)
    words.embedded(tmp_path, corpus)
    with (tmp_path / FOLDER / "vectors-0.f32").open("ab") as file:
        file.write(b"half a vector")
    more = [*corpus, Passage("more", "words")]
    words.put(tmp_path, more)
    embed(tmp_path, encode=words.passages)
    assert vectors(tmp_path) == expected(more)


def test_many_changes_leave_no_more_than_a_quarter_behind(tmp_path: Path) -> None:
    for seed in range(6):
        corpus = [Passage(f"p{n}", one.text) for n, one in enumerate(made_up(seed, 40))]
        words.embedded(tmp_path, corpus)
        assert vectors(tmp_path) == expected(corpus)
    (file,) = (tmp_path / FOLDER).glob("vectors-*.f32")
    assert file.stat().st_size <= 40 * 4 / 3 * words.DIMENSION * 4
    assert len(list((tmp_path / FOLDER).glob("rows-*"))) == 1


def test_another_encoder_is_refused(tmp_path: Path) -> None:
    words.embedded(tmp_path, made_up(1, 3))
    with refused(InvalidSetting):
        embed(tmp_path, Encoding("others", question_prompt="query: "), encode=words.passages)
    with refused(InvalidSetting):
        embed(words.put(tmp_path / "fresh", made_up(1, 1)))


def test_an_encoder_that_gives_something_else_is_told(tmp_path: Path) -> None:
    words.put(tmp_path, made_up(1, 3))
    with refused(ModelUnavailable):
        embed(tmp_path, Encoding("words"), encode=lambda given: np.full((len(given), 4), np.nan, np.float32))
    with refused(ModelUnavailable):
        embed(tmp_path, encode=lambda _: np.zeros((1, 4), np.float32))


def test_an_empty_index_has_no_vectors_and_finds_nothing(tmp_path: Path) -> None:
    report = words.embedded(tmp_path, [])
    assert report.passages == 0
    assert DenseIndex.open(tmp_path, words.questions).nearest(np.zeros(0, np.float32), 5) == ()


def test_where_the_encoder_lies_does_not_count_for_the_fingerprint(tmp_path: Path) -> None:
    prints = set()
    for name in ("a", "b"):
        folder = tmp_path / name / "encoder"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
        words.put(tmp_path / name / "index", made_up(1, 3))
        embed(tmp_path / name / "index", Encoding(str(folder)), encode=words.passages)
        assert read_manifest(tmp_path / name / "index")
        prints.add(DENSE.fingerprint(str(tmp_path / name / "index")))
    assert len(prints) == 1
