"""What ``gnothi calibrate`` calibrates on, and a run or a file of recorded outcomes as such."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnothi.calibration.sentence_answers import check_exact_match
from gnothi.errors import InvalidInput, InvalidSetting, UnknownName, reason
from gnothi.models.scheme import FORM
from gnothi.runs.journal import PRECISION
from gnothi.signals.assessment import STOPS_EARLY
from gnothi.signals.registry import PROBE
from gnothi.signals.stopping import COLLECTING
from gnothi.signals.stopping import KEY as STOPPING

if TYPE_CHECKING:
    from gnothi.calibration.choose import Sample
    from gnothi.calibration.replay import Replay, Scores
    from gnothi.methods.steps.gating import GateSpec
    from gnothi.models.identity import Identity
    from gnothi.runs.rows import Row

_MODEL = "model.name"


@dataclass(frozen=True, slots=True)
class Source:
    """What is calibrated on, and what it is the calibration of. ``answers_of`` names what stands for never retrieving;
    ``precision`` and ``form`` (of prompts) are the model's, if known; ``failed`` are rows of questions left out of the sample,
    ``warnings`` what to tell of the rest; ``tried`` signals the one was chosen from. ``identity`` is the model's where it was
    recorded. ``judged``: the sample is not of all questions, but of answers that the gate trusted and somebody judged."""

    sample: Sample
    method: str | None
    signal: str
    answers_of: str
    dataset: str
    metric: str
    model: str
    sign: int = 1
    fingerprint: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    precision: str = ""
    form: Mapping[str, str] = field(default_factory=dict)
    failed: Sequence[Row] = ()
    warnings: Sequence[str] = ()
    tried: int = 1
    identity: Identity | None = None
    judged: bool = False

    @property
    def failures(self) -> int:
        return len({row.question_id for row in self.failed})

    @property
    def left_out(self) -> str:
        """What to tell of the questions that failed."""
        return (
            f"{self.failures} questions of {self.dataset} failed and are left out (the first with "
            f"{reason(self.failed[0].error or {})}). The threshold and any guarantee come from the other "
            f"{len(self.sample.scores)} and hold for questions like these; of questions like those that failed they say "
            "nothing. Remove the cause and try them again."
        )


def replay_of(dataset: str, metric: str | None, never: str | None, always: str | None) -> Replay | None:
    """What was recorded; None for a data set, whose questions are to be asked."""
    from gnothi.calibration.compare import read
    from gnothi.calibration.from_file import is_recorded

    path = Path(dataset)
    if path.is_dir() or (path.is_file() and (never or always or is_recorded(path))):
        return read(path, metric, never, always)
    if never or always:
        raise InvalidSetting(
            f"<--never> and <--always>: got them with the data set {dataset!r}, expected a run or a file of outcomes. "
            "Leave them out."
        )
    return None


def from_replay(replay: Replay, method: str | None, signal: str | None, model: str, price: float | None = None) -> Source:
    """``method`` and ``signal`` where they were given. Where they were not, there has to be just one; or, at a ``price`` of a
    retrieval, of one method's signals the one that is worth most on questions that its threshold was not chosen on.

    Raises InvalidInput where the metric cannot see the answers, UnknownName, InvalidSetting."""
    from gnothi.calibration.choose import Sample
    from gnothi.methods.steps.gating import scores_depend_on
    from gnothi.runs.folder import read_rows

    by_name = {named.name: named for named in replay.signals}
    if not by_name:
        raise InvalidInput(
            f"{replay.source} holds no scores: there is no gate to calibrate. Expected a run with a gated method."
        )
    methods = dict.fromkeys(named.method for named in by_name.values() if named.method)
    if method is not None and not methods:
        raise InvalidSetting(
            f"<--method>: got {method!r} with {replay.source}, which does not say whose scores it holds. Choose with "
            "<--signal>."
        )
    if method is not None and method not in methods:
        raise UnknownName(f"method with a gate of {replay.source}", method, methods)
    known = [named for named in by_name.values() if not methods or method in (None, named.method)]
    fitting = [named for named in known if signal in (None, named.name, _measured(named))]
    if signal is not None and not fitting:
        of = f"{method} in {replay.source}" if method in methods else replay.source
        raise UnknownName(f"signal of {of}", signal, [_measured(named) if method in methods else named.name for named in known])
    tried = len(fitting)
    if tried > 1 and price is not None and len({named.method for named in fitting}) == 1:
        fitting = [_worth_most(replay, fitting, price)]
    if len(fitting) != 1:
        left = dict.fromkeys(named.method for named in fitting)
        flag, names = ("<--method>", left) if len(left) > 1 else ("<--signal>", map(_measured, fitting))
        raise InvalidSetting(f"{flag}: got none, expected one of those that {replay.source} holds: {', '.join(names)}.")
    (scores,) = fitting
    prefix = f"method.{scores.method}."
    recorded = {key.removeprefix(prefix): value for key, value in replay.settings.items() if key.startswith(prefix)}
    if recorded.get(STOPPING, "none") not in ("none", None, COLLECTING) and _gate_of(scores.method):
        raise InvalidSetting(
            f"{scores.method} of {replay.source} stopped drawing samples as soon as its own threshold was decided, so its "
            f"scores say little about others: expected a run without <--calibration>. Make one, or let gnothi calibrate "
            f"ask a data set itself (gnothi calibrate DATASET <--method {scores.method}>)."
        )
    if replay.settings.get(f"{prefix}schedule") in STOPS_EARLY:
        raise InvalidSetting(
            f"{scores.method} of {replay.source} stopped asking as soon as its own threshold was decided, so its scores say "
            f"little about others: expected a run with <--set {scores.method}.schedule=at_once>. Make one, or let gnothi "
            f"calibrate ask a data set itself (gnothi calibrate DATASET <--method {scores.method}>)."
        )
    measured = scores.signal or scores.name
    model, warnings = _model_of(replay, scores.method, model)
    settings = scores_depend_on(recorded | dict(scores.settings), measured, _gate_of(scores.method))
    fingerprint = str(replay.settings.get("dataset.fingerprint", ""))
    rows = read_rows(Path(replay.source)) if Path(replay.source).is_dir() else []  # a file of outcomes holds none
    check_exact_match([row for row in rows if row.method == replay.names[0]], replay.metric)
    return Source(
        sample=Sample(scores.values, replay.never, replay.always),
        method=scores.method or None,
        signal=measured,
        answers_of=replay.names[0],
        dataset=replay.dataset,
        metric=replay.metric,
        model=model,
        warnings=warnings + _learnt(settings.get(PROBE), replay.dataset, fingerprint),
        tried=tried,
        sign=scores.sign,
        fingerprint=fingerprint,
        settings=settings,
        precision=str(replay.settings.get(PRECISION, "")),
        form={key: str(value) for key in FORM if (value := replay.settings.get(f"model.settings.{key}"))},
        failed=[row for row in rows if row.failed and row.question_id not in replay.questions],
    )


def _worth_most(replay: Replay, signals: Sequence[Scores], price: float) -> Scores:
    from gnothi.stats.frontier import crossvalidate

    def worth(scores: Scores) -> float:
        judged = crossvalidate(scores.values, replay.never, replay.always, price)
        return float(judged.quality.mean() - price * judged.retrieved.mean())

    return max(signals, key=worth)


def _learnt(spec: object, dataset: str, fingerprint: str) -> list[str]:
    """A warning where the probe of the run learnt from its questions; one that is no longer there does not tell."""
    from gnothi.calibration.probes import calibrating_warning, learnt

    with suppress(InvalidInput):
        if isinstance(spec, str) and spec != "none" and learnt(spec, dataset, fingerprint):
            return [calibrating_warning(spec, dataset)]
    return []


def _measured(scores: Scores) -> str:
    """What the method measured, without its own name, which labels have where several methods measured the same."""
    return scores.name.removeprefix(f"{scores.method}: ")


def _model_of(replay: Replay, method: str, given: str) -> tuple[str, list[str]]:
    """The model that the method's gate listened to, by the name it is ``given`` where that is the same; empty where it is not
    known. And what to warn of: that it may have changed. Raises InvalidSetting for another one."""
    from gnothi.models.identity import content, identify
    from gnothi.runs.journal import FINGERPRINTS

    key = _speaker_of(replay, method)
    recorded = str(replay.settings.get(key, ""))
    if not recorded:
        return given, []
    before = replay.settings.get(f"{FINGERPRINTS}{key}", "")
    if given and given != recorded:
        if (before and content(given) == before) or identify(recorded).same(identify(given)):
            return given, []
        if given != replay.settings.get(_MODEL):
            raise InvalidSetting(
                f"<--model>: got {given!r}, but the scores of {replay.source} are of {recorded!r}, and so is a "
                "threshold chosen from them. Leave <--model> out. (If the model's folder has moved, name its new place: the "
                "model is recognised by its content.)"
            )
    changed = before and (now := content(recorded)) and now != before
    return recorded, [
        f"the model {recorded} is not what it was for {replay.source}: its content has changed. The scores are of the "
        "model as it was then, but the file will pass for a calibration of what it is now. Make the run anew."
    ] * bool(changed)


def _speaker_of(replay: Replay, method: str) -> str:
    """The key under which the run names the model that the method's gate listened to."""
    gate = _gate_of(method)
    key = f"method.{method}.{gate.speaker}" if gate else _MODEL
    return _MODEL if replay.settings.get(key, "none") == "none" else key


def _gate_of(method: str) -> GateSpec | None:
    """What makes up the gate of a recorded method; None for one without, or one that is not known here."""
    from gnothi import methods

    return methods.spec(method).gate if method in methods.names() else None
