"""What a server answers with: set-ups by name, each a plan of one method. Of flags, or of a file's ``[setups.NAME]``:

[setups.careful]
method = "seakr"
model = "lab"
calibration = "gate.toml"

[setups.careful.settings]
signal.samples = 10
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gnothi import config, methods
from gnothi.config import Given, Settings
from gnothi.errors import InvalidSetting, UnknownName
from gnothi.methods.planned import SERVER_SECTIONS, PlannedMethod, check_sections, takes
from gnothi.roles import GATED
from gnothi.serving.settings import ServerSettings
from gnothi.session.default_method import default_method
from gnothi.session.plan import Plan, Request, resolve, together

if TYPE_CHECKING:
    from gnothi.calibration.file import Calibration

SECTION, SETUPS = SERVER_SECTIONS
_ARGUMENTS = ("method", "model", "index", "graph", "calibration", "ignore_mismatch")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def server_settings(settings: Settings) -> ServerSettings:
    """What was given under ``server.``. Raises UnknownName or InvalidSetting."""
    return config.build(ServerSettings, settings.section(SECTION), "the server")


def plans(request: Request) -> dict[str, Plan]:
    """A plan of one method for every name: the set-ups of the request's settings, for which the request holds what they leave
    out; without any, its methods. Raises as ``session.plan.resolve``, and UnknownName or InvalidSetting for a set-up."""
    tables: dict[str, dict[str, Given]] = {}
    for key, one in request.settings.section(SETUPS).items():
        name, _, rest = key.partition(".")
        if not _NAME.fullmatch(name) or not rest:
            raise InvalidSetting(
                f"set-up {name!r} (from {one.source}): expected a table [{SETUPS}.NAME] with a name of letters, digits, - or _."
            )
        tables.setdefault(name, {})[rest] = one
    rest_of = {key: one for key, one in request.settings.given.items() if key.partition(".")[0] not in SERVER_SECTIONS}
    request = replace(request, settings=Settings(rest_of))
    if not tables:
        plan = resolve(request)
        plan = together(plan)
        return {method.name: _alone(plan, method) for method in plan.methods}
    methods_of = {name: _method(name, table, request.calibration) for name, table in tables.items()}
    check_sections(request.settings, methods_of.values())
    counts = {name: takes(methods_of[name], _with_own(table, request)) for name, table in tables.items()}
    every = set[str]().union(*counts.values())
    # A shared setting, or section, is of at least one of them; the others have no use for it.
    own = {
        name: Settings(
            {
                key: one
                for key, one in request.settings.given.items()
                if key not in every - counts[name] and key.partition(".")[0] not in {*methods_of.values()} - {methods_of[name]}
            }
        )
        for name in tables
    }
    return {name: _plan(name, methods_of[name], table, replace(request, settings=own[name])) for name, table in tables.items()}


def _plan(name: str, method: str, table: Mapping[str, Given], request: Request) -> Plan:
    fields: dict[str, Any] = {key: one.value for key, one in table.items() if not key.startswith("settings.")}
    for key in fields:
        if key not in _ARGUMENTS:
            raise UnknownName(f"key of the set-up {name} (settings stand under [{SETUPS}.{name}.settings])", key, _ARGUMENTS)
        expected = bool if key == "ignore_mismatch" else str
        if not isinstance(fields[key], expected):
            raise InvalidSetting(
                f"set-up {name!r}, {key}: got {fields[key]!r:.80}, expected {'true' if key == 'ignore_mismatch' else 'a text'}."
            )
    settings = _with_own(table, request)
    fields.pop("method", None)
    if "calibration" in fields:
        fields["calibration"] = _read(table)
    plan = resolve(replace(request, methods=[method], settings=settings, **fields))
    plan = together(plan)
    return _alone(plan, plan.methods[0])


def _with_own(table: Mapping[str, Given], request: Request) -> Settings:
    """The set-up's settings; what was given closer to the command than the file counts for every set-up."""
    own = {key.removeprefix("settings."): one for key, one in table.items() if key.startswith("settings.")}
    shared = {key: one for key, one in request.settings.given.items() if key not in own or one.layer > own[key].layer}
    return Settings({**own, **shared})


def _method(name: str, table: Mapping[str, Given], shared: Calibration | None) -> str:
    """The one that it names, else that of its calibration, or of the ``shared`` one. Raises InvalidSetting or UnknownName."""
    if "method" not in table and (calibration := _read(table) or shared) is not None:
        return default_method(calibration.model.name, Settings(), calibration)[0]
    method = table["method"].value if "method" in table else None
    if not isinstance(method, str):
        got = "none" if method is None else f"{method!r:.80}"
        raise InvalidSetting(
            f"set-up {name!r}, method: got {got}, expected the name of a method, as in {GATED!r}, or a calibration of one."
        )
    return methods.spec(method).name


def _read(table: Mapping[str, Given]) -> Calibration | None:
    """The set-up's own calibration."""
    from gnothi.calibration.file import read

    path = table["calibration"].value if "calibration" in table else None
    return read(path) if isinstance(path, str) else None


def _alone(plan: Plan, method: PlannedMethod) -> Plan:
    """The plan for one of its methods; a calibration stays with those whose gate it is of."""
    gate, calibration = method.gate, plan.calibration
    uses = (
        calibration
        and gate
        and gate.signal == calibration.signal
        and gate.at(calibration.threshold).items() <= method.values.items()
    )
    return replace(plan, methods=(method,), calibration=calibration if uses else None)
