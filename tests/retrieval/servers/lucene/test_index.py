"""What can be said of an index without a client."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from gnothi.errors import InvalidSetting, MissingDependency
from gnothi.retrieval.registry import RETRIEVERS, open_index
from gnothi.retrieval.servers.lucene.index import Index, as_settings, indices

URL = "https://host:9200"


@pytest.mark.parametrize(("engine", "package"), [("elasticsearch", "elasticsearch"), ("opensearch", "opensearchpy")])
def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, engine: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=rf"gnothi\[{engine}\]"):
        open_index(f"{engine}:{URL}/notes")
    assert engine in RETRIEVERS.names()


@pytest.mark.parametrize(
    ("argument", "settings"),
    [
        (URL, {"server": URL}),
        (f"{URL}/", {"server": f"{URL}/"}),
        (f"{URL}/notes", {"server": URL, "index": "notes"}),
        (f"{URL}/behind/notes/", {"server": f"{URL}/behind", "index": "notes"}),
        ("notes", {"server": "notes"}),
    ],
)
def test_an_address_names_the_index(argument: str, settings: dict[str, str]) -> None:
    assert as_settings(argument) == settings


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"timeout": 0}, "timeout"),
        ({"connections": 0}, "connections"),
        ({"patience": -1}, "patience"),
        ({"index": " "}, "index of an index"),
        ({"text": ""}, "text of an index"),
        ({"server": "host:9200"}, "https://HOST:PORT"),
        ({"server": "ftp://host"}, "https://HOST:PORT"),
        ({"server": "https://host:x"}, "https://HOST:PORT"),
        ({"server": "https://"}, "https://HOST:PORT"),
        ({"server": f"{URL}/?q=1"}, "https://HOST:PORT"),
        ({"server": "https://me:fish@host"}, "environment"),
    ],
)
def test_settings_that_cannot_be(more: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidSetting, match=said) as caught:
        Index(**{"server": URL, **more})
    assert "fish" not in str(caught.value)


def test_names_and_addresses_hold_no_user(monkeypatch: pytest.MonkeyPatch) -> None:
    (index,) = indices("https://me@host:9200/notes", "opensearch")
    assert (index.name, index.address) == ("host:9200 index notes", URL)
    with pytest.raises(InvalidSetting, match="OPENSEARCH_PASSWORD to the password of me"):
        index.credentials("opensearch")
    monkeypatch.setenv("OPENSEARCH_PASSWORD", "fish")
    assert index.credentials("opensearch") == ("me", "fish")


def test_api_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Index(URL).credentials("elasticsearch") == ("", "")
    with pytest.raises(InvalidSetting, match="SHOP to the API key"):
        Index(URL, secret="SHOP").credentials("elasticsearch")
    monkeypatch.setenv("SHOP", "herring")
    assert Index(URL, secret="SHOP").credentials("elasticsearch") == ("", "herring")
    with pytest.raises(InvalidSetting, match="no API keys"):
        Index(URL, secret="SHOP").credentials("opensearch")


def test_no_name_leaves_its_place_in_the_path() -> None:
    assert Index(URL, "../_all/x?y#z").path("_search") == "/..%2F_all%2Fx%3Fy%23z/_search"
    assert Index(URL, "logs-*,notes").path("_search", "-b") == "/logs-*,notes-b/_search"


def test_a_search_asks_for_global_statistics_and_whole_answers(tmp_path: Path) -> None:
    params, body = Index(URL).by_words("a OR b", 3)
    assert params["search_type"] == "dfs_query_then_fetch"
    assert params["allow_partial_search_results"] == "false"
    assert body["query"] == {"match": {"gnothi_words": {"query": "a OR b", "operator": "or"}}}
    assert body["sort"] == [{"_score": "desc"}, {"id": "asc"}]
    (tmp_path / "index.toml").write_text(f'server = "{URL}"\nwords = ""\nid = "_id"\npartial = true\n')
    (index,) = indices(str(tmp_path / "index.toml"), "elasticsearch")
    params, body = index.by_words("a", 3)
    assert params["allow_partial_search_results"] == "true"
    assert body["query"]["multi_match"]["fields"] == ["title", "text"]
    assert body["sort"] == [{"_score": "desc"}]


def test_two_fields_as_beir_searches_them() -> None:
    """``BM25Search`` of BEIR asks for title and text with best_fields and a tie breaker of .5."""
    _, body = Index(URL, title="title", text="txt", words="", fields="best").by_words("who", 3)
    found = body["query"]["multi_match"]
    assert (found["type"], found["tie_breaker"], found["fields"]) == ("best_fields", 0.5, ["title", "txt"])
    _, body = Index(URL, words="").by_words("who", 3)
    assert body["query"]["multi_match"]["type"] == "cross_fields"
    with pytest.raises(InvalidSetting, match="got 'both'"):
        Index(URL, fields="both")  # type: ignore[arg-type]
