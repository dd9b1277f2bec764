"""A damaged index is refused by us where tantivy would end the process."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import pytest

from gnothi.errors import IndexUnavailable
from gnothi.retrieval import stores
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.writer import IndexWriter
from tests.messages import refused
from tests.retrieval.documents import made_up

END, STORE = struct.Struct("<II"), struct.Struct("<IQB15x")


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    with IndexWriter(folder) as writer:
        for passage in made_up(3, 40):
            writer.put(passage)
        writer.commit()
    return folder


def number(value: int) -> bytes:
    """As tantivy writes a number of varying length."""
    found = bytearray()
    while value >= 128:
        found.append(value & 0x7F)
        value >>= 7
    return bytes([*found, value | 0x80])


def with_layers(store: Path, layers: int) -> None:
    """Write another number of layers into the table of blocks."""
    data = store.read_bytes()
    length, mark = END.unpack(data[-END.size :])
    assert mark == 1337, "tantivy's files end otherwise: look at retrieval/stores.py"
    body = len(data) - END.size - length
    version, begin, _ = STORE.unpack(data[body - STORE.size : body])
    assert version == 2
    assert json.loads(data[body : body + length])["version"]["index_format_version"] == 7
    assert begin < body - STORE.size
    first = next(place for place in range(begin, body) if data[place] & 0x80) + 1
    store.write_bytes(data[:begin] + number(layers) + data[first:])


def test_a_whole_index_is_fine(index: Path) -> None:
    stores.check(index)
    assert len(BM25Index.open(index)) == 40


def test_more_layers_than_bytes_are_refused_by_readers_and_writers(index: Path) -> None:
    (store,) = index.glob("*.store")
    with_layers(store, 1 << 55)
    with refused(IndexUnavailable):
        BM25Index.open(index)
    with refused(IndexUnavailable):
        IndexWriter(index)


def test_a_number_without_an_end_is_refused(index: Path) -> None:
    (store,) = index.glob("*.store")
    with_layers(store, 1 << 55)
    data = store.read_bytes()
    found = data.index(number(1 << 55))
    store.write_bytes(data[:found] + b"\x02" * 12 + data[found + len(number(1 << 55)) :])
    with refused(IndexUnavailable):
        BM25Index.open(index)


@pytest.mark.parametrize("kind", ["idx", "term", "pos", "fieldnorm", "fast", "del"])
def test_a_file_that_is_not_as_it_was_written_is_refused_by_writers(index: Path, kind: str) -> None:
    """A thread of tantivy's would end the process over some of them, as over postings of passages that are not there."""
    with IndexWriter(index) as writer:
        assert writer.delete(made_up(3, 40)[7].id)
        writer.commit()
    (file,) = index.glob(f"*.{kind}")
    data = file.read_bytes()
    file.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    with refused(IndexUnavailable):
        IndexWriter(index)


def test_what_was_written_and_deleted_in_turn_has_its_checksums(index: Path) -> None:
    """Also beside what a killed writer left, which was never committed."""
    for passage in made_up(3, 40)[:5]:
        with IndexWriter(index) as writer:
            assert writer.delete(passage.id)
            writer.commit()
    for left in [*index.glob("*.del"), *index.glob("*.idx")]:
        (index / f"{left.name.partition('.')[0]}.99999.del").write_bytes(b"half")
    stores.check(index, writes=True)


@pytest.mark.parametrize("keep", [0, 1, 7, 8, 40, 100])
def test_a_store_cut_short_is_left_to_tantivy(index: Path, keep: int) -> None:
    (store,) = index.glob("*.store")
    store.write_bytes(store.read_bytes()[:keep])
    stores.check(index)
    with pytest.raises(IndexUnavailable):
        BM25Index.open(index)


def test_a_changed_byte_of_the_passages_is_told_before_tantivy_asks_for_room(index: Path) -> None:
    (store,) = index.glob("*.store")
    data = store.read_bytes()
    length, _ = END.unpack(data[-END.size :])
    for place in range(0, len(data) - END.size - length, 97):
        store.write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        with refused(ValueError):
            stores.check(index)


@pytest.mark.parametrize("content", ["[]", "{}", '{"segments": [1]}', "x"])
def test_a_list_of_segments_that_is_none(index: Path, content: str) -> None:
    (index / "meta.json").write_text(content)
    with pytest.raises(IndexUnavailable):
        BM25Index.open(index)


@pytest.mark.timeout(120)
def test_a_pipe_among_its_files_is_not_waited_for(index: Path) -> None:
    (store,) = index.glob("*.store")
    store.unlink()
    os.mkfifo(store)
    with refused(IndexUnavailable):
        BM25Index.open(index)


@pytest.mark.parametrize(("field", "value"), [("name", "nan"), ("options", {"stored": False})])
def test_an_index_of_other_fields_is_refused(index: Path, field: str, value: object) -> None:
    meta = json.loads((index / "meta.json").read_text())
    meta["schema"][0][field] = value
    (index / "meta.json").write_text(json.dumps(meta))
    with refused(IndexUnavailable):
        BM25Index.open(index)


@pytest.mark.parametrize("name", ["../other", "{outside}", "", "a" * 31, "A" * 32, None])
def test_a_segment_whose_name_leads_elsewhere_is_refused_unread(index: Path, tmp_path: Path, name: str | None) -> None:
    (tmp_path / "other.store").mkdir()  # read, it would be an error of another kind
    meta = json.loads((index / "meta.json").read_text())
    meta["segments"][0]["segment_id"] = name and name.format(outside=tmp_path / "other")
    (index / "meta.json").write_text(json.dumps(meta))
    with refused(IndexUnavailable, varies=r"(?<=writes \().*(?= is no name)"):
        BM25Index.open(index)
