"""The table of a recipe: a method and its variants, each a row. ``gnothi.reproduce.recipe`` says how it is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gnothi.config import flatten
from gnothi.errors import InvalidSetting, UnknownName
from gnothi.metrics import METRICS

T = TypeVar("T")

_RESOURCES = ("model", "index", "graph")
_STUDY_TEXTS = ("title", "source", "note", "dataset", "metric", "full", "axis", *_RESOURCES)
MEASURED = (*METRICS, "retrievals", "model_calls", "paper_calls", "paper_tokens", "tokens", "seconds")
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
    """``file`` is where it comes from, for messages; ``full`` the label of the method that the variants are held against."""

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
    model: str | None = None
    index: str | None = None
    graph: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def variant(self, label: str) -> Variant:
        """Raises UnknownName."""
        by_label = {variant.label: variant for variant in self.variants}
        if label not in by_label:
            raise UnknownName(f"variant of {self.file}", label, by_label)
        return by_label[label]


def parse(table: Mapping[str, Any], name: str, place: str) -> Study:
    """A study from what TOML read; ``place`` names it in messages. Methods and settings are not looked at here.

    Raises UnknownName (a key that there is not) or InvalidSetting."""
    _check_keys(table, (*_STUDY_TEXTS, "settings", "variant"), place)
    tables = take(table, "variant", list, place, [])
    if not tables:
        raise InvalidSetting(f"{place}: got no variant, expected at least one [[variant]] with label and method.")
    variants = tuple(_variant(one, number, place) for number, one in enumerate(tables, start=1))
    for key in ("label", "folder"):
        _distinct([getattr(variant, key) for variant in variants], key, place)
    texts = {"title": name, "full": variants[0].label, **_texts(table, _STUDY_TEXTS, place)}
    study = Study(name, place, variants=variants, settings=flatten(take(table, "settings", dict, place, {})), **texts)
    if study.metric not in METRICS:
        raise UnknownName(f"metric (in {place})", study.metric, METRICS)
    study.variant(study.full)
    if study.axis and not any(variant.at is not None for variant in variants):
        raise InvalidSetting(f"{place}: got an axis and no variant with at = NUMBER, its place there.")
    return study


def _variant(table: object, number: int, place: str) -> Variant:
    if not isinstance(table, Mapping):
        raise InvalidSetting(f"{place}: got variant {table!r}, expected a table: [[variant]] with label and method.")
    name = table.get("label")
    where = f"{place}, variant {name!r}" if isinstance(name, str) else f"{place}, variant {number}"
    _check_keys(table, (*_VARIANT_TEXTS, "settings", "needs", "at", "shift", "paper"), where)
    for key in ("label", "method"):
        take(table, key, str, where)
    needs = take(table, "needs", dict, where, {})
    variant = Variant(
        **_texts(table, _VARIANT_TEXTS, where),
        settings=flatten(take(table, "settings", dict, where, {})),
        needs={key: take(needs, key, str, f"{where}, needs") for key in needs},
        at=take(table, "at", float, where, None),
        shift=take(table, "shift", float, where, 0.0),
        paper=tuple(_figures(take(table, "paper", dict, where, {}), where)),
    )
    if not variant.label:
        raise InvalidSetting(f"{where}: got an empty label, expected a name for the row.")
    return variant


def _texts(table: Mapping[str, Any], keys: Sequence[str], where: str) -> dict[str, Any]:
    return {key: take(table, key, str, where).strip() for key in keys if key in table}


def _figures(table: Mapping[str, Any], where: str) -> Iterable[Figure]:
    for dataset in table:
        metrics = take(table, dataset, dict, f"{where}, paper")
        for metric in metrics:
            if metric not in MEASURED:
                raise UnknownName(f"metric of the paper's figure for {dataset} (in {where})", metric, MEASURED)
            yield Figure(dataset, metric, take(metrics, metric, float, f"{where}, paper.{dataset}"))


_MISSING: Any = object()
_WORDS: Mapping[type, str] = {
    str: "text", dict: "a table", list: "an array", float: "a number", int: "a whole number", bool: "true or false",
}  # fmt: skip


def take(table: Mapping[str, Any], key: str, kind: type[T], where: str, default: Any = _MISSING) -> Any:
    """``table[key]``, of that kind. Raises InvalidSetting."""
    if key not in table:
        if default is _MISSING:
            raise InvalidSetting(f"{where}: {key!r} is missing; expected {_WORDS[kind]}.")
        return default
    value = table[key]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InvalidSetting(f"{where}: got {key} = {value!r}, expected {_WORDS[kind]}.")
    return value


def _check_keys(table: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
    for key in table:
        if key not in keys:
            raise UnknownName(f"key (in {where})", key, keys)


def _distinct(names: Sequence[str], key: str, place: str) -> None:
    for name in names:
        if names.count(name) > 1:
            clash = f"the label {name!r} twice" if key == "label" else f"two labels that name the same folder, {name!r}"
            raise InvalidSetting(f"{place}: got {clash}; expected labels that differ in a letter or digit.")
