"""The service without HTTP: set-ups from flags and files, models loaded once, what the model knows."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import gnothi
from gnothi.calibration.file import Calibration, write
from gnothi.config import Given, Settings, flatten, read_settings
from gnothi.errors import InvalidSetting, UnknownName
from gnothi.events import Decided, Event
from gnothi.models.identity import identify
from gnothi.models.wrappers import Seeded, Traced
from gnothi.protocols import LanguageModel
from gnothi.retrieval.build import build
from gnothi.serving.service import Outcome, open_service
from gnothi.serving.setups import plans, server_settings
from gnothi.session import sources
from gnothi.session.plan import Request, resolve
from gnothi.testing.model import Scripted
from tests.command_line import KNOWN, covered_fact, script
from tests.messages import refused


def lab() -> Scripted:
    return Scripted(script, name="lab", thresholds={"gram": -6.0})


def given(**values: Any) -> Settings:
    return Settings({key: Given(value, "a file", 0) for key, value in flatten(values).items()})


FILE = """
k = 2

[server]
port = 9000
origins = ["https://chat.example"]

[setups.careful]
method = "seakr"
[setups.careful.settings]
candidates = 2
seakr.max_steps = 3

[setups.rag]
method = "rag"

[setups.quick]
method = "direct"
"""


def test_a_file_names_set_ups_and_the_server(tmp_path: Path) -> None:
    (tmp_path / "server.toml").write_text(FILE)
    settings = read_settings(tmp_path / "server.toml", {}, ["server.slots=3", "setups.quick.method=cot"])
    server = server_settings(settings)
    assert (server.port, server.origins, server.slots) == (9000, ("https://chat.example",), 3)
    found = plans(Request(["panel"], model=lab(), settings=settings))
    assert {name: plan.methods[0].name for name, plan in found.items()} == {"careful": "seakr", "rag": "rag", "quick": "cot"}
    assert (found["careful"].methods[0].values["candidates"], found["careful"].methods[0].values["max_steps"]) == (2, 3)
    assert found["rag"].methods[0].values["k"] == 2
    of_file = read_settings(tmp_path / "server.toml")
    assert resolve(Request(["rag"], model=lab(), settings=of_file)).methods[0].values["k"] == 2  # as `gnothi ask` reads it


@pytest.mark.parametrize(
    ("setups", "error"),
    [
        ({"a": {"method": "rag", "modle": "lab"}}, UnknownName),
        ({"a": {"method": 3}}, InvalidSetting),
        ({"a": {"model": "lab"}}, InvalidSetting),
        ({"a": {"method": "rag", "index": 3}}, InvalidSetting),
        ({"a": {"method": "rag", "ignore_mismatch": "yes"}}, InvalidSetting),
        ({"a b": {"method": "rag"}}, InvalidSetting),
        ({"a": {"method": "nothing"}}, UnknownName),
    ],
)
def test_set_ups_that_cannot_be(setups: dict[str, Any], error: type[Exception]) -> None:
    with refused(error):
        plans(Request(model=lab(), settings=given(setups=setups)))


def test_flags_are_one_set_up_for_each_method() -> None:
    found = plans(Request(["seakr", "rag"], model=lab(), settings=given(candidates=2)))
    assert [(name, [one.name for one in plan.methods]) for name, plan in found.items()] == [
        ("seakr", ["seakr"]),
        ("rag", ["rag"]),
    ]


def test_a_calibration_stays_with_the_methods_that_it_is_for() -> None:
    made = Calibration("panel", "gram", -3.0, identify("lab"), "some", 100, "em", "", settings={"form": "simple"})
    found = plans(Request(["compose", "seakr", "rag"], calibration=made))
    assert [name for name, plan in found.items() if plan.calibration is made] == ["compose", "seakr"]
    meant = plans(Request(["compose", "seakr"], settings=given(**{"compose.gate": "gram"}), calibration=made))
    assert [name for name, plan in meant.items() if plan.calibration is made] == ["compose"]


def test_a_set_up_with_a_calibration_needs_no_method(tmp_path: Path) -> None:
    made = Calibration("seakr", "gram", -3.0, identify("lab"), "some", 100, "em", "", settings={"form": "multi_hop"})
    write(made, tmp_path / "made.toml")
    own = {"calibration": str(tmp_path / "made.toml")}
    found = plans(Request(settings=given(setups={"careful": own, "always": {"method": "rag"}})))
    assert {name: plan.methods[0].name for name, plan in found.items()} == {"careful": "seakr", "always": "rag"}
    assert found["careful"].methods[0].values["threshold"] == -3.0
    shared = plans(Request(settings=given(setups={"careful": {"model": "lab"}}), calibration=made))
    assert shared["careful"].methods[0].name == "seakr"
    with refused(InvalidSetting):
        plans(Request(settings=given(setups={"careful": own | {"settings": {"threshold": 1.0}}})))


async def test_a_model_that_several_name_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[tuple[str, Any]] = []

    class Closing(Scripted):
        closed = 0

        async def aclose(self) -> None:
            Closing.closed += 1

    def open_model(spec: str, settings: Any) -> LanguageModel:
        loaded.append((spec, settings.max_rows))
        return Traced(Seeded(Closing(script, name=spec, thresholds={"gram": -6.0})))

    monkeypatch.setattr(sources, "open_model", open_model)
    own = {"max_rows": 7}
    setups = {
        "one": {"method": "seakr"},
        "two": {"method": "rag", "settings": {"index": {"depth": 3}}},
        "three": {"method": "rag", "settings": {"model": own}},
        "four": {"method": "direct", "settings": {"model": own}},
    }
    async with open_service(plans(Request(model="lab", settings=given(setups=setups)))) as service:
        models = [one.opened.model for one in service.setups.values()]
        assert models[0] is models[1]
        assert models[2] is models[3]
        assert models[0] is not models[2]
        assert [rows for _, rows in loaded] == [loaded[0][1], 7]
        assert Closing.closed == 0
    assert Closing.closed == 2


async def test_it_says_what_the_face_says_alone_and_among_others() -> None:
    question = covered_fact()[2]
    async with await gnothi.aopen("seakr", model=lab()) as rag:
        alone = await rag.aask(question)
    async with open_service(plans(Request(["seakr", "rag"], model=lab()))) as service:
        seakr, other = service.find("seakr"), service.find("gnothi/rag")
        asking = [service.ask(seakr, question), *(service.ask(other, f"{KNOWN} {n}") for n in range(32))]
        found = (await asyncio.gather(*asking))[0].result
    assert (found.text, found.uncertainty, found.decisions) == (alone.text, alone.uncertainty, alone.decisions)
    assert found.cost == alone.cost


async def test_observers_hear_of_every_end_and_listeners_of_every_event() -> None:
    outcomes: list[Outcome] = []
    seen: list[Event] = []
    async with open_service(plans(Request(["seakr"], model=lab()))) as service:
        service.observers.append(outcomes.append)
        setup = service.find("seakr")
        answered = await service.ask(setup, KNOWN, listeners=[seen.append])
        await service.search(setup, "a book", 3)
        with pytest.raises(UnknownName):
            service.find("nobody")
        service.observers.insert(0, lambda _: 1 // 0)  # one that fails is in nobody's way
        work = asyncio.ensure_future(service.ask(setup, KNOWN))
        await asyncio.sleep(0)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        assert tuple(seen) == answered.result.events == outcomes[0].events
        assert [(one.kind, one.failure is None) for one in outcomes] == [("ask", True), ("search", True), ("ask", False)]
        assert outcomes[0].answered is answered


async def test_what_the_model_knows_without_a_search() -> None:
    async with open_service(plans(Request(["seakr", "rag"], model=lab()))) as service:
        setup = service.find("seakr")
        known = await service.know(setup, KNOWN)
        assert (known.knows, known.draft, known.threshold, known.signal) == (True, "Ada Bram", -6.0, "gram")
        assert known.score is not None
        assert known.score <= -6.0
        unknown = await service.know(setup, covered_fact()[2])
        assert (unknown.knows, unknown.draft) == (False, "nobody")
        assert unknown.score is not None
        assert unknown.score > -6.0
        answered = await service.ask(setup, KNOWN)
        assert [one.score for one in answered.result.decisions] == [known.score]
        assert unknown.as_dict()["usage"]["retrievals"] == 0
        with refused(InvalidSetting):
            await service.know(service.find("rag"), KNOWN)


async def test_a_draft_that_says_nothing_is_no_knowledge_and_nothing_is_searched() -> None:
    async with open_service(
        plans(Request(["seakr"], model=Scripted({}, default="I don't know.", name="lab", thresholds={"gram": 99.0})))
    ) as service:
        found = await service.know(service.find("seakr"), "Who?")
    assert not found.knows
    assert any(isinstance(one, Decided) for one in found.events)
    assert found.as_dict()["usage"]["retrievals"] == 0


async def test_agreement_of_tries_is_knowledge_too() -> None:
    async with open_service(
        plans(Request(["keqa"], model=Scripted({}, default="Ada Bram", name="lab"), settings=given(decompose=False)))
    ) as service:
        found = await service.know(service.find("keqa"), KNOWN)
    assert (found.knows, found.signal) == (True, "consistency")
    assert found.threshold == pytest.approx(0.2)


async def test_clients_are_not_told_where_things_lie(tmp_path: Path) -> None:
    folder = tmp_path / "secret" / "index"
    (tmp_path / "one.txt").write_text("Ada Bram wrote the known book.")
    build([tmp_path / "one.txt"], folder)
    async with open_service(plans(Request(["seakr"], model=Scripted(script, name="other"), index=str(folder)))) as service:
        setup = service.find("seakr")
        (warning,) = setup.warnings
        assert f"--index {folder}" in warning
        (public,) = setup.public_warnings
        assert "--index index" in public
        assert "secret" not in public


def test_the_file_of_the_examples_can_be_served() -> None:
    example = Path(__file__).parents[2] / "examples" / "serving" / "server.toml"
    settings = read_settings(example)
    assert server_settings(settings).port == 8000
    found = plans(Request(settings=settings))
    assert {name: plan.methods[0].name for name, plan in found.items()} == {
        "careful": "seakr",
        "quick": "direct",
        "always": "rag",
    }
    assert found["always"].methods[0].values["k"] == 3
