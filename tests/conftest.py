"""What every test shares."""

from __future__ import annotations

import gc
import logging
import os
import signal
import ssl
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from benchmarks._data import find_data
from gnothi import lab
from gnothi.lab.world import World
from gnothi.types import Question
from tests import made_data as made
from tests import messages
from tests import preloaded as preloading
from tests.command_line import gnothi, gnothi_json, scripted

__all__ = ["gnothi", "gnothi_json", "scripted"]

# The models of the tests are tiny: more than one thread costs more than it gives, several times so on a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# What a shell starts in the background ignores interrupts, and so do its children: tests that interrupt theirs would fail.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Shared machines stall, and hypothesis's first text of a fresh clone takes seconds: time is no ground for failing here.
# The examples of a property are the same in each run, and few; `make test-long` draws others, twenty times as many.
settings.register_profile(
    "gnothi", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", settings.get_profile("gnothi"), derandomize=False, max_examples=1000, print_blob=True)
settings.load_profile("gnothi")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The modules that tests import are hundreds of thousands of objects that stay: to go through all of them takes half a
    second, and happens ten times while they are imported. They are left out for good."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def swept() -> Iterator[None]:
    """What the test leaves is collected at its end, when a coroutine that was never awaited warns; nothing older is."""
    gc.freeze()
    yield
    gc.collect()


# Real data, which lie beside the project or nowhere, are there for tests that ask for them by the fixture, and for no others.
REAL_DATA = find_data()


@pytest.fixture(scope="session", autouse=True)
def _no_data_unasked(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What looks for the folder by itself finds none, on whatever machine: neither a test nor a program that it starts."""
    os.environ["GNOTHI_SHARED"] = str(tmp_path_factory.mktemp("nothing-shared"))


@pytest.fixture(scope="session", autouse=True)
def _one_certificate(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A client reads all whom the system trusts when it is made, which takes longer than most tests. None needs any, but
    LanceDB makes no client that trusts nobody: so it is one. Where the system keeps them in no single file, nothing is read."""
    folder = tmp_path_factory.mktemp("certificates")
    if found := ssl.create_default_context().get_ca_certs(binary_form=True):
        (folder / "one.pem").write_text(ssl.DER_cert_to_PEM_cert(found[0]), "ascii")
        os.environ |= {"SSL_CERT_FILE": str(folder / "one.pem"), "SSL_CERT_DIR": str(folder)}


class _StandardError:
    """That of whoever writes to it now."""

    def __getattr__(self, name: str) -> object:
        return getattr(sys.stderr, name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None]:
    """A library that is first imported in a test with ``capsys`` makes a log handler that writes to the stream of that test,
    which is closed now: from here on it writes to that of each test, as if it had been imported there."""
    yield
    for known in list(vars(logging)["_handlerList"]):
        handler = known()
        if isinstance(handler, logging.StreamHandler) and getattr(handler.stream, "closed", False):
            vars(handler).pop("flush", None)  # transformers puts that of the stream there
            handler.stream = _StandardError()


@pytest.fixture(scope="session", autouse=True)
def _lab_asked_once() -> Iterator[None]:
    """Commands by the hundred read the same questions of the laboratory: each list is made once."""
    made: dict[tuple[object, ...], tuple[World, list[Question]]] = {}

    def once(make: Callable[..., list[Question]]) -> Callable[..., list[Question]]:
        def questions(world: World, *about: object, **more: object) -> list[Question]:
            if more:
                return make(world, *about, **more)
            key = (make, id(world), *about)
            if key not in made:
                made[key] = world, make(world, *about)
            return list(made[key][1])

        return questions

    with pytest.MonkeyPatch.context() as patch:
        for name in ("questions", "training_questions"):
            patch.setattr(lab, name, once(getattr(lab, name)))
        yield


@pytest.fixture(scope="session", autouse=True)
def _folder_in_messages(tmp_path_factory: pytest.TempPathFactory) -> None:
    messages.FOLDERS.add(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the project (never part of it): $GNOTHI_SHARED/data, or shared/data in a parent folder."""
    if REAL_DATA is None:
        pytest.skip("needs real data: no shared/data in a parent folder, and GNOTHI_SHARED names no folder that holds data/")
    return REAL_DATA


@pytest.fixture(scope="session")
def preloaded() -> Iterator[preloading.Preloaded]:
    """Starts programs that need torch in no time: see ``tests.preloaded``."""
    with tempfile.TemporaryDirectory(prefix="gnothi-") as folder, preloading.serving(Path(folder)) as server:
        yield server


@pytest.fixture(scope="session")
def made_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like that of the real data, of our own making: see ``tests.made_data``."""
    return made.write(tmp_path_factory.mktemp("made") / "data")


# What stands in each file that holds tests of a mark, or in a conftest.py of its folders.
SAID = {"slow": "mark.slow", "data": "shared_data"}


@cache
def _may_hold(path: Path, mark: str) -> bool:
    folders = [folder for folder in path.parents if Path(__file__).parent in folder.parents]
    places = [path, *(folder / "conftest.py" for folder in folders)]
    return any(place.is_file() and SAID[mark] in place.read_text("utf-8") for place in places)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files that hold no test of the marks that are asked for (`-m slow`, `-m '(slow or data) and not long'`) are not imported:
    each worker would take many seconds for that."""
    wanted, _, rest = config.option.markexpr.partition(" and ")
    marks = wanted.strip("()").split(" or ")
    if not SAID.keys() >= set(marks) or " or " in rest or not collection_path.name.startswith("test_"):
        return None
    return None if any(_may_hold(collection_path, mark) for mark in marks) else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need the real data are marked: `pytest -m data` runs them, or shows that each skips without."""
    for item in items:
        if "shared_data" in getattr(item, "fixturenames", ()):
            item.add_marker("data")
        for mark, said in SAID.items():
            if item.get_closest_marker(mark) and not _may_hold(item.path, mark):
                raise pytest.UsageError(
                    f"{item.nodeid} is marked {mark!r} by another file: write {said!r} in its own, by which it is found"
                )
