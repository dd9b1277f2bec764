"""LanceDB: one build at a time; in an object store the same passages as in a folder, and keys that are nowhere but in the
environment."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gnothi.errors import IndexUnavailable, InvalidSetting, MissingDependency
from gnothi.retrieval.build import build
from gnothi.retrieval.registry import index_fingerprint, open_index
from gnothi.types import Passage
from tests.command_line import Run
from tests.messages import refused
from tests.retrieval.documents import made_up, write_jsonl
from tests.retrieval.servers.backends import LANCE, Lance
from tests.retrieval.servers.store import BUCKET, KEYS, SERVER, store
from tests.retrieval.servers.test_servers import built

needed = pytest.mark.skipif(
    importlib.util.find_spec("lancedb") is None or not SERVER.exists(),
    reason="lancedb or a store is not installed: `make test-beside` installs them in environments of their own",
)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with store() as found:
        yield found


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def described(folder: Path, address: str, table: str, bucket: str = BUCKET) -> str:
    text = f'server = "s3://{bucket}/lance"\ntable = "{table}"\nendpoint = "{address}"\nregion = "us-east-1"\n'
    (folder / f"{table}.toml").write_text(text)
    return f"lancedb:{folder / table}.toml"


@pytest.mark.skipif(importlib.util.find_spec("lancedb") is not None, reason="lancedb is installed")
def test_without_the_package(tmp_path: Path) -> None:
    (tmp_path / "lance").mkdir()
    with refused(MissingDependency):
        open_index(f"lancedb:{tmp_path / 'lance'}#passages")


def test_no_folder_is_made_by_a_search(tmp_path: Path) -> None:
    with refused(IndexUnavailable):
        open_index(f"lancedb:{tmp_path / 'none'}#passages")
    assert list(tmp_path.iterdir()) == []


@LANCE
def test_one_build_at_a_time(tmp_path: Path) -> None:
    from gnothi.retrieval.servers.lancedb_build import opened

    with opened(f"{tmp_path / 'lance'}#passages"), pytest.raises(IndexUnavailable):
        built(Lance(tmp_path))


@needed
async def test_it_finds_what_a_folder_finds_and_a_change_replaces(tmp_path: Path, address: str) -> None:
    source = write_jsonl(tmp_path / "passages.jsonl", made_up(1, 300))
    there, here = described(tmp_path, address, "alike"), f"lancedb:{tmp_path / 'lance'}#alike"
    reports = [build([source], spec) for spec in (there, here)]
    assert reports[0].passages == reports[1].passages == 300
    query = made_up(1, 1)[0].text
    found = [await open_index(spec).search(query, 20) for spec in (there, here)]
    assert found[0] == found[1]
    first = index_fingerprint(there)
    write_jsonl(source, [*made_up(1, 200), Passage("new", "quetzals")])
    assert build([source], there).passages == 201
    assert [one.passage.id for one in await open_index(there).search("quetzals", 3)] == ["new"]
    assert index_fingerprint(there) != first


@needed
def test_keys_are_nowhere(gnothi: Run, tmp_path: Path, address: str) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [Passage("a", "A heron stands in water.", "Heron")])
    spec, out = described(tmp_path, address, "secrets"), tmp_path / "run"
    outcomes = [gnothi("index", "build", str(source), "--to", spec)]
    outcomes.append(gnothi("eval", "lab", "--method", "rag", "--limit", "2", "--index", spec, "--out", str(out)))
    assert [code for code, *_ in outcomes] == [0, 0], outcomes
    missing = described(tmp_path, address, "missing", bucket="nowhere")
    outcomes.append(gnothi("index", "search", missing, "herons"))
    code, _, err = outcomes[-1]
    assert (code, "The specified bucket does not exist" in " ".join(err.split())) == (3, True), err
    files = [path.read_bytes().decode("utf-8", "replace") for path in out.rglob("*") if path.is_file()]
    assert any("lancedb:" in text for text in files)
    for value in KEYS.values():
        assert value not in json.dumps(outcomes)
        assert not [text for text in files if value in text]


@needed
def test_what_a_store_repeats_is_not_shown(address: str) -> None:
    from gnothi.retrieval.servers.lancedb import Table

    table = Table(f"s3://{BUCKET}/lance", endpoint=address)
    shown = str(table.refused(OSError(f"no access for {KEYS['AWS_ACCESS_KEY_ID']} with {KEYS['AWS_SECRET_ACCESS_KEY']}")))
    assert "no access for ... with ..." in shown


@needed
def test_a_store_that_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(IndexUnavailable):
        open_index(described(tmp_path, "http://127.0.0.1:9", "away"))


def test_keys_in_an_address_are_refused() -> None:
    with refused(InvalidSetting) as caught:
        open_index("lancedb:s3://key:secret@bucket/lance#passages")
    assert "key:secret" not in str(caught.value)


def test_a_folder_has_no_endpoint(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(f'server = "{tmp_path}"\nendpoint = "http://127.0.0.1:9"\n')
    with refused(InvalidSetting):
        open_index(f"lancedb:{tmp_path / 'a.toml'}")
