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
from gnothi.methods.roles import GATED
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
    found: dict[str, dict[str, Given]] = {}
    for key, one in request.settings.section(SETUPS).items():
        name, _, rest = key.partition(".")
        if not _NAME.fullmatch(name) or not rest:
            raise InvalidSetting(
                f"set-up {name!r} (from {one.source}): expected a table [{SETUPS}.NAME] with a name of letters, digits, - or _."
            )
        found.setdefault(name, {})[rest] = one
    rest_of = {key: one for key, one in request.settings.given.items() if key.partition(".")[0] not in SERVER_SECTIONS}
    request = replace(request, settings=Settings(rest_of))
    if not found:
        plan = resolve(request)
        plan = together(plan)
        return {method.name: _alone(plan, method) for method in plan.methods}
    named = {name: _method(name, given, request.calibration) for name, given in found.items()}
    check_sections(request.settings, named.values())
    counts = {name: takes(named[name], _with_own(given, request)) for name, given in found.items()}
    every = set[str]().union(*counts.values())
    # A shared setting, or section, is of at least one of them; the others have no use for it.
    own = {
        name: Settings(
            {
                key: one
                for key, one in request.settings.given.items()
                if key not in every - counts[name] and key.partition(".")[0] not in {*named.values()} - {named[name]}
            }
        )
        for name in found
    }
    return {name: _plan(name, named[name], given, replace(request, settings=own[name])) for name, given in found.items()}


def _plan(name: str, method: str, given: Mapping[str, Given], request: Request) -> Plan:
    said: dict[str, Any] = {key: one.value for key, one in given.items() if not key.startswith("settings.")}
    for key in said:
        if key not in _ARGUMENTS:
            raise UnknownName(f"key of the set-up {name} (settings stand under [{SETUPS}.{name}.settings])", key, _ARGUMENTS)
        wanted = bool if key == "ignore_mismatch" else str
        if not isinstance(said[key], wanted):
            raise InvalidSetting(
                f"set-up {name!r}, {key}: got {said[key]!r:.80}, expected {'true' if key == 'ignore_mismatch' else 'a text'}."
            )
    settings = _with_own(given, request)
    said.pop("method", None)
    if "calibration" in said:
        said["calibration"] = _read(given)
    plan = resolve(replace(request, methods=[method], settings=settings, **said))
    plan = together(plan)
    return _alone(plan, plan.methods[0])


def _with_own(given: Mapping[str, Given], request: Request) -> Settings:
    """The set-up's settings; what was given closer to the command than the file counts for every set-up."""
    own = {key.removeprefix("settings."): one for key, one in given.items() if key.startswith("settings.")}
    shared = {key: one for key, one in request.settings.given.items() if key not in own or one.layer > own[key].layer}
    return Settings({**own, **shared})


def _method(name: str, given: Mapping[str, Given], shared: Calibration | None) -> str:
    """The one that it names, else that of its calibration, or of the ``shared`` one. Raises InvalidSetting or UnknownName."""
    if "method" not in given and (found := _read(given) or shared) is not None:
        return default_method(found.model.name, Settings(), found)[0]
    method = given["method"].value if "method" in given else None
    if not isinstance(method, str):
        got = "none" if method is None else f"{method!r:.80}"
        raise InvalidSetting(
            f"set-up {name!r}, method: got {got}, expected the name of a method, as in {GATED!r}, or a calibration of one."
        )
    return methods.spec(method).name


def _read(given: Mapping[str, Given]) -> Calibration | None:
    """The set-up's own calibration."""
    from gnothi.calibration.file import read

    path = given["calibration"].value if "calibration" in given else None
    return read(path) if isinstance(path, str) else None


def _alone(plan: Plan, method: PlannedMethod) -> Plan:
    """The plan for one of its methods; a calibration stays with those whose gate it is of."""
    gate, found = method.gate, plan.calibration
    uses = found and gate and gate.signal == found.signal and gate.at(found.threshold).items() <= method.values.items()
    return replace(plan, methods=(method,), calibration=found if uses else None)
