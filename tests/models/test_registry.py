"""Models of other packages, by a scheme of their own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from gnothi import events
from gnothi.errors import InvalidSetting, UnknownName
from gnothi.models import MODELS, CallCache, check_model, is_remote, listed, load_model, settings_class, settings_listed
from gnothi.models.identity import Identity, content, demonstrations_of, identify
from gnothi.models.scheme import as_model_scheme
from gnothi.testing import Scripted
from gnothi.types import Decoding, Demonstration, Passage, Prompt, Task
from tests.messages import refused

PROMPT = Prompt(Task("answer"), "Who?")
WARM = Decoding(temperature=1.0)


@dataclass(frozen=True, slots=True)
class Settings(CallCache):
    loud: bool = field(default=False, metadata={"help": "in capitals"})


class Echo(Scripted):
    """Says its argument."""

    settings = Settings

    def __init__(self, argument: str, given: Settings) -> None:
        super().__init__(lambda _: argument.upper() if given.loud else argument, name=f"echo:{argument}")

    @staticmethod
    def fingerprint(argument: str) -> str:
        return f"version of {argument}"


def plain(argument: str) -> Scripted:
    """Says nothing else."""
    return Scripted(lambda _: argument)


@pytest.fixture(autouse=True)
def schemes() -> Iterator[None]:
    MODELS.add("echo", as_model_scheme(Echo))
    MODELS.add("plain", as_model_scheme(plain))
    yield
    MODELS.remove("echo")
    MODELS.remove("plain")


@pytest.mark.parametrize(("passages", "title"), [("titled", "Emma"), ("text", "")])
async def test_passages_may_be_shown_without_their_titles(passages: Any, title: str) -> None:
    seen: list[Prompt] = []

    def opened(argument: str, _: Settings) -> Scripted:
        return Scripted(lambda prompt: seen.append(prompt) or argument)  # type: ignore[func-returns-value]

    opened.settings = Settings  # type: ignore[attr-defined]
    MODELS.add("seen", as_model_scheme(opened))
    emma = Passage("p", "A novel.", "Emma")
    task = Task("answer", demonstrations=(Demonstration("What?", "It.", (emma,)), Demonstration("Which?", "That.")))
    try:
        await load_model("seen:x", Settings(passages=passages)).generate(
            replace(PROMPT, task=task, passages=(emma,)), Decoding()
        )
    finally:
        MODELS.remove("seen")
    (prompt,) = seen
    for shown in (prompt.passages, prompt.task.demonstrations[0].passages):
        assert shown == (replace(emma, title=title),)
    assert prompt.task.demonstrations[1] == task.demonstrations[1]


async def test_a_class_is_opened_with_its_argument_and_settings() -> None:
    assert settings_class("echo:hello") is Settings
    model = load_model("echo:hello", Settings(loud=True))
    with events.record() as happened:
        assert (await model.generate(PROMPT, Decoding())).text == "HELLO"
        first, second = [await model.sample(PROMPT, 2, WARM) for _ in range(2)]
    assert first == second
    assert [type(event) for event in happened] == [events.ModelCall] * 3
    assert model.name == "echo:hello"
    assert (identify("echo:hello").fingerprint, content("echo:hello")) == ("version of hello", "version of hello")
    assert not is_remote("echo:hello")
    check_model("echo:hello")
    with refused(InvalidSetting):
        load_model("echo:hello", CallCache())


async def test_a_function_of_the_argument_alone_will_do() -> None:
    assert settings_class("plain:x") is CallCache
    assert (await load_model("plain:x").generate(PROMPT, Decoding())).text == "x"
    assert (await load_model("plain").generate(PROMPT, Decoding())).text == ""
    assert identify("plain:x").fingerprint == ""


async def test_its_replies_are_kept_where_that_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOTHI_CACHE", str(tmp_path))

    async def asked(spec: str, **settings: Any) -> bool:
        model = load_model(spec, Settings(**settings))
        with events.record() as happened:
            await model.generate(PROMPT, Decoding())
        await model.aclose()
        (call,) = happened
        assert isinstance(call, events.ModelCall)
        return call.cached

    assert [await asked("echo:a", cache="on") for _ in range(2)] == [False, True]
    assert not await asked("echo:a")
    assert not await asked("echo:a", cache="on", loud=True)
    assert not await asked("echo:b", cache="on")


def test_listings_say_who_brings_it() -> None:
    found = listed()
    assert next(iter(found)) == "lab"
    assert found["echo:ARGUMENT"] == ("Says its argument.", "this process")
    assert settings_listed()["echo:... (this process)"] is Settings
    assert not [kind for kind in settings_listed() if kind.startswith("plain")]


def test_a_scheme_that_does_not_exist() -> None:
    with refused(UnknownName):
        load_model("opnai:gpt")


def folder(path: Path, weights: bytes = b"weights") -> Path:
    path.mkdir()
    (path / "config.json").write_text("{}")
    (path / "model.safetensors").write_bytes(weights)
    (path / "gnothi.json").write_text("{}")
    return path


def test_a_folder_is_known_by_what_it_holds_wherever_it_lies(tmp_path: Path) -> None:
    one = identify(str(folder(tmp_path / "one")))
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    os.utime(tmp_path / "copy" / "config.json", (0, 0))
    (tmp_path / "copy" / "gnothi.json").write_text('{"thresholds": {"gram": -3}}')
    copied = identify(str(tmp_path / "copy"))
    assert one.fingerprint == copied.fingerprint
    assert one.same(copied)
    assert content(str(tmp_path / "one")) != content(str(tmp_path / "copy"))
    (tmp_path / "copy" / "chat_template.jinja").write_text("{{ messages }}")
    assert not one.same(identify(str(tmp_path / "copy")))
    trained = identify(str(folder(tmp_path / "trained", b"Weights")))
    assert not one.same(trained)


def test_the_lab_model_under_any_backend() -> None:
    assert identify("lab").fingerprint
    assert identify("lab").same(identify("vllm:lab"))


@pytest.mark.parametrize("spec", ["openai:some", "no/such-model", "no such/model at all", "/nowhere"])
def test_where_only_the_name_is_known_it_decides(spec: str) -> None:
    found = identify(spec)
    assert found == Identity(spec)
    assert not content(spec)
    assert found.same(Identity(spec))
    assert not found.same(Identity("other"))


def test_a_model_is_shown_what_it_was_trained_with(tmp_path: Path) -> None:
    trained = folder(tmp_path / "trained")
    assert demonstrations_of(str(trained), "auto") == "default"
    (trained / "gnothi.json").write_text('{"demonstrations": "skill-rag"}')
    assert demonstrations_of(str(trained), "auto") == "skill-rag"
    assert demonstrations_of(f"vllm:{trained}", "auto") == "skill-rag"
    assert demonstrations_of(str(trained), "short") == "short"
    (trained / "gnothi.json").write_text('{"demonstrations": "tasks.toml"}')
    (trained / "tasks.toml").write_text("[answer]")
    assert demonstrations_of(str(trained), "auto") == str(trained / "tasks.toml")
