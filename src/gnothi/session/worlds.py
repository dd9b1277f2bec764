"""Which world of the laboratory a model is of: its library, graph and questions are that one's, and no other's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gnothi import lab
from gnothi.errors import GnothiError, InvalidSetting, counted
from gnothi.lab import named, worlds
from gnothi.methods.planned import name_of
from gnothi.models.registry import scheme_of
from gnothi.models.scheme import LABORATORYS
from gnothi.models.settings import HereSettings

if TYPE_CHECKING:
    from gnothi.lab.world import World
    from gnothi.types import Question

_MADE_UP = (
    ", which knows an invented world alone and makes up the rest. A model that reads your documents is <--model NAME> (`gnothi "
    "list models`)."
)
_DATA_SETS = (named.NAME, named.TRAINING_NAME)


def own(model: Any) -> str | None:
    """What the library, the graph and the questions of the model's world are called; None for a model of no such world.

    Raises InvalidInput where the folder says a world that is none."""
    found = _of_model(model)
    return found and ":".join(filter(None, (named.NAME, worlds.name_of(found[1], found[0]))))


def beside(model: Any, index: Any, graph: Any) -> tuple[Any, Any]:
    """The index and the graph that were given, or those of the model's world.

    Raises InvalidSetting for those of another world than the model's, InvalidInput as ``own``."""
    ours = [(flag, spec) for flag, spec in (("<--index PATH>", index), ("<--graph PATH>", graph)) if _is_the_laboratorys(spec)]
    found = _of_model(model)
    if found is None:
        return index, graph
    default = ":".join(filter(None, (named.NAME, worlds.name_of(found[1], found[0]))))
    for flag, spec in ours:
        if lab.world(spec.removeprefix("graph:").partition(":")[2]).fingerprint != found[1].fingerprint:
            raise InvalidSetting(
                f"{flag}: got {spec!r}, of another world of the laboratory than the one the model {name_of(model)!r} learnt; "
                f"expected {default!r}, which is the default, or documents of your own."
            )
    return index or default, graph or default


def apart(model: Any, index: Any, graph: Any, unnamed: bool) -> str:
    """A warning where the model is the laboratory's, and the index or graph not, or the other way round; empty where they
    belong together. ``unnamed``: nobody named the model.

    Raises InvalidSetting where the laboratory's was not named, IndexUnavailable where besides there is no such index."""
    ours = _of_model(model) is not None if isinstance(model, str) else None
    for flag, source in (("<--index>", index), ("<--graph>", graph)):
        if source is None or ours is None or ours == _is_the_laboratorys(source):
            continue
        got = f"{flag}: got {name_of(source)!r}"
        if unnamed:
            _check_there(flag, source)
            raise InvalidSetting(
                f"{got} and no model; the default, the laboratory's model, knows only an invented world and would make up the "
                "rest. Name one that reads your documents with <--model NAME> (`gnothi list models`; smollm2 is small), or use "
                "the laboratory's all the same with <--model lab>."
            )
        if ours and isinstance(source, str):
            return f"{got} beside the laboratory's model {model!r}{_MADE_UP}"
        if not ours:
            return (
                f"{got}, which tells of an invented world alone, beside the model {model!r}: it answers the laboratory's "
                f"questions (`gnothi eval lab`). Documents of your own are {flag} PATH (`gnothi index build`)."
            )
    return ""


def unknown(model: Any, questions: int) -> str:
    """A warning where the model is the laboratory's and so many questions are not; empty for another model."""
    if not isinstance(model, str) or _of_model(model) is None:
        return ""
    return f"data set: got {counted(questions, 'question')} not of the laboratory, beside its model {model!r}{_MADE_UP}"


def _is_the_laboratorys(source: Any) -> bool:
    return isinstance(source, str) and source.removeprefix("graph:").partition(":")[0] == named.NAME


def _check_there(flag: str, source: Any) -> None:
    from gnothi.graph.registry import graph_fingerprint
    from gnothi.retrieval.registry import index_fingerprint

    if isinstance(source, str):
        (index_fingerprint if flag == "<--index>" else graph_fingerprint)(source)


def is_of_one(question: Question) -> bool:
    """Whether the question is about a world of the laboratory."""
    return "right_action" in question.metadata or "hops" in question.metadata


def check_questions(model: Any, spec: str) -> None:
    """Raise InvalidSetting for a data set of another world than the model's."""
    name, _, argument = spec.partition(":")
    if name not in _DATA_SETS or (found := _of_model(model)) is None:
        return
    world, kind = named.world_and_kind(name, argument)
    if world.fingerprint == found[1].fingerprint:
        return
    of_its_own = ":".join(filter(None, (name, worlds.name_of(found[1], found[0]), kind)))
    raise InvalidSetting(
        f"data set: got {spec!r}, about another world of the laboratory than the one the model {name_of(model)!r} learnt; "
        f"expected {of_its_own!r}, or questions of your own."
    )


def _of_model(model: Any) -> tuple[str, World] | None:
    """Its folder and its world."""
    try:
        _, scheme, argument = scheme_of(model if isinstance(model, str) else name_of(model))
    except GnothiError:
        return None  # told by whoever opens the model
    if not issubclass(scheme.settings, HereSettings) or not argument.strip():
        return None
    folder = str(LABORATORYS.get(argument, argument))
    world = worlds.of_folder(folder)
    return None if world is None else (folder, world)
