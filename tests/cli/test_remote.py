"""The command line with a model behind an API: a real server around the laboratory's model on the loopback interface."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from gnothi import lab
from gnothi.cli import main
from gnothi.models import LAB_FOLDER, ModelSettings
from gnothi.models.batched import Batched
from gnothi.models.rendering import Tagged
from gnothi.runs.folder import read_config, read_rows
from tests.command_line import Json, Run
from tests.messages import complained
from tests.models.openai_api import Api, Offer, Raw
from tests.models.openai_server import Server, nobody, serving

SECRET = "sk-lab-secret-0123456789"
MODEL = ("--model", "openai:lab", "--index", "lab")


@pytest.fixture(scope="module")
def network() -> tuple[Any, Any]:
    """The laboratory's model, ready to be served, and its tokenizer."""
    from gnothi.models.engine.loading import load
    from gnothi.models.transformers import TransformersBackend

    model, tokenizer, _ = load(str(LAB_FOLDER), "lab", ModelSettings(device="cpu"))
    return TransformersBackend(model, tokenizer, Raw(Tagged()), name="lab"), tokenizer


@pytest.fixture
def serve(network: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("GNOTHI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("gnothi.retrying.FIRST_WAIT", 0.002)
    # This server reads the last turn of a chat alone, so that it counts less than what it was sent.
    monkeypatch.setattr("gnothi.models.remote.window.ENOUGH", 10**6)
    with ExitStack() as stack:

        def start(offer: Offer | None = None, **how: Any) -> Server:
            server = Server(Api(Batched(network[0]), network[1], "lab", offer or Offer()), key=SECRET, **how)
            stack.enter_context(serving(server))
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            return server

        yield start


def evaluation(out: Path, *arguments: str, method: str = "cot,rag", limit: int = 6) -> tuple[str, ...]:
    return ("eval", "lab", *MODEL, "--method", method, "--limit", str(limit), "--out", str(out), *arguments)


def test_an_eval_gives_the_rows_of_the_model_itself(serve: Any, gnothi: Run, tmp_path: Path) -> None:
    # Nobody tells through an API which tasks the model was taught, which is why the laboratory's always reasons.
    as_taught = ("--set", "model.renderer=tagged", "--set", "rag.reason=true", "--set", "rag.focus=false")
    assert gnothi("eval", "lab", "--method", "cot,rag", "--limit", "4", "--out", str(tmp_path / "here"))[0] == 0
    here = [row.comparable() for row in read_rows(tmp_path / "here")]
    for chat in (True, False):
        server = serve(Offer(chat=chat))
        code, _, err = gnothi(*evaluation(tmp_path / f"chat is {chat}", *as_taught, limit=4))
        assert (code, err) == (0, "")
        assert [row.comparable() for row in read_rows(tmp_path / f"chat is {chat}")] == here
        assert server.posts


def test_the_same_eval_again_makes_no_request_and_says_so(serve: Any, gnothi: Run, tmp_path: Path) -> None:
    server = serve()
    method, limit = "seakr,cot", 3
    settings = ("--set", "seakr.signal=consistency", "--set", "seakr.threshold=0.5", "--set", "signal.samples=3")
    code, first, _ = gnothi(*evaluation(tmp_path / "first", *settings, method=method, limit=limit))
    assert code == 0
    requests = len(server.requests)
    code, second, err = gnothi(*evaluation(tmp_path / "second", *settings, method=method, limit=limit))
    assert (code, err) == (0, "")
    assert len(server.requests) == requests
    calls = [
        sum(row.cost["model_calls"] for row in read_rows(tmp_path / "second") if row.method == m) for m in ("seakr", "cot")
    ]
    assert "seakr: " in first  # greedy calls of the two methods are the same now and then
    assert f"seakr: all {calls[0]} model calls came from the cache" in second
    assert f"cot: all {calls[1]} model calls came from the cache" in second
    assert "charged: 0 requests" in second
    rows = [[row.comparable() for row in read_rows(tmp_path / name)] for name in ("first", "second")]
    assert rows[0] == rows[1]
    code, third, _ = gnothi(*evaluation(tmp_path / "third", "--no-cache", *settings, method=method, limit=limit))
    assert code == 0
    assert "from the cache" not in third
    assert len(server.requests) > requests
    assert [row.comparable() for row in read_rows(tmp_path / "third")] == rows[0]


def test_no_file_and_no_message_holds_the_key(
    serve: Any, gnothi: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = serve()
    code, out, err = gnothi(*evaluation(tmp_path / "run"))
    assert code == 0
    server.key = "another"
    code, more, errors = gnothi(*evaluation(tmp_path / "other", "--no-cache"))
    assert code == 3
    assert "denies access" in errors
    # Tracebacks are what --debug is for, so the fixture is not.
    assert main.run(["--debug", "ask", "Who directed The Hollow Letter?", *MODEL, "--method", "direct", "--trace"]) == 3
    asked, said = capsys.readouterr()
    assert "Traceback" in said
    for text in (out, err, more, errors, asked, said):
        assert SECRET not in text
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes(), file
    assert read_config(tmp_path / "run")["model.settings.base_url"] == server.url


@pytest.mark.parametrize("key", ["api_key", "token", "OPENAI_API_KEY"])
@pytest.mark.parametrize("command", ["ask", "eval"])
def test_a_key_among_the_settings_is_refused_and_not_repeated(
    serve: Any, gnothi: Run, tmp_path: Path, command: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve()
    arguments = evaluation(tmp_path / "run") if command == "eval" else ("ask", "Who?", *MODEL, "--method", "direct")
    complained(told := gnothi(*arguments, "--set", f"model.{key}={SECRET}"))
    assert SECRET not in told[2]
    assert not (tmp_path / "run").exists()
    monkeypatch.setenv("GNOTHI_MODEL__API_KEY", SECRET)
    code, out, err = gnothi(*arguments)
    assert (code, SECRET in out + err) == (2, False)


def test_a_budget_stops_the_run_and_a_larger_one_goes_on(serve: Any, gnothi: Run, tmp_path: Path) -> None:
    server = serve(Offer(chat=False))
    tagged = ("--set", "model.renderer=tagged")
    arguments = evaluation(tmp_path / "run", *tagged, "--no-cache", "--concurrency", "2", limit=6)
    code, out, err = gnothi(*arguments, "--max-tokens", "700")
    assert (code, out) == (1, "")
    kept = len(read_rows(tmp_path / "run"))
    assert 0 < kept < 12
    assert "the budget does not cover the next request: " in err
    assert f"Allow more with --max-tokens. {kept} of 12 answers are kept in {tmp_path / 'run'}" in err
    assert sum(read + written for read, written in server.api.charged) <= 700
    assert not any(row.failed for row in read_rows(tmp_path / "run"))
    code, out, err = gnothi(*arguments, "--max-cost", "5", "--set", "model.price_in=1", "--set", "model.price_out=2.5")
    assert (code, err) == (0, "")
    assert ", cost 0.0" in out
    assert gnothi(*evaluation(tmp_path / "at once", *tagged, limit=6))[0] == 0
    rows = [[row.comparable() for row in read_rows(tmp_path / name)] for name in ("run", "at once")]
    assert rows[0] == rows[1]


def test_limits_that_mean_nothing(serve: Any, gnothi: Run, tmp_path: Path) -> None:
    serve()
    complained(gnothi(*evaluation(tmp_path / "run", "--max-cost", "1")))
    complained(gnothi("ask", "Who directed The Hollow Letter?", "--max-tokens", "100"))
    code, out, err = gnothi("ask", "Who directed The Hollow Letter?", *MODEL, "--method", "direct", "--max-tokens", "10")
    assert (code, out) == (1, "")
    assert "the budget does not cover the next request: 0 of 10 tokens" in err


def test_ask(serve: Any, gnothi: Run, gnothi_json: Json) -> None:
    server = serve()
    arguments = ("ask", "What is the birthplace of the star of The Hollow Letter?", *MODEL, "--method", "rag")
    found = gnothi_json(*arguments)
    assert found["answer"]
    assert found["usage"]["cached_calls"] == 0
    assert found["charged"]["requests"] == len(server.posts)
    assert found["charged"]["prompt_tokens"] == sum(read for read, _ in server.api.charged)
    assert found["charged"]["cost"] is None
    code, out, _ = gnothi(*arguments, "--trace")
    assert code == 0
    assert "(1 from the cache)" in out
    assert "tokens, from the cache)" in out
    assert "charged  0 requests" in out


def test_how_a_model_was_asked_is_told_and_kept(serve: Any, gnothi: Run, gnothi_json: Json, tmp_path: Path) -> None:
    serve(Offer(refuses=frozenset({"n", "top_k"})))
    samples = ("--method", "seakr", "--set", "signal=consistency", "--set", "signal.samples=3")
    code, out, _ = gnothi("ask", "Who directed The Hollow Letter?", *MODEL, *samples)
    assert code == 0
    reason = "top_k: Unsupported parameter: 'top_k' is not supported with this model."
    assert "openai:lab: left out: n: " in " ".join(out.split())
    assert reason in " ".join(out.split())
    found = gnothi_json("ask", "Who directed The Hollow Letter?", *MODEL, *samples, "--no-cache")
    assert found["asked"]["openai:lab"]["without"] == "n, top_k"
    code, out, _ = gnothi(*evaluation(tmp_path / "run", *samples[2:], "--no-cache", method="seakr", limit=1))
    assert code == 0
    assert "openai:lab: left out: n: " in out
    kept = json.loads((tmp_path / "run" / "asked.json").read_text(encoding="utf-8"))["openai:lab"]
    assert (kept["without"], reason in kept["why"]) == ("n, top_k", True)
    opened = gnothi_json("list", "models", "openai:lab")
    assert (opened["without"], opened["offers"]) == ("top_k", "text, logprobs")  # n was asked for by no trial
    assert "top_k: Unsupported parameter" in " ".join(gnothi("list", "models", "openai:lab")[1].split())


def test_a_model_that_runs_here_tells_how(gnothi_json: Json) -> None:
    assert "hidden states" in gnothi_json("list", "models", "lab")["offers"]


JUDGES = ("--set", "judge=openai:lab", "--set", "utility_judge=openai:lab", "--set", "reader=openai:lab")
KEQA = ("--method", "keqa", *JUDGES, "--set", "model.renderer=tagged", "--set", "model.device=cpu", "--set", "model.retries=2")


@pytest.mark.slow
def test_judges_behind_an_api_are_charged_kept_and_limited(serve: Any, gnothi: Run, gnothi_json: Json, tmp_path: Path) -> None:
    server = serve(Offer(chat=False))
    asked = lab.questions(lab.world(), "two_hop", 40)
    unknown = next(question for question in asked if question.metadata["familiarity"] == "never")
    arguments = ("ask", unknown.text, *KEQA)
    found = gnothi_json(*arguments, "--trace")
    called = [event for event in found["events"] if event["event"] == "model_call"]
    there = [event for event in called if event["model"] == "openai:lab"]
    assert 0 < len(there) < len(called)
    assert {event["model"] for event in called} == {"lab", "openai:lab"}
    assert found["charged"]["requests"] == len(server.posts)
    again = gnothi_json(*arguments, "--trace")
    assert again["charged"]["requests"] == 0
    kept = [event["cached"] for event in again["events"] if event["event"] == "model_call" and event["model"] == "openai:lab"]
    assert (len(kept), all(kept)) == (len(there), True)
    assert again["answer"] == found["answer"]
    code, out, err = gnothi(*arguments, "--no-cache", "--max-tokens", "10")
    assert (code, "the budget does not cover the next request: 0 of 10 tokens" in err) == (1, True)
    run = ("eval", "lab:two_hop", *KEQA, "--limit", "1", "--out", str(tmp_path / "run"))
    code, out, _ = gnothi(*run, "--max-cost", "5", "--set", "model.price_in=1", "--set", "model.price_out=2")
    assert code == 0
    assert "charged: " in out
    assert ", cost 0.0" in out
    config = read_config(tmp_path / "run")
    assert config["model.settings.base_url"] == server.url
    assert config["model.settings.device"] == "cpu"
    assert "execution.model.settings.price_in" in config


def test_a_utility_reference_by_a_model_behind_an_api(serve: Any, gnothi: Run, tmp_path: Path) -> None:
    server = serve(Offer(chat=False))
    arguments = ("train", "utility-reference", "lab-train", *MODEL, "--set", "model.renderer=tagged", "--limit", "3")
    code, out, err = gnothi(*arguments, "--out", str(tmp_path / "out"), "--concurrency", "2", "--max-tokens", "400")
    assert (code, out) == (1, "")
    assert "the budget does not cover the next request: " in err
    assert f"What is finished is kept in {tmp_path / 'out'}" in err
    code, out, _ = gnothi(*arguments, "--out", str(tmp_path / "out"))
    assert code == 0
    assert "charged: " in out
    requests = len(server.requests)
    code, out, _ = gnothi(*arguments, "--out", str(tmp_path / "again"))
    assert (code, len(server.requests)) == (0, requests)
    assert "charged: 0 requests" in out
    lines = [(tmp_path / name / "labels.jsonl").read_text().splitlines() for name in ("out", "again")]
    judged = [[json.loads(line)["judged"] for line in one] for one in lines]
    assert judged[0] == judged[1]


def test_what_a_method_needs_is_checked_before_the_first_question(serve: Any, gnothi: Run, tmp_path: Path) -> None:
    server = serve(Offer(ignores=frozenset({"logprobs"})))
    complained(gnothi(*evaluation(tmp_path / "run", method="seakr")))
    complained(gnothi(*evaluation(tmp_path / "run2", "--set", "signal=perplexity", method="seakr")))
    assert len(server.posts) == 2  # a trial, and whether a begun reply is continued; both are remembered


def test_a_server_that_is_not_there(gnothi: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("gnothi.retrying.FIRST_WAIT", 0.002)
    monkeypatch.setenv("GNOTHI_CACHE", str(tmp_path / "cache"))
    with nobody() as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        code, out, err = gnothi("ask", "Who?", *MODEL, "--method", "direct")
    assert (code, out) == (3, "")
    assert f"no usable answer from openai:lab at {url}" in err
    complained(gnothi("ask", "Who?", *MODEL, "--method", "direct", "--set", "model.device=cpu"))


def test_cache_info_and_clear(serve: Any, gnothi: Run, gnothi_json: Json, tmp_path: Path) -> None:
    assert "cache" in main.COMMANDS
    serve()
    assert gnothi_json("cache") == {"path": str(tmp_path / "cache"), "entries": 0, "bytes": 0, "models": {}}
    gnothi("ask", "Who directed The Hollow Letter?", *MODEL, "--method", "direct")
    found = gnothi_json("cache")
    assert found["entries"] == 2  # the reply, and what the trial of the server showed
    code, out, _ = gnothi("cache")
    assert (code, "2 entries" in out) == (0, True)
    assert "deleted 2 entries" in gnothi("cache", "--clear")[1]
    assert gnothi_json("cache")["entries"] == 0


def test_a_damaged_cache_costs_no_run(serve: Any, gnothi: Run, tmp_path: Path) -> None:
    serve()
    assert gnothi(*evaluation(tmp_path / "first", limit=2))[0] == 0
    (tmp_path / "cache" / "calls.sqlite").write_bytes(b"no database " * 1000)
    (tmp_path / "cache" / "calls.sqlite-wal").unlink(missing_ok=True)
    code, _, _ = gnothi(*evaluation(tmp_path / "second", limit=2))
    assert code == 0
    rows = [[row.comparable() for row in read_rows(tmp_path / name)] for name in ("first", "second")]
    assert rows[0] == rows[1]


def test_execution_settings_may_change_when_a_run_goes_on(serve: Any, gnothi: Run, tmp_path: Path) -> None:
    server = serve()
    assert gnothi(*evaluation(tmp_path / "run", limit=2))[0] == 0
    again = evaluation(tmp_path / "run", "--set", "model.concurrency=3", "--set", "model.retries=1", "--no-cache", limit=2)
    assert gnothi(*again)[0] == 0
    complained(gnothi(*evaluation(tmp_path / "run", "--set", "model.endpoint=completions", limit=2)))
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    calls = [event for row in events for event in row["events"] if event["event"] == "model_call"]
    assert calls
    assert {call["model"] for call in calls} == {"openai:lab"}
    assert server.posts


def test_a_calibration_that_was_stopped_says_what_is_kept(
    serve: Any, gnothi: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gnothi.session.calibrate.FEWEST", 6)
    monkeypatch.setattr("gnothi.calibration.choose.FEWEST", 6)
    server = serve(Offer(chat=False))
    out = tmp_path / "made.toml"
    signal = ("--set", "signal=consistency", "--set", "signal.samples=2", "--set", "model.renderer=tagged")
    arguments = ("calibrate", "lab-train:one_hop", *MODEL, *signal, "--limit", "6", "--out", str(out))
    code, said, err = gnothi(*arguments, "--max-tokens", "600")
    assert (code, said, out.exists()) == (1, "", False)
    assert f"answers are kept in {out}.runs. Run the same command again" in err
    requests = len(server.requests)
    code, _, err = gnothi(*arguments)
    assert (code, "charged: " in err) == (0, True)
    assert len(server.requests) > requests


def test_a_reranker_says_what_its_pairs_cost(serve: Any, gnothi: Run, tmp_path: Path) -> None:
    serve(Offer(chat=False))
    arguments = ("train", "reranker", "lab-train:two_hop_choice", "--limit", "2", "--collect-only", "--graph", "lab")
    remote = ("--model", "openai:lab", "--set", "model.renderer=tagged", "--out", str(tmp_path / "out"))
    code, said, err = gnothi(*arguments, *remote)
    assert (code, err) == (0, "")
    assert said.splitlines()[-1].startswith("charged: ")
