"""From training questions to a probe: the training of ``gnothi.training.probe``."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from gnothi.concurrency import gather
from gnothi.errors import InvalidInput, InvalidSetting, MissingCapability, TooManyFailures
from gnothi.events import Event, ModelCall, Usage, record
from gnothi.fields import setting
from gnothi.methods.planned import refuse_unmeasured
from gnothi.methods.steps.prompts import ANSWER
from gnothi.methods.steps.reader import ReaderSettings
from gnothi.methods.steps.settings import needs_of
from gnothi.metrics import score
from gnothi.models.identity import identify
from gnothi.protocols import LanguageModel
from gnothi.runs.rows import significant
from gnothi.session.watch import Watch
from gnothi.signals import registry as signals
from gnothi.signals.probe import as_task
from gnothi.signals.probe_folder import FittedProbe, write_probe
from gnothi.signals.wording import WordClassifier
from gnothi.stats.auroc import auroc, auroc_interval
from gnothi.stats.probabilities import FOLDS, balanced_threshold
from gnothi.training.collecting import Collecting, Finding, Line
from gnothi.training.job import Job, Opening, Sources, of_settings
from gnothi.training.outcomes import Metric
from gnothi.training.probe.fit import (
    Floats,
    Mask,
    Rows,
    StateFit,
    View,
    best_split,
    fit_states,
    fit_wording,
    held_out,
    require_both,
)
from gnothi.training.run import Trainable, Trained, failures, number
from gnothi.types import Prompt, Question, Site, StateSpec, Task
from gnothi.version import __version__

FINDINGS = "findings.jsonl"
MOST_LAYERS = 6
AGAIN = "Remove the cause; the same command tries those again."

# --- what to find out ----------------------------------------------------------------------------------------------

PromptName = Literal["draft", "answer"]
TASKS: Mapping[str, Task | None] = {"draft": None, "answer": ANSWER}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSettings(ReaderSettings):
    """What a probe is trained to tell, and what it may read. The other settings are those of methods with a gate: how the
    answers and their uncertainty come about."""

    target: Literal["correctness", "uncertainty"] = setting(
        "correctness", "Tell whether the answer is wrong, or whether a signal is high (the setting signal; none: gram)."
    )
    metric: Metric = setting("em", "An answer is wrong where this is below 1.")
    prompts: tuple[PromptName, ...] = setting(
        ("draft", "answer"),
        "Prompts whose last state is tried: the one that a gate's draft continues; the question, to be answered at once.",
    )
    layers: tuple[int, ...] | None = setting(None, f"Layers that are tried (none: all of them, at most {MOST_LAYERS}, evenly).")
    sites: tuple[Site, ...] = setting(("residual",), "Where in a layer: its output, its feed-forward block's, or both.")

    def __post_init__(self) -> None:
        # Not super(): a dataclass with slots is another class than the one that super() knows.
        ReaderSettings.__post_init__(self)
        for key in ("prompts", "sites"):
            if not getattr(self, key):
                raise InvalidSetting(f"setting {key!r}: got none, expected at least one.")
        if self.layers is not None and (not self.layers or min(self.layers) < 0):
            raise InvalidSetting(f"setting 'layers': got {self.layers}, expected at least one, counted from 0.")

    @property
    def measured(self) -> str | None:
        """The signal whose values are collected."""
        return self.signal or ("gram" if self.target == "uncertainty" else None)

    def check(self, model: LanguageModel) -> None:
        """Raise MissingCapability or InvalidSetting where the model cannot give what is to be collected, as far as it says."""
        if self.measured and (lacking := model.capabilities.lacking(needs_of(self.measured))):
            otherwise = "Use <--set signal=consistency>" + (
                ", or leave the setting signal out." if self.target == "correctness" else "."
            )
            raise MissingCapability("train probe", model, lacking, otherwise)

        count = model.profile.layers
        if count and model.capabilities.hidden_states and self.layers and max(self.layers) >= count:
            raise InvalidSetting(
                f"setting 'layers': got {max(self.layers)}, expected 0 to {count - 1} for the model {model.name}. Choose some "
                "of these, or leave the setting out."
            )

    def views(self, model: LanguageModel) -> list[View]:
        """None for a model that shows no states."""
        if not model.capabilities.hidden_states:
            return []
        prompts = dict.fromkeys("draft" if self.reason is False else name for name in self.prompts)
        layers = self.layers or spread(model)
        return [View(name, layer, site) for name in prompts for layer in layers for site in self.sites]


def spread(model: LanguageModel) -> tuple[int | None, ...]:
    """All decoder layers, or ``MOST_LAYERS`` of them, the last one included; None, the middle one, where their number is not
    known."""
    count = model.profile.layers
    if not count:
        return (None,)
    return tuple(
        dict.fromkeys(round(count * (place + 1) / min(count, MOST_LAYERS)) - 1 for place in range(MOST_LAYERS)[:count])
    )


# --- one question --------------------------------------------------------------------------------------------------


async def examine(question: Question, model: LanguageModel, settings: ProbeSettings) -> Line:
    """The answer from memory, whether it is ``wrong``, its ``uncertainty`` (None where not measured or infinite), the
    ``states`` by view, and the ``cost`` of one state and of the uncertainty beyond the answer."""
    prompt = settings.reading(question, model=model)
    with record() as measuring:
        measured = await settings.make_signal(settings.measured).measure(model, prompt, settings.reply_decoding(prompt))
    answer = await settings.answer_from(model, prompt, measured)
    views = settings.views(model)
    with record() as reading:
        states = await gather(*(_state(model, prompt, view) for view in views))
    right = score(answer.text, question.answers, question.choices)[settings.metric] == 1
    return {
        "question": question.text,
        "answer": answer.text,
        "wrong": not right,
        "uncertainty": measured.score if settings.measured else None,
        "states": {_key(view): _packed(state) for view, state in zip(views, states, strict=True)},
        "cost": {"probe": _tokens(reading, len(views)), "uncertainty": _tokens(_beyond_draft(measuring, prompt), 1)},
    }


async def _state(model: LanguageModel, prompt: Prompt, view: View) -> NDArray[np.float32]:
    (state,) = (await model.states(as_task(prompt, TASKS[view.prompt]), [_spec(view)])).states
    return state


def _spec(view: View) -> StateSpec:
    return StateSpec(view.layer, view.site, "predicting")


def _beyond_draft(events: Sequence[Event], prompt: Prompt) -> list[Event]:
    draft = next(
        (
            event
            for event in events
            if isinstance(event, ModelCall) and (event.operation, event.task) == ("generate", prompt.task.name)
        ),
        None,
    )
    return [event for event in events if event is not draft]


def _tokens(events: Sequence[Event], share: int) -> dict[str, float]:
    usage = Usage.of(events)
    return {key: getattr(usage, key) / max(share, 1) for key in ("prompt_tokens", "generated_tokens")}


def _key(view: View) -> str:
    return f"{view.prompt} {'middle' if view.layer is None else view.layer} {view.site}"


def _view(key: str) -> View:
    prompt, layer, site = key.split()
    return View(prompt, None if layer == "middle" else int(layer), cast("Site", site))


def _packed(state: NDArray[np.float32]) -> str:
    return base64.b64encode(state.astype("<f4").tobytes()).decode("ascii")


def _unpacked(text: str) -> NDArray[np.float32]:
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


# --- all of them ---------------------------------------------------------------------------------------------------


class Findings(Collecting):
    """What was found out about a list of questions, in a folder of its own that survives any interruption, and the probe made
    of it. A line of ``findings.jsonl`` is as ``examine`` tells; the states of d numbers take 5.3 d bytes each."""

    file, what = FINDINGS, "probe"
    why = "a probe learns which answers are wrong"

    def finish(self, settings: ProbeSettings, origin: Mapping[str, Any]) -> dict[str, Any]:
        """Fit, write the probe and return what ``probe.json`` says; ``origin`` says of what it is: ``model`` and ``data``.

        Raises TooManyFailures where all questions failed, InvalidInput where too few were answered rightly, or wrongly; both
        say why questions failed."""
        lines = self.in_order()
        done = [line for line in lines if "error" not in line]
        if not done:
            raise TooManyFailures(f"cannot train a probe: {self.why_failed()} {AGAIN}")
        try:
            learnt = learn(done, settings)
        except InvalidInput as error:
            if failed := self.why_failed():
                raise InvalidInput(f"{error.message} {failed} {AGAIN}") from None
            raise
        about = {
            "made": {"date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "gnothi": __version__},
            **{key: dict(value) for key, value in origin.items()},
            "questions": len(done),
            "failures": len(lines) - len(done),
            "wrong": sum(line["wrong"] for line in done),
            "metric": settings.metric,
            "settings": {"reason": settings.reason},
            **learnt.about,
        }
        probe = FittedProbe(learnt.words, about=about)
        if (fit := learnt.states) is not None:
            task = TASKS[fit.view.prompt]
            probe = FittedProbe(learnt.words, (_spec(fit.view),), task, fit.regression, about)
        write_probe(self.out, probe)
        return about


# --- what it teaches -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Learnt:
    """``states`` is None where the model shows none. ``about``: target, choices, figures and costs, as plain data."""

    states: StateFit | None
    words: WordClassifier
    about: dict[str, Any]


def learn(lines: Sequence[Line], settings: ProbeSettings) -> Learnt:
    """A probe of what was found out, and how well such a probe tells wrong answers on questions that it was not fitted on.

    Raises InvalidInput where too few questions were answered rightly, or wrongly."""
    wrong = np.array([line["wrong"] for line in lines], dtype=bool)
    require_both(wrong, "answered wrongly")
    uncertainties = np.array([np.inf if line["uncertainty"] is None else line["uncertainty"] for line in lines])
    texts = [line["question"] for line in lines]
    views = {_view(key): np.array([_unpacked(line["states"][key]) for line in lines]) for key in lines[0]["states"]}
    uncertain = settings.target == "uncertainty"

    def labels(rows: Rows) -> Mask:
        """The labels of these questions, judged by them alone."""
        return uncertainties[rows] > best_split(uncertainties[rows]) if uncertain else wrong[rows]

    def by_states(rows: Rows) -> Callable[[Rows], Floats]:
        fitted = fit_states({view: features[rows] for view, features in views.items()}, labels(rows))
        return lambda others: fitted.regression(views[fitted.view][others])

    def by_words(rows: Rows) -> Callable[[Rows], Floats]:
        fitted = fit_wording([texts[row] for row in rows.tolist()], labels(rows)).words
        return lambda others: fitted([texts[row] for row in others.tolist()])[:, 1]

    every = np.arange(len(lines))
    target = labels(every)
    require_both(target, "uncertain" if uncertain else "answered wrongly")
    scores: dict[str, Floats] = {"probe": held_out(target, by_states)} if views else {}
    scores["question"] = held_out(target, by_words)
    if settings.measured:
        scores[settings.measured] = uncertainties
    states = fit_states(views, target) if views else None
    words = fit_wording(texts, target)
    chosen: dict[str, Any] = {"question": {"strength": words.strength}}
    if states is not None:
        losses = {_key(view): significant(loss) for view, loss in sorted(states.losses.items(), key=lambda item: item[1])}
        chosen["probe"] = {"view": _key(states.view), "ridge": significant(states.ridge), "log_losses": losses}
    signal = {"signal": settings.measured, "split": significant(best_split(uncertainties))} if uncertain else {}
    about = {
        "target": {"name": settings.target, **signal},
        "chosen": chosen,
        "folds": FOLDS,
        "held_out": {name: _figures(values, wrong) for name, values in scores.items()},
        "cost": {
            **({"probe": _mean_cost(lines, "probe")} if views else {}),
            "question": {"prompt_tokens": 0.0, "generated_tokens": 0.0},
            **({settings.measured: _mean_cost(lines, "uncertainty")} if settings.measured else {}),
        },
    }
    return Learnt(states, words.words, about)


def _figures(scores: Floats, wrong: Mask) -> dict[str, Any]:
    area, interval = auroc(scores, wrong), auroc_interval(scores, wrong)
    return {
        "auroc": area and significant(area),
        "interval": interval and [significant(end) for end in interval],
        "threshold": significant(balanced_threshold(scores, wrong)),
    }


def _mean_cost(lines: Sequence[Line], key: str) -> dict[str, float]:
    return {kind: significant(float(np.mean([line["cost"][key][kind] for line in lines]))) for kind in lines[0]["cost"][key]}


class TrainableProbe(Trainable[Findings]):
    """Learn to tell from one forward pass whether the model will answer wrongly; ``settings`` are those of ``ProbeSettings``.

    ``out`` is then a folder that ``--set signal.probe=`` takes, and the figures are what its ``probe.json`` says."""

    kind = Findings

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.settings = job.settings_as(ProbeSettings, "probe")
        measured = [self.settings.measured] if self.settings.measured else []
        has = {key for name in measured for key in signals.settings_of(name)}
        for key, given in job.typed_settings.given.items():
            if key.startswith(f"{signals.SECTION}.") and key not in has and not given.shared:
                refuse_unmeasured(key, given, {"train probe": measured})
        self.recorded = of_settings("probe", self.settings)

    async def opened(self, questions: Sequence[Question], about: Mapping[str, Any], sources: Sources) -> Findings:
        if _is_new(self.folder):
            # What the model cannot give is said before there is a folder that bears the wrong settings.
            self.settings.check(sources.model())
        return await super().opened(questions, about, sources)

    def opening(self, collecting: Findings) -> Opening:  # noqa: ARG002
        return partial(_examining, settings=self.settings)

    def conclude(self, collecting: Findings, watch: Watch) -> Trained:
        with watch.waiting("fitting ..."):
            data = {"name": self.label, "fingerprint": collecting.config["dataset.fingerprint"]}
            figures = collecting.finish(self.settings, {"model": asdict(identify(self.job.model)), "data": data})
        if failed := collecting.why_failed():
            watch.warn(f"{failed} {AGAIN}")
        if "probe" not in figures["chosen"]:
            watch.warn("the model shows no hidden states, so there is nothing to probe: only the signal question was learnt.")
        return Trained(self.job.out, figures["failures"], figures)

    def report(self, trained: Trained) -> list[tuple[str, str]]:
        figures = trained.figures
        target, chosen = figures["target"], figures["chosen"].get("probe")
        target_name = "wrong answers" if target["name"] == "correctness" else f"{target['signal']} above {target['split']:g}"
        rows = [
            ("questions", f"{figures['questions']:,}{failures(trained)}: {figures['wrong']:,} answered wrongly from memory"),
            ("learnt", target_name),
        ]
        if chosen is not None:
            prompt, layer, site = chosen["view"].split()
            rows.append(("reads", f"the last state of the prompt {prompt!r}, layer {layer}, {site}; ridge {chosen['ridge']:g}"))
        about = f"AUROC for wrong answers ({figures['folds']} folds), threshold; tokens beyond the answer, read + written:"
        rows.append(("held out", about))
        for name, method_figures in figures["held_out"].items():
            cost = figures["cost"][name]
            tokens = f"{cost['prompt_tokens']:.1f} + {cost['generated_tokens']:.1f}"
            rows.append((f"  {name}", f"{_area(method_figures)}, {method_figures['threshold']:.3g}; {tokens}"))
        return rows


def _is_new(folder: Path) -> bool:
    return not folder.exists() or (folder.is_dir() and all(item.name.startswith(".") for item in folder.iterdir()))


def _area(figures: Mapping[str, Any]) -> str:
    if figures["interval"] is None:
        return number(figures, "auroc")
    low, high = figures["interval"]
    return f"{figures['auroc']:.3f} [{low:.3f}, {high:.3f}]"


async def _examining(sources: Sources, settings: ProbeSettings) -> Finding:
    model = sources.model()
    settings.check(model)
    return partial(examine, model=model, settings=settings)
