"""Runs read from disk, those over the same questions together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gnothi.calibration.baselines import always_of, never_of
from gnothi.calibration.from_run import trusts_all
from gnothi.report.titles import Name, names
from gnothi.roles import ALWAYS, AT_ONCE, REASONING
from gnothi.runs.folder import EXECUTION, read_config, read_rows
from gnothi.runs.journal import FINGERPRINTS
from gnothi.runs.rows import Key, Row, group


@dataclass(frozen=True, slots=True)
class Section:
    """Rows over the same questions, of one run or of several. ``origin`` tells where each row's events lie, ``trusting`` which
    methods' gates were told never to fire."""

    dataset: str
    runs: tuple[Path, ...]
    configs: tuple[Mapping[str, Any], ...]
    rows: tuple[Row, ...]
    origin: Mapping[Key, tuple[Path, Key]]
    expected: int
    trusting: tuple[str, ...] = ()

    def foreign(self, never: str | None = None) -> frozenset[str]:
        """The methods of another model than ``never``, or the method that stands for it: its answers say nothing of them."""
        if len(self.runs) < 2:
            return frozenset()
        configs = dict(zip(self.runs, self.configs, strict=True))
        of = {row.method: configs[self.origin[row.key][0]] for row in self.rows}
        by_method = group(self.rows)
        end = never or never_of(by_method, self.trusting) or always_of(by_method)
        return frozenset(name for name, config in of.items() if not _same_model(config, of.get(end or "", config)))

    @property
    def missing(self) -> int:
        """Answers that unfinished runs still lack."""
        return max(0, self.expected - len(self.rows))


def _same_model(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """By its content, under whatever name; by its name where the content is not known."""
    keys = (f"{FINGERPRINTS}model.name", "model.name")
    key = next((key for key in keys if key in one and key in other), keys[-1])
    return bool(one.get(key) == other.get(key))


def load_runs(paths: Sequence[Path]) -> list[Section]:
    """Runs over the same questions come into one section.

    A variant of `gnothi reproduce` has its label for a name, and those of one study come in its order; where two runs hold a
    method of the same name, the later one's is named after its folder too. Unfinished runs are fine. Raises InvalidInput for a
    folder that is no run."""
    together: dict[tuple[str, str], list[tuple[Path, dict[str, Any]]]] = {}
    for path in dict.fromkeys(paths):
        config = read_config(path)
        key = str(config.get("dataset.name", path.name)), str(config.get("dataset.fingerprint", path))
        together.setdefault(key, []).append((path, config))
    return [_section(dataset, sorted(runs, key=_place)) for (dataset, _), runs in together.items()]


def name_all(sections: Sequence[Section]) -> list[Name]:
    """What tells the sections of a report apart."""
    return names([(section.dataset, section.runs) for section in sections])


def _place(run: tuple[Path, Mapping[str, Any]]) -> int:
    """A variant's place in its study; other runs stand where they were named, before them."""
    place = run[1].get(f"{EXECUTION}place", 0)
    return place if isinstance(place, int) else 0


def _section(dataset: str, runs: Sequence[tuple[Path, dict[str, Any]]]) -> Section:
    rows: dict[Key, Row] = {}
    origin: dict[Key, tuple[Path, Key]] = {}
    folders: dict[str, Path] = {}
    trusting: dict[str, None] = {}
    expected = 0
    for path, config in runs:
        own = read_rows(path)
        expected += _expected(config, len(own))
        names = {method: _name(method, config, path, folders) for method in dict.fromkeys(row.method for row in own)}
        for row in own:
            named = replace(row, method=names[row.method])
            rows[named.key] = named
            origin[named.key] = (path, row.key)
        trusting |= {name: None for method, name in names.items() if trusts_all(config, method)}
    paths, configs = tuple(path for path, _ in runs), tuple(config for _, config in runs)
    return Section(dataset, paths, configs, tuple(rows.values()), origin, expected, tuple(trusting))


def _name(method: str, config: Mapping[str, Any], path: Path, folders: dict[str, Path]) -> str:
    """The variant's label, or ``method``; where another run has one of that name, with the folder's name; where that is taken,
    with its path. Gates are replayed between methods of certain names: the first of these keeps its own."""
    label = config.get(f"{EXECUTION}label")
    names = [label] if isinstance(label, str) and label and config.get("methods") == [method] else []
    plain = [method, *names] if method in (REASONING, AT_ONCE, ALWAYS) else [*names, method]
    for name in (*plain, f"{plain[0]} ({path.name})", f"{plain[0]} ({path})"):
        if name not in folders:
            folders[name] = path
            return name
    raise AssertionError("each path is read once")


def _expected(config: Mapping[str, Any], number: int) -> int:
    methods, questions = config.get("methods"), config.get("dataset.questions")
    return len(methods) * questions if isinstance(methods, list) and isinstance(questions, int) else number
