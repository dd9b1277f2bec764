"""Recipes: a table or figure of a paper, as one TOML file: a study (``gnothi.studies.study``) with what it needs beside it.

    covers = ["table 1"]                     # elements of the paper
    data = ["2wiki", "hotpotqa"]             # of resources.toml; the figures of rows have the same names
    questions = 500                          # of each, drawn at random; without it all
    corpus = "wikipedia-2018"                # of resources.toml; graph likewise
    model = "meta-llama/Llama-2-7b-chat-hf"
    percent = true                           # the paper's shares are printed in percent
    show = ["retrievals"]                    # measures beside those that the paper prints
    calls = "contexts"                       # how the paper counts calls (counting.py), for its figures of paper_calls
    extras = ["training"]                    # of the package

    [rehearse]                               # settings in a rehearsal, over the others
    samples = 4

    [on.nq]                                  # what differs on one data set: model, graph, corpus, rehearse, settings
    settings = { form = "simple" }

    [[train]]                                # before the rows, for each data set
    name = "judge"                           # rows and later trainings write {judge} for its folder
    what = "reranker"                        # as in `gnothi train`
    limit = 500
    settings = { epochs = 4 }
    rehearse = { epochs = 1 }

    [[variant]]                              # as in a study, and
    without = ["nq"]                         # data sets that the paper leaves out
    calibrate = true                         # its threshold is chosen on training questions, for the model at hand
    rehearse = { layer = 1 }

All other keys are a study's.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gnothi.config import flatten
from gnothi.errors import InvalidInput, UnknownName
from gnothi.reproduce import resources
from gnothi.reproduce.counting import Counted
from gnothi.reproduce.resources import Resource
from gnothi.studies.study import Study, parse

FOLDER = Path(__file__).parent / "recipes"
PAPERS = FOLDER / "papers.toml"
_OWN = ("covers", "data", "questions", "corpus", "calibration", "percent", "extras", "show", "calls", "rehearse", "on", "train")
_OF_ROW = ("without", "calibrate", "rehearse")


@dataclass(frozen=True, slots=True)
class Training:
    """One thing that is learnt first. ``kind`` is a command of `gnothi train`; ``given`` are its flags (method, base, encoder),
    and ``data`` where it does not learn from the data set at hand."""

    name: str
    kind: str
    limit: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    rehearse: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """What a recipe says of a row beside the study."""

    without: tuple[str, ...] = ()
    calibrate: bool = False
    rehearse: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class On:
    """What differs on one data set."""

    model: str = ""
    graph: str = ""
    corpus: str = ""
    rehearse: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recipe:
    """``name`` is PAPER/ELEMENT. ``rows`` by label."""

    name: str
    study: Study
    covers: tuple[str, ...]
    data: tuple[Resource, ...]
    rows: Mapping[str, Row]
    on: Mapping[str, On]
    trainings: tuple[Training, ...] = ()
    questions: int | None = None
    corpus: str = ""
    calibration: str = ""
    percent: bool = False
    calls: Counted = "contexts"
    extras: tuple[str, ...] = ()
    show: tuple[str, ...] = ()
    rehearse: Mapping[str, Any] = field(default_factory=dict)

    @property
    def paper(self) -> str:
        return self.name.partition("/")[0]

    @property
    def calibrates(self) -> bool:
        return any(row.calibrate for row in self.rows.values())


def names() -> tuple[str, ...]:
    """All recipes, in the order of the papers and their elements."""
    found = [f"{paper}/{file.stem}" for paper in papers() for file in (FOLDER / paper).glob("*.toml")]
    order = list(papers())
    return tuple(sorted(found, key=lambda name: (order.index(name.partition("/")[0]), _place(name))))


def papers() -> dict[str, dict[str, Any]]:
    """By short name: the paper's title, and the elements without a recipe with the reason."""
    return tomllib.loads(PAPERS.read_text(encoding="utf-8"))


def read(name: str) -> Recipe:
    """The recipe of that name, or that covers the element of that name (keqa/table4). Raises UnknownName, or InvalidInput with
    the reason for an element that has none."""
    if name in names():
        return _read(name)
    by_element = {
        f"{one.paper}/{element.replace(' ', '')}": one.name for one in map(_read, reversed(names())) for element in one.covers
    }
    if name in by_element:
        return _read(by_element[name])
    paper, _, element = name.partition("/")
    for left_out, reason in papers().get(paper, {}).get("left_out", {}).items():
        if left_out.replace(" ", "") == element:
            raise InvalidInput(f"{name} has no recipe: {reason}.")
    raise UnknownName("recipe", name, names())


def _place(name: str) -> tuple[bool, int, str]:
    """Tables before figures, by number."""
    element = name.partition("/")[2]
    kind, digits = element.rstrip("0123456789"), "".join(filter(str.isdigit, element.partition("-")[0]))
    return kind.startswith("figure"), int(digits or 0), element


def _read(name: str) -> Recipe:
    path = FOLDER / f"{name}.toml"
    place = f"the recipe {name}"
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    own = {key: table.pop(key) for key in _OWN if key in table}
    rows = {
        one["label"]: Row(**{key: _frozen(one.pop(key)) for key in _OF_ROW if key in one}) for one in table.get("variant", ())
    }
    study = parse(table, name.rpartition("/")[2], place)
    return Recipe(
        name=name,
        study=study,
        covers=tuple(own["covers"]),
        data=tuple(resources.find("data", one) for one in own["data"]),
        rows=rows,
        on={one: _on(what, place) for one, what in own.get("on", {}).items()},
        trainings=tuple(_training(one) for one in own.get("train", ())),
        rehearse=flatten(own.get("rehearse", {})),
        extras=tuple(own.get("extras", ())),
        show=tuple(own.get("show", ())),
        **{key: own[key] for key in ("questions", "corpus", "calibration", "percent", "calls") if key in own},
    )


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else flatten(value) if isinstance(value, dict) else value


def _on(table: Mapping[str, Any], place: str) -> On:
    try:
        return On(**{key: _frozen(one) for key, one in table.items()})
    except TypeError as error:
        raise InvalidInput(f"{place}, on: {error}.") from None


def _training(table: Mapping[str, Any]) -> Training:
    known = {"name", "what", "limit", "settings", "rehearse"}
    return Training(
        name=table["name"],
        kind=table["what"],
        limit=table.get("limit"),
        settings=flatten(table.get("settings", {})),
        given={key: one for key, one in table.items() if key not in known},
        rehearse=flatten(table.get("rehearse", {})),
    )
