"""Things by name: built in, of other packages, given here; and what is said of those that cannot be had."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import gnothi
from gnothi.errors import BrokenPlugin, InvalidSetting, PluginWarning, UnknownName
from gnothi.registry import BUILT_IN, GIVEN, Registry
from gnothi.schemes import Scheme, as_scheme, split
from tests.messages import held, refused

GROUP = "gnothi.things"
Install = Callable[..., None]


@dataclass(frozen=True)
class Thing:
    name: str


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a distribution with entry points and files on the path, as an installer would."""

    def run(distribution: str, points: dict[str, str], files: dict[str, str], version: str = "1.0") -> None:
        place = tmp_path / distribution
        about = place / f"{distribution.replace('-', '_')}-{version}.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        lines = "".join(f"{name} = {target}\n" for name, target in points.items())
        (about / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}")
        for name, text in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        monkeypatch.syspath_prepend(place)

    return run


@pytest.fixture
def registry(install: Install) -> Registry[Any]:
    """With two things of a home, which is named by the test's own package."""
    code = "from tests.test_registry import Thing\nTHING = Thing({!r})\n"
    files = {f"thing_home/{name}.py": code.format(name) for name in ("first", "second", "_parts", "shared")}
    install("home", {}, {"thing_home/__init__.py": "", **files, "thing_home/inner/__init__.py": ""})
    return Registry("thing", GROUP, home="thing_home", besides=("shared",), also={"far": "tests.test_registry:FAR"})


@contextmanager
def warned() -> Iterator[None]:
    with pytest.warns(PluginWarning) as told:
        yield
    for one in told:
        held(str(one.message))


FAR, TAKEN = Thing("far"), Thing("taken")


def test_a_file_of_the_home_is_a_thing(registry: Registry[Any]) -> None:
    assert registry.names() == ("far", "first", "second")
    assert registry.find("first") == Thing("first")
    assert registry.find("first") is registry.find("first")
    assert registry.find("far") is FAR
    assert registry.entry("second").origin == BUILT_IN
    assert "first" in registry
    assert "shared" not in registry
    with refused(UnknownName):
        registry.find("frist")


def test_nothing_is_imported_before_it_is_asked_for(registry: Registry[Any], install: Install) -> None:
    install("late", {"late": "late_package.module:THING"}, {"late_package/module.py": "raise SystemError('imported')"})
    assert registry.names() == ("far", "first", "second", "late")
    assert "late" in registry
    assert registry.find("second") == Thing("second")


def test_entry_points_are_not_looked_up_for_what_is_built_in(registry: Registry[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: pytest.fail("looked up"))
    assert registry.find("first") == Thing("first")
    assert registry.entry("far").origin == BUILT_IN


def test_another_package_names_an_object_or_a_package(registry: Registry[Any], install: Install) -> None:
    code = "from tests.test_registry import Thing\nTHING = Thing({!r})\nOTHER = 5\n"
    files = {"mine/things/__init__.py": "", "mine/__init__.py": "", "mine/one.py": code.format("anything")}
    files |= {f"mine/things/{name}.py": code.format(name) for name in ("third", "fourth")}
    install("mine-dist", {"one": "mine.one:THING", "several": "mine.things"}, files, "2.5")
    assert registry.names() == ("far", "first", "second", "fourth", "one", "third")
    assert registry.find("one") == Thing("anything")
    assert registry.find("third") == Thing("third")
    assert {registry.entry(name).origin for name in ("one", "third", "fourth")} == {"mine-dist 2.5"}
    assert [entry.name for entry, _ in registry.items()] == list(registry.names())


@pytest.mark.parametrize("code", ["import no_such_module", "1 / 0", "OTHER = 5"])
def test_a_broken_one_is_named_when_asked_for_and_left_out_of_listings(
    registry: Registry[Any], install: Install, code: str
) -> None:
    name = f"broken{len(code)}"
    install("sound", {"sound": f"sound_{name}:THING"}, {f"sound_{name}.py": "THING = 'sound'"})
    install("bad-dist", {"bad": f"{name}:THING"}, {f"{name}.py": code})
    with refused(BrokenPlugin):
        registry.find("bad")
    with warned():
        assert [entry.name for entry, _ in registry.items()] == ["far", "first", "second", "sound"]
    assert registry.find("sound") == "sound"


def test_a_package_without_the_thing_of_its_files_name(registry: Registry[Any], install: Install) -> None:
    install("odd", {"odd": "odd_things"}, {"odd_things/__init__.py": "", "odd_things/empty.py": "x = 1"})
    with refused(BrokenPlugin):
        registry.find("empty")


def test_two_packages_with_one_name(registry: Registry[Any], install: Install) -> None:
    for number in (1, 2):
        install(f"dist{number}", {"twin": f"twin{number}:THING"}, {f"twin{number}.py": "THING = 5"})
    with refused(BrokenPlugin):
        registry.find("twin")
    with warned():
        assert "twin" not in [entry.name for entry, _ in registry.items()]


def test_a_built_in_one_is_never_replaced(registry: Registry[Any], install: Install) -> None:
    install("rude", {"first": "rude:THING"}, {"rude.py": "THING = 'rude'"})
    assert registry.find("first") == Thing("first")
    with warned():
        assert {entry.name: thing for entry, thing in registry.items()}["first"] == Thing("first")
    with refused(InvalidSetting):
        registry.add("first", Thing("first"))


def test_things_are_given_and_taken_back(registry: Registry[Any], install: Install) -> None:
    install("other", {"taken": "tests.test_registry:TAKEN"}, {})
    mine = Thing("mine")
    assert registry.add("mine", mine) == "mine"
    assert registry.find("mine") is mine
    assert registry.entry("mine").origin == GIVEN
    assert registry.names()[-2:] == ("mine", "taken")
    own = [registry.add("mine", thing) for thing in (mine, Thing("mine"), Thing("other"))]
    assert [registry.find(name) is thing for name, thing in zip(own, (mine, mine, mine), strict=True)] == [True, False, False]
    assert len(set(own)) == 3
    assert registry.find("mine") == Thing("other")  # the plain name is the last one's
    assert all(name == "mine" and name in registry and registry.entry(name).origin == GIVEN for name in own)
    assert registry.add("taken", TAKEN) == "taken"  # what the name stands for
    assert registry.entry("taken").origin == "other 1.0"
    with refused(InvalidSetting):
        registry.add("taken", mine)
    registry.remove("mine")
    registry.remove("mine")
    assert "mine" not in registry


def test_a_class_that_was_defined_anew_replaces_the_old_one(registry: Registry[Any]) -> None:
    def define() -> type:
        class Mine:
            name = "mine"

        return Mine

    registry.add("mine", define())
    newer = define()
    registry.add("mine", newer)
    assert registry.find("mine") is newer


# --- schemes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ("first:some/folder", ("first", "some/folder")),
        ("first", ("first", "")),
        ("first:", ("first", "")),
        ("some/first", ("", "some/first")),
        ("folder", ("", "folder")),
        ("C:\\first", ("", "C:\\first")),
        ("Qwen/Qwen3-1.7B", ("", "Qwen/Qwen3-1.7B")),
    ],
)
def test_a_spec_is_a_scheme_and_an_argument(registry: Registry[Any], spec: str, found: tuple[str, str]) -> None:
    assert split(registry, spec) == found


def test_a_scheme_that_does_not_exist(registry: Registry[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(UnknownName):
        split(registry, "frist:x")
    (tmp_path / "frist:x").mkdir()
    monkeypatch.chdir(tmp_path)
    assert split(registry, "frist:x") == ("", "frist:x")


def test_a_class_is_a_scheme() -> None:
    class Opened:
        """What is opened.

        More about it."""

        def __init__(self, argument: str) -> None:
            self.argument = argument

        @staticmethod
        def fingerprint(argument: str) -> str:
            return argument.upper()

    scheme: Scheme[Any] = as_scheme(Opened)
    assert (scheme.open("a").argument, scheme.summary, scheme.fingerprint("a")) == ("a", "What is opened.", "A")
    assert as_scheme(scheme) is scheme
    assert as_scheme(lambda argument: argument).fingerprint("a") == ""


# --- ours --------------------------------------------------------------------------------------------------------------


def test_every_built_in_thing_can_be_had() -> None:
    from gnothi.datasets import DATASETS, FORMATS
    from gnothi.graph.registry import GRAPHS
    from gnothi.methods.registry import METHODS
    from gnothi.models import MODELS
    from gnothi.retrieval.dense.encoders import ENCODERS
    from gnothi.retrieval.registry import RERANKERS, RETRIEVERS
    from gnothi.signals.registry import SIGNALS

    retrieval: tuple[Registry[Any], ...] = (RETRIEVERS, ENCODERS, RERANKERS, GRAPHS)
    ours: tuple[Registry[Any], ...] = (METHODS, SIGNALS, *retrieval, MODELS, DATASETS, FORMATS)
    assert len({one.group for one in ours}) == len(ours)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)
        found = {one.kind: [entry.name for entry, _ in one.items() if entry.origin == BUILT_IN] for one in ours}
    servers = ["elasticsearch", "lancedb", "opensearch", "postgres", "searxng"]
    frameworks = ["haystack", "langchain", "llamaindex"]
    assert found["index"] == sorted(["graph", "lab", "bm25", "dense", "hybrid", "shards", *servers, *frameworks])
    assert found["model"] == sorted([*files("models/kinds"), "azure", "lmstudio", "ollama"])  # these lie beside openai
    assert found["signal"] == files("signals/kinds")
    assert {"generic", "hotpotqa", "medqa", "squad", "two_wiki"} <= set(found["data set format"])
    assert found["method"] == [name for name in files("methods") if name not in ("planned", "registry")]
    assert (found["data set"], found["graph"]) == (["csqa-inhouse", "lab", "lab-train"], ["folder", "lab"])
    assert found["re-ranker"] == ["cohere", "cross_encoder", "jina", "rerank", "tei"]
    assert found["encoder"] == ["openai", "tei"]


def files(package: str) -> list[str]:
    return sorted(path.stem for path in (Path(gnothi.__file__).parent / package).glob("*.py") if path.stem != "__init__")
