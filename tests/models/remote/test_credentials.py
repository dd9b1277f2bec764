"""What goes to which address: keys, headers, queries, and what the environment holds for another one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest

from gnothi.errors import InvalidSetting, ModelUnavailable
from gnothi.models import RemoteSettings, is_remote, load_model, settings_class
from gnothi.models.remote.credentials import credentials
from tests.messages import refused
from tests.models.habit_server import Api
from tests.models.habits import HABITS
from tests.models.openai_server import Server, serving

KEY, OTHER = "sk-of-openai-0123", "key-of-azure-4567"
INHERITED = {
    "OPENAI_API_KEY": KEY,
    "OPENAI_ORG_ID": "org-of-openai",
    "OPENAI_PROJECT_ID": "project-of-openai",
    "OPENAI_ADMIN_KEY": "admin-of-openai",
    "OPENAI_CUSTOM_HEADERS": "X-Gateway: secret-of-a-gateway\nAuthorization: Bearer other-of-openai",
    "AZURE_OPENAI_API_KEY": OTHER,
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in INHERITED.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("gnothi.retrying.FIRST_WAIT", 0.002)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server(Api(HABITS[0]))) as found:  # type: ignore[arg-type]
        yield found


def opened(spec: str, **settings: Any) -> Any:
    model = load_model(spec, settings_class(spec)(cache="off", **settings))
    asyncio.run(model.aclose())
    return model


def carried(server: Server) -> list[str]:
    """All headers and paths that came, as texts."""
    return [f"{path} {headers}" for path, _, headers in server.requests]


def test_what_is_meant_for_openai_goes_nowhere_else(server: Server) -> None:
    opened("openai:x", base_url=server.url)
    assert server.requests
    for text in carried(server):
        assert f"Bearer {KEY}" in text  # the one thing that is there for any server that openai: asks
        assert not any(f"of-{name}" in text for name in ("gateway", "azure"))
        assert not any(value in text for value in ("org-of", "project-of", "admin-of", "other-of", "x-gateway", "secret-of"))


@pytest.mark.parametrize("spec", ["ollama:x", "lmstudio:x"])
def test_servers_without_keys_get_none(server: Server, spec: str) -> None:
    opened(spec, base_url=server.url)
    assert server.requests
    assert not any(value in text for text in carried(server) for value in ("of-openai", "of-azure", "of-a-gateway"))


def test_openai_itself_gets_what_is_meant_for_it() -> None:
    found = credentials("openai:x", RemoteSettings().located({}))
    assert found.headers == {"Authorization": f"Bearer {KEY}"}  # the rest is the official client's to add


@pytest.mark.parametrize("version", ["", "2024-10-21"])
def test_azure(server: Server, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url.removesuffix("/v1"))
    monkeypatch.setenv("OPENAI_API_VERSION", version)
    opened("azure:my model")
    posts = [(path, headers) for path, body, headers in server.requests if body]
    for path, headers in posts:
        assert headers["api-key"] == OTHER
        assert "authorization" not in headers
        if version:
            assert path == "/openai/deployments/my%20model/chat/completions?api-version=2024-10-21"
        else:
            assert path == "/openai/v1/chat/completions"
    assert posts
    assert not any("of-openai" in text for text in carried(server))


def test_azure_wants_an_address() -> None:
    with refused(InvalidSetting):
        opened("azure:x")


def test_headers_and_query_by_variable(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "mine-1234")
    monkeypatch.setenv("MY_VERSION", "v-5678")
    settings: dict[str, Any] = {"headers": ("x-api-key=MY_KEY",), "query": ("api-version = MY_VERSION",)}
    model = opened("openai:x", base_url=server.url, **settings)
    for path, _, headers in server.requests:
        assert headers["x-api-key"] == "mine-1234"
        assert "authorization" not in headers
        assert path.endswith("?api-version=v-5678") or "/v1/" not in path
    assert (model.metadata["headers"], model.metadata["query"]) == ("x-api-key", "api-version")
    assert "1234" not in repr(model.metadata) + repr(RemoteSettings(**settings))
    assert "5678" not in repr(model.metadata) + repr(RemoteSettings(**settings).identity())


@pytest.mark.parametrize("which", ["headers", "query"])
@pytest.mark.parametrize("given", ["x=sk-very-private-1", "x=sk_very_private", "x", "=MY_KEY", "x: y=MY_KEY", "x=EMPTY"])
def test_what_names_no_variable_is_refused_and_not_repeated(which: str, given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "mine")
    monkeypatch.setenv("EMPTY", " ")
    with refused(InvalidSetting) as raised:
        RemoteSettings(**{which: (given,)})  # type: ignore[arg-type]
    assert "very" not in str(raised.value)


def test_a_server_that_sends_us_elsewhere_takes_no_key_along(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "mine-1234")

    class Elsewhere:
        async def answer(self, path: str, body: Any) -> Any:
            raise NotImplementedError

    first = Server(Elsewhere())  # type: ignore[arg-type]
    first.moved = server.url.removesuffix("/v1")
    with serving(first):
        opened("openai:x", base_url=first.url, headers=("x-api-key=MY_KEY",))
        opened("openai:x", base_url=first.url)
    assert all("mine-1234" in str(headers) or KEY in str(headers) for _, _, headers in first.requests)
    assert [path for path, body, _ in server.requests if body]
    assert not any("mine-1234" in text or KEY in text for text in carried(server))


def test_a_key_that_is_refused_names_its_variable(server: Server) -> None:
    server.key = "another"
    with refused(ModelUnavailable):
        opened("openai:x", base_url=server.url)


def test_they_are_models_behind_an_api() -> None:
    assert all(is_remote(f"{name}:x") for name in ("openai", "ollama", "lmstudio", "azure"))
    ollama, lmstudio = (cast(type[RemoteSettings], settings_class(f"{name}:x")) for name in ("ollama", "lmstudio"))
    assert ollama().located({"OPENAI_BASE_URL": "http://elsewhere/v1"}).base_url == "http://127.0.0.1:11434/v1"
    assert lmstudio(base_url="http://there/v1/").located({}).base_url == "http://there/v1"
