"""Keys: digests in a file; who asks too often or too much is told so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from gnothi.events import ModelCall
from gnothi.models.remote.budget import Budget, Prices
from gnothi.serving import keys
from gnothi.serving.failures import Refusal
from gnothi.serving.keys import Account, Keys
from tests.command_line import KNOWN, Json, Run, covered_fact
from tests.messages import refused
from tests.serving.served import Served, served
from tests.serving.test_faults import error_of


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


async def asking(server: Served, key: str | None, question: str = KNOWN) -> Any:
    server.http.headers.pop("authorization", None)
    if key is not None:
        server.http.headers["authorization"] = f"Bearer {key}"
    return await server.chat(question)


def test_the_file_holds_no_key(file: Path) -> None:
    secret = keys.add(file, "me", per_minute=3.0)
    assert secret not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    (one,) = keys.read(file)
    assert (one.name, one.digest, one.per_minute) == ("me", keys.digest(secret), 3.0)


def test_names_are_unique_and_of_few_letters(file: Path) -> None:
    keys.add(file, "me")
    for name in ("me", "", "a b", "x" * 65, "../x"):
        with pytest.raises(InvalidSetting):
            keys.add(file, name)
    with pytest.raises(UnknownName):
        keys.revoke(file, "you")


@pytest.mark.parametrize("content", ["", "[]", '{"version": 2, "keys": []}', '{"version": 1}', '{"version": 1, "keys": [{}]}'])
def test_a_file_that_holds_no_keys(file: Path, content: str) -> None:
    with refused(InvalidInput):
        keys.read(file)
    file.write_text(content)
    with refused(InvalidInput):
        keys.read(file)


@pytest.mark.parametrize(
    ("name", "value"),
    [("name", None), ("name", "a b"), ("digest", 1), ("created", [[]]), ("revoked", {"a": 1}), ("per_minute", "5"),
     ("max_tokens", True), pytest.param("max_cost", 10**400, id="401 digits"), ("max_cost", -1)]
)  # fmt: skip
def test_a_key_with_a_value_of_another_kind(file: Path, name: str, value: object) -> None:
    keys.add(file, "me", per_minute=5)
    document = json.loads(file.read_text())
    document["keys"][0][name] = value
    file.write_text(json.dumps(document))
    with refused(InvalidInput):
        keys.read(file)


@pytest.mark.parametrize("content", ["", "[]", '{"me": 3}', '{"me": {"tokens": "3"}}', '{"me": {"cost": -1}}'])
def test_damaged_books_are_no_new_budget(file: Path, content: str) -> None:
    keys.add(file, "me", max_tokens=60)
    file.with_name(file.name + ".spent").write_text(content)
    with refused(InvalidInput):
        Keys(file)


async def test_wrong_missing_and_revoked_keys(file: Path) -> None:
    secret = keys.add(file, "me")
    async with served(keys=file) as server:
        for key in (None, "gn-other", secret + "x", "a b"):
            found = await asking(server, key)
            assert (found.status_code, error_of(found)["code"]) == (401, "invalid_api_key")
        assert (await asking(server, secret)).status_code == 200
        for path in ("/v1/models", "/metrics", "/v1/runs"):
            assert (await server.http.get(path)).status_code == 200
        server.http.headers.pop("authorization")
        for path in ("/v1/models", "/metrics", "/v1/runs", "/v1/nothing"):
            assert (await server.http.get(path)).status_code == 401
        for path in ("/healthz", "/readyz"):
            assert (await server.http.get(path)).status_code == 200
        keys.revoke(file, "me")
        found = await asking(server, secret)
        assert (found.status_code, error_of(found)["message"]) == (401, "This key was revoked.")
        later = keys.add(file, "later")
        assert (await asking(server, later)).status_code == 200


async def test_a_key_asks_so_often(file: Path) -> None:
    secret = keys.add(file, "me", per_minute=2.0)
    now = 7.0
    async with served(methods=("seakr",), keys=file) as server:
        assert server.context.keys is not None
        server.context.keys.account(f"Bearer {secret}").clock = lambda: now
        found = [await asking(server, secret) for _ in range(3)]
        assert [one.status_code for one in found] == [200, 200, 429]
        assert found[2].headers["retry-after"] == "30"
        assert error_of(found[2])["code"] == "rate_limit_exceeded"
        now += 30.0
        assert [(await asking(server, secret)).status_code for _ in range(2)] == [200, 429]


async def test_a_spent_budget_stays_spent_when_the_server_starts_anew(file: Path) -> None:
    secret, other = keys.add(file, "me", max_tokens=60), keys.add(file, "other")
    question = covered_fact()[2]
    for _ in range(2):
        async with served(methods=("seakr",), keys=file) as server:
            found = await asking(server, secret, question)
            assert (found.status_code, error_of(found)["code"]) == (429, "insufficient_quota")
            assert (await asking(server, other, question)).status_code == 200
    assert keys.spent(file)["me"]["tokens"] > 60
    assert keys.spent(file)["other"]["tokens"] > keys.spent(file)["me"]["tokens"]


async def test_a_stream_ends_where_the_budget_does(file: Path) -> None:
    secret = keys.add(file, "me", max_tokens=60)
    async with served(methods=("seakr",), keys=file) as server:
        server.http.headers["authorization"] = f"Bearer {secret}"
        stream = await server.chat(covered_fact()[2], stream=True)
        assert json.loads(stream.text.split("data: ")[-2])["error"]["code"] == "insufficient_quota"


async def test_two_servers_do_not_share_a_file(file: Path) -> None:
    keys.add(file, "me")
    async with served(methods=("direct",), keys=file):
        with refused(InvalidSetting):
            Keys(file)
    Keys(file).close()


def test_a_damaged_file_leaves_the_keys_as_they_were(file: Path) -> None:
    secret = keys.add(file, "me")
    known = Keys(file)
    file.write_text("{")
    assert known.account(f"Bearer {secret}").name == "me"
    known.close()


def test_a_list_of_keys_does_not_steer_the_terminal(gnothi: Run, file: Path) -> None:
    keys.add(file, "me")
    document = json.loads(file.read_text())
    document["keys"][0] |= {"created": "\x1b[2J", "revoked": "\u202e"}
    file.write_text(json.dumps(document))
    code, out, _ = gnothi("keys", str(file))
    assert code == 0
    assert "me: since \N{REPLACEMENT CHARACTER}[2J, revoked \N{REPLACEMENT CHARACTER}" in out


def test_cost_is_counted_where_a_price_is_known_and_the_cache_is_free() -> None:
    account = Account("me", budget=Budget(max_cost=1.0), prices={"openai:m": Prices(1.0, 2.0)})
    account(ModelCall("openai:m", "generate", "answer", 500_000, 0, 0.1, cached=True))
    account(ModelCall("lab", "generate", "answer", 500_000, 0, 0.1))
    assert account.budget.cost == 0.0
    account(ModelCall("openai:m", "generate", "answer", 500_000, 250_000, 0.1))
    assert account.budget.cost == 1.0
    with pytest.raises(Refusal):
        account.admit()


def test_the_commands(gnothi: Run, gnothi_json: Json, file: Path) -> None:
    code, out, _ = gnothi("keys", str(file), "--add", "me", "--per-minute", "3", "--max-tokens", "1000")
    assert code == 0
    assert keys.read(file)[0].digest == keys.digest(out.strip())
    assert gnothi_json("keys", str(file), "--add", "you")["name"] == "you"
    assert gnothi("keys", str(file), "--revoke", "you")[0] == 0
    code, out, _ = gnothi("keys", str(file))
    assert [line.partition(":")[0] for line in out.splitlines()] == ["me", "you"]
    assert "3 questions a minute, 0 tokens of 1,000" in out
    assert [bool(one["revoked"]) for one in gnothi_json("keys", str(file))] == [False, True]
    code, _, err = gnothi("keys", str(file), "--revoke", "nobody")
    assert (code, "Expected one of: me, you" in err) == (2, True)
