"""``GET /v1/models``: what can be asked, and what is configured for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from gnothi.calibration.file import Calibration
from gnothi.config import as_text
from gnothi.methods.planned import name_of
from gnothi.report.numbers import percent
from gnothi.serving.context import Context
from gnothi.serving.service import SetUp, public_name
from gnothi.session.knowledge import effective_threshold


def in_words(calibration: Calibration) -> list[str]:
    """Sentences, the guarantee first where there is one."""
    sentences = [*_guarantee(calibration), *_worth(calibration), _grounds(calibration)]
    if math.isinf(calibration.threshold):
        sentences.insert(
            0, "This gate always searches." if calibration.threshold < 0 else "This gate trusts every score it can measure."
        )
    return sentences


def _guarantee(calibration: Calibration) -> list[str]:
    guarantee = calibration.details.get("guarantee")
    if guarantee is None:
        return ["No guarantee was asked for when the threshold was chosen."]
    judged = calibration.metric == "feedback"
    like = "answers like those that people judged" if judged else "questions like those it was chosen on"
    return [
        f"Guarantee: at most {guarantee['target_error']:.0%} of the answers given without a search are wrong, for {like} "
        f"(with probability {1 - guarantee['epsilon']:.0%} over their draw).",
        "It says nothing of answers after a search, of a single answer, or of other kinds of questions.",
    ]


def _worth(calibration: Calibration) -> list[str]:
    worth = calibration.details.get("worth")
    if worth is None:
        return []
    return [
        f"On questions it was not chosen on, the gate answers {percent(worth['accuracy'])} rightly and searches for "
        f"{percent(worth['retrieval_rate'])}; always searching answers {percent(worth['always'])} rightly, never "
        f"{percent(worth['never'])}."
    ]


def _grounds(calibration: Calibration) -> str:
    what = "judged answers" if calibration.metric == "feedback" else "questions"
    data = Path(calibration.dataset).name  # where it lies is nobody's business
    return f"Chosen on {calibration.questions} {what} of {data} ({calibration.metric}), {calibration.date[:10]}."


def routes(context: Context) -> Sequence[BaseRoute]:
    async def listed(_: Request) -> Response:
        data = [described(context, setup) for setup in context.service.setups.values()]
        return JSONResponse({"object": "list", "data": data})

    async def model(request: Request) -> Response:
        return JSONResponse(described(context, context.service.find(request.path_params["name"])))

    return [Route("/v1/models", listed), Route("/v1/models/{name:path}", model)]


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
            "notes": list(plan.notes) if plan.calibration is None else _threshold_notes(setup),
            "warnings": [*setup.public_warnings, *([alarm] if alarm else ())],
        },
    }


def _calibration(context: Context, setup: SetUp) -> dict[str, Any] | None:
    """What the gate's threshold rests on, and whether live scores still look like those that it was chosen on."""
    calibration, drift = setup.plan.calibration, context.drifts.of(setup)
    if calibration is None and drift is None:
        return None
    return {"words": ["A gate learnt from outcomes decides."] if calibration is None else in_words(calibration), "drift": drift}


def _gate(threshold: float) -> dict[str, Any]:
    """A threshold may be infinite, which JSON cannot say."""
    if math.isfinite(threshold):
        return {"threshold": threshold, "fires": "above"}
    return {"threshold": None, "fires": "always" if threshold < 0 else "never"}


def _threshold_notes(setup: SetUp) -> list[str]:
    """What a calibrated threshold rests on, without the folder of its file."""
    calibration = setup.plan.calibration
    assert calibration is not None
    return [
        f"threshold {calibration.threshold:g} for {calibration.signal}, calibrated on {calibration.questions} questions of "
        f"{calibration.dataset}"
    ]
