"""Recipes: a table of a method and its variants, each in a TOML file. ``read`` reads one of ours, or a file.

    title = "What tells when to look something up"
    source = "Yao et al. 2024, table 3"       # optional, as all that follows
    dataset = "lab"                           # unless the command names another
    metric = "em"                             # of the differences: em, f1 or accuracy
    model = "lab"                             # index, graph likewise
    extras = ["dense"]                        # of the package

    [settings]                                # common to all, as in --config
    max_steps = 5

    [[variant]]                               # the first is the full method, unless full = LABEL
    label = "SeaKR"
    method = "seakr"

    [[variant]]
    label = "Perplexity"
    method = "seakr"
    settings = { signal = "perplexity" }
    paper.2Wiki = { em = 29.0, f1 = 35.2 }    # what the paper has, as it writes it

Further keys of a variant: ``group`` (a heading above it), ``model``, ``index``, ``graph`` (where it has others), ``needs``
(settings that the user has to give for it, and how to come by them), ``shift`` (a number by which its threshold is above
the one in force, whatever model and calibration make that), ``at`` and ``series`` (its place in a picture over the
table's ``axis``), ``note``. Those of the table: ``note``, ``axis``, ``full``.

A table or figure of a paper names the paper's data sets in place of ``dataset``, and what else it takes:

    data = ["2wiki", "hotpotqa"]             # of resources.toml; the figures of rows have the same names
    covers = ["table 1"]                     # elements of the paper
    questions = 500                          # of each, drawn at random; without it all
    corpus = "wikipedia-2018"                # of resources.toml; graph likewise
    model = "meta-llama/Llama-2-7b-chat-hf"
    calibration = "nq-train"                 # training questions that thresholds are chosen on
    calibrate_on = 3000                      # so many of them
    percent = true                           # the paper's shares are printed in percent
    show = ["retrievals"]                    # measures beside those that the paper prints
    pairs = { decompose = true }             # rows judge pairs of the model's own answers, made first with these settings
    calls = "contexts"                       # how the paper counts (counting.py): paper_calls, paper_tokens

    [rehearse]                               # settings in a rehearsal, over the others
    samples = 4

    [on.nq]                                  # what differs on one data set: model, graph, corpus, rehearse, settings, pairs
    settings = { form = "simple" }

    [[train]]                                # before the rows, for each data set
    name = "judge"                           # rows and later trainings write {judge} for its folder
    what = "reranker"                        # as in `gnothi train`
    limit = 500
    settings = { epochs = 4 }
    rehearse = { epochs = 1 }

    [[variant]]
    without = ["nq"]                         # data sets that the paper leaves out
    calibrate = true                         # its threshold is chosen on training questions, for the model at hand
    rehearse = { layer = 1 }
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast, get_args

from gnothi.config import flatten
from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from gnothi.files import TOML_ERRORS
from gnothi.reproduce import resources
from gnothi.reproduce.counting import Unit
from gnothi.reproduce.resources import Resource
from gnothi.reproduce.study import Study, take
from gnothi.reproduce.study import parse as parse_study

FOLDER = Path(__file__).parent / "recipes"
PAPERS = Path(__file__).parent / "papers.toml"
_OWN: tuple[str, ...] = ("covers", "data", "questions", "corpus", "calibration", "calibrate_on", "percent", "extras", "show")
_OWN += ("calls", "pairs", "rehearse", "on", "train")
_OF_ROW = ("without", "calibrate", "rehearse")
_OF_PAPERS = {"questions", "corpus", "calibration", "calibrate_on", "pairs", "rehearse", "on", "train"}
"""What only a recipe with the data sets of a paper has a use for."""


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
    pairs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recipe:
    """``name`` is PAPER/ELEMENT, or the name of an ablation or a file, without ``data``. ``rows`` by label."""

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
    calibrate_on: int = 300
    percent: bool = False
    calls: Unit = "contexts"
    pairs: Mapping[str, Any] | None = None
    extras: tuple[str, ...] = ()
    show: tuple[str, ...] = ()
    rehearse: Mapping[str, Any] = field(default_factory=dict)

    @property
    def paper(self) -> str:
        return self.name.partition("/")[0]


def names() -> tuple[str, ...]:
    """All recipes that come along: in the order of the papers and their elements, then the ablations."""
    files = [f"{paper}/{file.stem}" for paper in papers() for file in (FOLDER / paper).glob("*.toml")]
    order = list(papers())
    files.sort(key=lambda name: (order.index(name.partition("/")[0]), _place(name)))
    return (*files, *sorted(file.stem for file in FOLDER.glob("*.toml")))


def papers() -> dict[str, dict[str, Any]]:
    """By short name: the paper's title, and the elements without a recipe with the reason."""
    return tomllib.loads(PAPERS.read_text(encoding="utf-8"))


def read(name: str) -> Recipe:
    """The recipe of that name, or that covers the element of that name (keqa/table4), or in that file.

    Raises UnknownName, InvalidInput or InvalidSetting, naming file and key; for an element that has none, the reason."""
    if name in names():
        return _read(FOLDER / f"{name}.toml", name, f"the recipe {name}")
    if Path(name).is_file():
        return _read(Path(name), Path(name).stem, name)
    if Path(name).suffix == ".toml":
        raise InvalidInput(f"there is no file {name}. Expected a recipe: a TOML file, or a name of `gnothi list recipes`.")
    by_element = {
        f"{one.paper}/{element.replace(' ', '')}": one.name for one in map(read, reversed(names())) for element in one.covers
    }
    if name in by_element:
        return read(by_element[name])
    paper, _, element = name.partition("/")
    for left_out, reason in papers().get(paper, {}).get("left_out", {}).items():
        if left_out.replace(" ", "") == element:
            raise InvalidInput(f"{name} has no recipe: {reason}.")
    raise UnknownName("recipe (a name, or a TOML file)", name, names())


def _place(name: str) -> tuple[bool, int, str]:
    """Tables before figures, by number."""
    element = name.partition("/")[2]
    kind, digits = element.rstrip("0123456789"), "".join(filter(str.isdigit, element.partition("-")[0]))
    return kind.startswith("figure"), int(digits or 0), element


def _read(path: Path, name: str, place: str) -> Recipe:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"cannot read the recipe {path}: {error.strerror}.") from error
    except TOML_ERRORS as error:
        raise InvalidInput(f"{place} is not valid TOML: {error}.") from error
    return parse(table, name, place)


def parse(table: dict[str, Any], name: str, place: str) -> Recipe:
    """A recipe from what TOML read; ``place`` names it in messages. Methods and settings are not looked at here.

    Raises UnknownName (a key that there is not) or InvalidSetting."""
    own = {key: table.pop(key) for key in _OWN if key in table}
    listed = table.get("variant", ())
    variants = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    of_rows = [{key: one.pop(key) for key in _OF_ROW if key in one} for one in variants]
    pairs = take(own, "pairs", dict, place, None)
    study = parse_study(table, name.rpartition("/")[2], place)
    if pairs is not None:
        from gnothi.reproduce.judging import OWN

        study = replace(study, variants=tuple(replace(one, method=OWN.get(one.method, one.method)) for one in study.variants))
    if "data" not in own and (alone := sorted(_OF_PAPERS & own.keys()) or sorted({key for one in of_rows for key in one})):
        raise InvalidSetting(f"{place}: got {alone[0]!r} without data, the data sets of a paper. Name them, or leave it out.")
    calls = take(own, "calls", str, place, "contexts")
    if calls not in get_args(Unit):
        raise UnknownName(f"way of counting calls (in {place})", calls, get_args(Unit))
    return Recipe(
        name=name,
        study=study,
        covers=_names(own, "covers", place),
        data=tuple(resources.find("data", one) for one in _names(own, "data", place)),
        rows={
            variant.label: Row(
                _names(one, "without", place),
                take(one, "calibrate", bool, place, False),
                flatten(take(one, "rehearse", dict, place, {})),
            )
            for variant, one in zip(study.variants, of_rows, strict=True)
        },
        on={one: _on(entry, place) for one, entry in take(own, "on", dict, place, {}).items()},
        trainings=tuple(_training(one, place) for one in take(own, "train", list, place, [])),
        questions=take(own, "questions", int, place, None),
        corpus=take(own, "corpus", str, place, ""),
        calibration=take(own, "calibration", str, place, ""),
        calibrate_on=take(own, "calibrate_on", int, place, 300),
        percent=take(own, "percent", bool, place, False),
        calls=cast("Unit", calls),
        pairs=None if pairs is None else flatten(pairs),
        extras=_names(own, "extras", place),
        show=_names(own, "show", place),
        rehearse=flatten(take(own, "rehearse", dict, place, {})),
    )


def _names(table: Mapping[str, Any], key: str, place: str) -> tuple[str, ...]:
    texts = take(table, key, list, place, [])
    if not all(isinstance(one, str) for one in texts):
        raise InvalidSetting(f"{place}: got {key} = {texts!r:.80}, expected an array of texts.")
    return tuple(texts)


def _on(table: object, place: str) -> On:
    if not isinstance(table, Mapping) or table.keys() - {one.name for one in fields(On)}:
        raise InvalidSetting(
            f"{place}, on: got {table!r:.80}, expected a table of {', '.join(one.name for one in fields(On))}."
        )
    tables: dict[str, Any] = {key: flatten(take(table, key, dict, f"{place}, on", {})) for key in ("settings", "pairs")}
    return On(**tables | {key: take(table, key, str, f"{place}, on") for key in table if key not in tables})


def _training(table: object, place: str) -> Training:
    if not isinstance(table, Mapping):
        raise InvalidSetting(f"{place}: got {table!r:.80}, expected a table: [[train]] with name and what.")
    where = f"{place}, train"
    known = {"name", "what", "limit", "settings", "rehearse"}
    return Training(
        name=take(table, "name", str, where),
        kind=take(table, "what", str, where),
        limit=take(table, "limit", int, where, None),
        settings=flatten(take(table, "settings", dict, where, {})),
        given={key: one for key, one in table.items() if key not in known},
        rehearse=flatten(take(table, "rehearse", dict, where, {})),
    )
