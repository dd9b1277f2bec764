"""A calibration on disk (TOML): a threshold with all that it depends on, so that it is not used where it says nothing."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gnothi.calibration.choose import Chosen
from gnothi.config import to_toml
from gnothi.errors import MALFORMED, InvalidInput, InvalidSetting, malformation
from gnothi.files import TOML_ERRORS, nearest
from gnothi.models.identity import Identity
from gnothi.models.scheme import FORM
from gnothi.notebook import listing
from gnothi.runs.journal import replace_file
from gnothi.runs.rows import significant
from gnothi.signals.stopping import parsed
from gnothi.stats.probabilities import Platt
from gnothi.version import __version__

VERSION = 2
KEPT = 400
"""As many scores are kept at most: of more, those that divide them evenly."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """``threshold`` may be infinite: always retrieve. ``fires`` says on which side of it: ``above``, or ``below`` for recorded
    signals that rise with certainty. ``settings`` are the method's that scores depend on. ``details``: guarantee, worth and
    probabilities, as written. ``failures``: how many further questions failed and had no part in it. ``answers_of``: what
    stood for never retrieving, whose answers the details are about. ``precision`` in which the model computed, empty where
    nothing says, and the ``form`` of its prompts, as far as it is known. ``scores``: those it was chosen on, rising, to tell
    whether later ones are like them; none where they are not those of all questions. ``stopping``: the rule for when to stop
    drawing samples (``signals.stopping``), if there is one. ``path``: the file it was read from."""

    method: str | None
    signal: str
    threshold: float
    model: Identity
    dataset: str
    questions: int
    metric: str
    date: str
    gnothi: str = __version__
    fires: str = "above"
    data_fingerprint: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    failures: int = 0
    answers_of: str = ""
    precision: str = ""
    form: Mapping[str, str] = field(default_factory=dict)
    scores: tuple[float, ...] = ()
    stopping: str | None = None
    path: Path | None = None

    def summary(self) -> dict[str, object]:
        """For a person to read, by name."""
        of = f"{self.questions:,} of {self.dataset}"
        return {
            "signal": self.signal, "threshold": self.threshold, "fires": self.fires, "method": self.method,
            "model": self.model.name, "questions": of, "metric": self.metric, "date": self.date, "file": self.path,
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"<gnothi.Calibration {', '.join(f'{key} {one}' for key, one in self.summary().items() if one is not None)}>"

    def _repr_html_(self) -> str:
        return listing(self.summary())

    @property
    def source(self) -> str:
        """What to call it in messages."""
        return "this one" if self.path is None else str(self.path)

    def save(self, path: Path) -> Calibration:
        """Write it as a TOML file, and return it as the one in that file."""
        write(self, path)
        return replace(self, path=path)

    def probability_wrong(self, score: float) -> float | None:
        """P(the answer from memory is wrong) of a score, by the Platt curve; None where the file holds none."""
        curves = self.details.get("probabilities")
        if curves is None:
            return None
        sign = -1 if curves["scores"] == "negated" else 1
        return float(Platt(curves["platt"]["slope"], curves["platt"]["intercept"])(sign * score))


def details_of(chosen: Chosen, sign: int = 1) -> dict[str, Any]:
    """What a calibration rests on, as plain data: ``sample``, ``guarantee``, ``worth``, ``stopping``, ``probabilities``.

    Thresholds are multiplied by ``sign``, -1 for scores that were negated; curves take scores as they were for choosing."""
    details: dict[str, Any] = {
        "sample": {
            "wrong_from_memory": chosen.wrong,
            "trusted": chosen.trusted,
            "retrieval_rate": 1 - chosen.trusted / chosen.n,
            "auroc": chosen.auroc,
            "auroc_interval": chosen.auroc_interval,
        }
    }
    if chosen.guarantee:
        promise = chosen.guarantee
        signed = {"threshold": sign * promise.threshold, "accepted": [sign * threshold for threshold in promise.accepted]}
        details["guarantee"] = asdict(promise) | signed
    if chosen.worth:
        limited = ", without the limit of the guarantee" if chosen.guarantee else ""
        details["worth"] = {"of": f"thresholds chosen by price{limited}", **asdict(chosen.worth)}
    effect = {} if chosen.effect is None else asdict(chosen.effect)
    if chosen.effect_compared:
        effect |= {"compared": asdict(chosen.effect_compared)}
    if effect:
        details["stopping"] = effect
    if curves := chosen.probabilities:
        knots, heights = _corners(curves.isotonic.knots.tolist(), curves.isotonic.heights.tolist())
        details["probabilities"] = {
            "of": "wrong from memory",
            "scores": "as recorded" if sign > 0 else "negated",
            "platt": asdict(curves.platt) | {"ece": curves.platt_ece, "ece_interval": curves.platt_ece_interval},
            "isotonic": {
                "knots": knots,
                "heights": heights,
                "ece": curves.isotonic_ece,
                "ece_interval": curves.isotonic_ece_interval,
            },
        }
    return dict(_plain(details))


def kept_scores(scores: ArrayLike) -> tuple[float, ...]:
    """What a file keeps of scores, shape (n,): all of them in rising order, or ``KEPT`` that divide them evenly."""
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    if len(ordered) > KEPT:
        ordered = ordered[((np.arange(KEPT) + 0.5) * len(ordered) / KEPT).astype(int)]
    return tuple(ordered.tolist())


def _corners(knots: list[float], heights: list[float]) -> tuple[list[float], list[float]]:
    """Only the knots where the step function rises."""
    rising = [place for place in range(len(knots)) if place == 0 or heights[place] != heights[place - 1]]
    return [knots[place] for place in rising], [heights[place] for place in rising]


def _plain(value: Any) -> Any:
    """Without None, which TOML has no word for; floats to six digits, but for thresholds and curves, which are used."""
    if isinstance(value, Mapping):
        exact = ("threshold", "accepted", "knots", "slope", "intercept")
        return {key: item if key in exact else _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return significant(value) if isinstance(value, float) else value


def as_dict(calibration: Calibration) -> dict[str, Any]:
    """The file's content."""
    return dict(
        _plain(
            {
                "version": VERSION,
                "made": {"date": calibration.date, "gnothi": calibration.gnothi},
                "model": asdict(calibration.model) | {"precision": calibration.precision, **calibration.form},
                "data": {
                    "name": calibration.dataset,
                    "fingerprint": calibration.data_fingerprint,
                    "questions": calibration.questions,
                    "failures": calibration.failures,
                    "answers_of": calibration.answers_of,
                    "metric": calibration.metric,
                },
                "gate": {
                    "method": calibration.method,
                    "signal": calibration.signal,
                    "threshold": calibration.threshold,
                    "fires": calibration.fires,
                    "stopping": calibration.stopping,
                    # None is a value here: another layer than the default one is another score.
                    "settings": {key: "none" if one is None else one for key, one in calibration.settings.items()},
                },
                **calibration.details,
                # One line: nobody reads them, and 400 lines would bury what people do.
                "scores": {"sorted": " ".join(f"{score:.6g}" for score in calibration.scores)} if calibration.scores else None,
            }
        )
    )


def write(calibration: Calibration, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, to_toml(as_dict(calibration)))


_DETAILS = ("sample", "guarantee", "worth", "stopping", "probabilities")
_READ = {"guarantee": ("target_error", "epsilon"), "worth": ("accuracy", "retrieval_rate", "always", "never")}
"""Numbers that are told of a calibration later."""


def read(given: object) -> Calibration:
    """That of a file, or one that was read before. Raises InvalidInput for anything else, and a file of a later version."""
    if isinstance(given, Calibration):
        return given
    if not isinstance(given, str | os.PathLike):
        raise InvalidInput(f"calibration: got {given!r:.80}, expected a file written by gnothi.calibrate, or what it returned.")
    path = Path(given)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(
            f"cannot read the calibration {path}: {error.strerror}. {nearest(path)}Expected a file written by gnothi calibrate."
        ) from error
    except TOML_ERRORS as error:
        raise InvalidInput(
            f"the calibration {path} is not valid TOML: {error}. Expected a file written by gnothi calibrate."
        ) from error
    version = data.get("version", "(none)")
    if version != VERSION:
        raise InvalidInput(
            f"the calibration {path} has version {version}, expected {VERSION}. Make it anew with gnothi calibrate."
        )
    try:
        made, model, source, gate = data["made"], data["model"], data["data"], data["gate"]
        rule, threshold = parsed(gate.get("stopping")), float(gate["threshold"])
        if rule is not None and not all(step.known <= threshold <= step.searched for step in rule.steps):
            raise ValueError(f"its rule for stopping early is of another threshold than {threshold}")
        calibration = Calibration(
            method=gate.get("method"),
            signal=str(gate["signal"]),
            threshold=threshold,
            model=Identity(str(model["name"]), str(model["fingerprint"])),
            dataset=str(source["name"]),
            questions=int(source["questions"]),
            failures=int(source.get("failures", 0)),
            answers_of=str(source.get("answers_of", "")),
            precision=str(model.get("precision", "")),
            form={key: str(model[key]) for key in FORM if model.get(key)},
            scores=tuple(map(float, data.get("scores", {}).get("sorted", "").split())),
            metric=str(source["metric"]),
            date=str(made["date"]),
            gnothi=str(made["gnothi"]),
            fires=str(gate["fires"]),
            stopping=None if rule is None else str(rule),
            data_fingerprint=str(source["fingerprint"]),
            settings=dict(gate.get("settings", {})),
            details={key: data[key] for key in _DETAILS if key in data},
            path=path,
        )
        calibration.probability_wrong(0.0)  # what lacks something is to be told now, not at the first answer
        for part, names in _READ.items():
            for name in names if part in calibration.details else ():
                float(calibration.details[part][name])
        return calibration
    except (*MALFORMED, InvalidSetting) as error:
        raise InvalidInput(
            f"the calibration {path} cannot be used: {malformation(error)}. Make it anew with gnothi calibrate."
        ) from error
