"""Studies: a method with its parts taken away one by one, as papers tabulate them, each in a TOML file.

    title = "What tells when to look something up"
    source = "Yao et al. 2024, table 3"       # optional
    dataset = "lab"                           # unless the command names another
    metric = "em"                             # of the differences: em, f1 or accuracy
    model = "lab"                             # index, graph likewise; optional
    extra = "dense"                           # of the package, to be installed for it: told in listings; optional

    [settings]                                # common to all, as in --config; optional
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
study's ``axis``), ``note``. Those of a study: ``note``, ``axis``, ``full``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from gnothi.config import flatten
from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from gnothi.files import TOML_ERRORS
from gnothi.metrics import METRICS

T = TypeVar("T")

PACKAGED = Path(__file__).parent / "packaged"
_RESOURCES = ("model", "index", "graph")
_STUDY_TEXTS = ("title", "source", "note", "dataset", "metric", "full", "axis", "extra", *_RESOURCES)
MEASURED = (*METRICS, "retrievals", "model_calls", "paper_calls", "tokens", "seconds")
"""What a paper's figure may be of."""
_VARIANT_TEXTS = ("label", "method", "group", "note", "series", *_RESOURCES)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a paper: of another model and other questions, as it is printed."""

    dataset: str
    metric: str
    value: float


@dataclass(frozen=True, slots=True)
class Variant:
    """One row of a study. ``settings`` has dotted keys; ``needs`` says of settings that must be given how to come by them."""

    label: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""
    note: str = ""
    model: str | None = None
    index: str | None = None
    graph: str | None = None
    needs: Mapping[str, str] = field(default_factory=dict)
    series: str = ""
    at: float | None = None
    shift: float = 0.0
    paper: tuple[Figure, ...] = ()

    @property
    def folder(self) -> str:
        """The label as the name of a folder."""
        letters = "".join(letter if letter.isalnum() else " " for letter in self.label.lower())
        return "-".join(letters.split()) or "variant"


@dataclass(frozen=True, slots=True)
class Study:
    """``file`` is where it comes from, for messages; ``full`` the label of the method that the variants are held against;
    ``extra`` what of the package's optional parts it takes (``pip install 'gnothi[EXTRA]'``)."""

    name: str
    file: str
    title: str
    variants: tuple[Variant, ...]
    full: str
    source: str = ""
    note: str = ""
    dataset: str = "lab"
    metric: str = "em"
    axis: str = ""
    extra: str = ""
    model: str | None = None
    index: str | None = None
    graph: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def variant(self, label: str) -> Variant:
        """Raises UnknownName."""
        found = {variant.label: variant for variant in self.variants}
        if label not in found:
            raise UnknownName(f"variant of the study {self.name}", label, found)
        return found[label]


def names() -> tuple[str, ...]:
    """The studies that come with the package."""
    return tuple(sorted(file.stem for file in PACKAGED.glob("*.toml")))


def read(spec: str) -> Study:
    """The study of that name, or in that file. Raises UnknownName, InvalidInput or InvalidSetting, naming file and key."""
    if spec in names():
        return _read(PACKAGED / f"{spec}.toml", f"the study {spec}")
    if Path(spec).is_file():
        return _read(Path(spec), spec)
    if Path(spec).suffix == ".toml" or "/" in spec:
        raise InvalidInput(f"there is no file {spec}. Expected a study: a TOML file, or one of {', '.join(names())}.")
    raise UnknownName("study (a name, or a TOML file)", spec, names())


def _read(path: Path, place: str) -> Study:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"cannot read the study {path}: {error.strerror}.") from error
    except TOML_ERRORS as error:
        raise InvalidInput(f"{place} is not valid TOML: {error}.") from error
    return parse(table, path.stem, place)


def parse(table: Mapping[str, Any], name: str, place: str) -> Study:
    """A study from what TOML read; ``place`` names it in messages. Methods and settings are not looked at here.

    Raises UnknownName (a key that there is not) or InvalidSetting."""
    _known(table, (*_STUDY_TEXTS, "settings", "variant"), place)
    tables = _take(table, "variant", list, place, [])
    if not tables:
        raise InvalidSetting(f"{place}: got no variant, expected at least one [[variant]] with label and method.")
    variants = tuple(_variant(one, number, place) for number, one in enumerate(tables, start=1))
    for what in ("label", "folder"):
        _distinct([getattr(variant, what) for variant in variants], what, place)
    texts = {"title": name, "full": variants[0].label, **_texts(table, _STUDY_TEXTS, place)}
    study = Study(name, place, variants=variants, settings=flatten(_take(table, "settings", dict, place, {})), **texts)
    if study.metric not in METRICS:
        raise UnknownName(f"metric (in {place})", study.metric, METRICS)
    study.variant(study.full)
    if study.axis and not any(variant.at is not None for variant in variants):
        raise InvalidSetting(f"{place}: got an axis and no variant with at = NUMBER, its place there.")
    return study


def _variant(table: object, number: int, place: str) -> Variant:
    if not isinstance(table, Mapping):
        raise InvalidSetting(f"{place}: got variant {table!r}, expected a table: [[variant]] with label and method.")
    said = table.get("label")
    where = f"{place}, variant {said!r}" if isinstance(said, str) else f"{place}, variant {number}"
    _known(table, (*_VARIANT_TEXTS, "settings", "needs", "at", "shift", "paper"), where)
    for key in ("label", "method"):
        _take(table, key, str, where)
    needs = _take(table, "needs", dict, where, {})
    variant = Variant(
        **_texts(table, _VARIANT_TEXTS, where),
        settings=flatten(_take(table, "settings", dict, where, {})),
        needs={key: _take(needs, key, str, f"{where}, needs") for key in needs},
        at=_take(table, "at", float, where, None),
        shift=_take(table, "shift", float, where, 0.0),
        paper=tuple(_figures(_take(table, "paper", dict, where, {}), where)),
    )
    if not variant.label:
        raise InvalidSetting(f"{where}: got an empty label, expected a name for the row.")
    return variant


def _texts(table: Mapping[str, Any], keys: Sequence[str], where: str) -> dict[str, Any]:
    return {key: _take(table, key, str, where).strip() for key in keys if key in table}


def _figures(table: Mapping[str, Any], where: str) -> Iterable[Figure]:
    for dataset in table:
        metrics = _take(table, dataset, dict, f"{where}, paper")
        for metric in metrics:
            if metric not in MEASURED:
                raise UnknownName(f"metric of the paper's figure for {dataset} (in {where})", metric, MEASURED)
            yield Figure(dataset, metric, _take(metrics, metric, float, f"{where}, paper.{dataset}"))


_MISSING: Any = object()
_WORDS = {str: "text", dict: "a table", list: "an array of tables", float: "a number"}


def _take(table: Mapping[str, Any], key: str, kind: type[T], where: str, default: Any = _MISSING) -> Any:
    """``table[key]``, of that kind. Raises InvalidSetting."""
    if key not in table:
        if default is _MISSING:
            raise InvalidSetting(f"{where}: {key!r} is missing; expected {_WORDS[kind]}.")
        return default
    value = table[key]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind):
        raise InvalidSetting(f"{where}: got {key} = {value!r}, expected {_WORDS[kind]}.")
    return value


def _known(table: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
    for key in table:
        if key not in keys:
            raise UnknownName(f"key (in {where})", key, keys)


def _distinct(names: Sequence[str], what: str, place: str) -> None:
    for name in names:
        if names.count(name) > 1:
            told = f"the label {name!r} twice" if what == "label" else f"two labels that name the same folder, {name!r}"
            raise InvalidSetting(f"{place}: got {told}; expected labels that differ in a letter or digit.")
