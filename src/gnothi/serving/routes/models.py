"""``GET /v1/models``: what can be asked, and what is configured for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from gnothi.config import as_text
from gnothi.methods.planned import name_of
from gnothi.serving.context import Context
from gnothi.serving.promise import in_words
from gnothi.serving.service import SetUp, public_name
from gnothi.session.knowledge import effective_threshold


def routes(context: Context) -> Sequence[BaseRoute]:
    async def listed(_: Request) -> Response:
        data = [described(context, setup) for setup in context.service.setups.values()]
        return JSONResponse({"object": "list", "data": data})

    async def one(request: Request) -> Response:
        return JSONResponse(described(context, context.service.find(request.path_params["name"])))

    return [Route("/v1/models", listed), Route("/v1/models/{name:path}", one)]


def described(context: Context, setup: SetUp) -> dict[str, Any]:
    plan, (method,) = setup.plan, setup.plan.methods
    threshold = effective_threshold(plan, setup.opened)
    gate = None if threshold is None else _gate(threshold) | {"calibrated": plan.calibration is not None}
    alarm = context.metrics.alarm(setup)
    return {
        "id": setup.id,
        "object": "model",
        "created": context.service.started,
        "owned_by": "gnothi",
        "gnothi": {
            "setup": setup.name,
            "method": method.name,
            "model": public_name(name_of(plan.sources.model)),
            "index": None if plan.sources.index is None else public_name(name_of(plan.sources.index)),
            "graph": None if plan.sources.graph is None else public_name(name_of(plan.sources.graph)),
            "settings": {key: as_text(value) for key, value in method.values.items() if key not in method.named},
            "gate": gate,
            "calibration": _calibration(context, setup),
            "feedback": context.feedback is not None,
            "told": list(plan.told) if plan.calibration is None else _told(setup),
            "warnings": [*setup.public_warnings, *([alarm] if alarm else ())],
        },
    }


def _calibration(context: Context, setup: SetUp) -> dict[str, Any] | None:
    """What the gate's threshold rests on, and whether live scores still look like those that it was chosen on."""
    found, drift = setup.plan.calibration, context.drifts.of(setup)
    if found is None and drift is None:
        return None
    return {"words": ["A gate learnt from outcomes decides."] if found is None else in_words(found), "drift": drift}


def _gate(threshold: float) -> dict[str, Any]:
    """A threshold may be infinite, which JSON cannot say."""
    if math.isfinite(threshold):
        return {"threshold": threshold, "fires": "above"}
    return {"threshold": None, "fires": "always" if threshold < 0 else "never"}


def _told(setup: SetUp) -> list[str]:
    """What a calibrated threshold rests on, without the folder of its file."""
    found = setup.plan.calibration
    assert found is not None
    return [f"threshold {found.threshold:g} for {found.signal}, calibrated on {found.questions} questions of {found.dataset}"]
