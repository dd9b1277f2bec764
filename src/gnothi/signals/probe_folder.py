"""A probe on disk, as ``gnothi train probe`` writes it.

``probe.json`` says what it is of: model, data, settings, what it reads, how well it did on questions held out;
``question.json`` holds what is known of wordings, ``probe.npz`` the weights for hidden states, where the model shows any.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from gnothi.errors import InvalidInput
from gnothi.files import check_format, made_by, regular
from gnothi.signals.wording import WordClassifier
from gnothi.stats.logistic import Logistic
from gnothi.types import Demonstration, Passage, StateSpec, Task

FORMAT = 1
HEADER, WEIGHTS, WORDS = "probe.json", "probe.npz", "question.json"
COMMAND = "gnothi train probe"
LAB = "lab"
LAB_FOLDER = Path(__file__).parent.parent / "lab" / "probe"
CLASSES = ("right", "wrong")
SIGNALS = ("probe", "question")
_ARRAYS = ("weights", "centre", "scale")


@dataclass(frozen=True)
class FittedProbe:
    """A ``Probe``. ``regression`` reads ``states``, None where there are none; the classes of ``words`` are ``CLASSES``;
    ``about`` is what ``probe.json`` says beside."""

    words: WordClassifier
    states: tuple[StateSpec, ...] = ()
    task: Task | None = None
    regression: Logistic | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    @property
    def thresholds(self) -> dict[str, float]:
        held_out = self.about.get("held_out", {})
        return {name: float(held_out[name]["threshold"]) for name in SIGNALS if "threshold" in held_out.get(name, {})}

    def wrong_by_state(self, state: NDArray[np.floating]) -> float:
        size = 0 if self.regression is None else len(self.regression.weights)
        if self.regression is None or state.shape != (size,):
            raise InvalidInput(
                f"the probe {self.name or '(unnamed)'} reads states of {size} numbers, got {len(state)}: it is of another "
                f"model. Train one for this model with `{COMMAND}`."
            )
        if not np.isfinite(state).all():
            raise InvalidInput(
                "got hidden states that are not finite, expected numbers: load the model in bfloat16 or float32, not float16."
            )
        return float(self.regression(state[None])[0])

    def wrong_by_words(self, question: str) -> float:
        return float(self.words([question])[0, CLASSES.index("wrong")])

    async def aclose(self) -> None:
        return None


def write_probe(path: Path, probe: FittedProbe) -> None:
    """Makes the folder, or replaces the probe in it; the header is written last, which makes a probe of the folder. What is
    found again as it was keeps the day when it was ``made``: runs that read the probe go on."""
    path.mkdir(parents=True, exist_ok=True)
    before = _text(path / HEADER)
    (path / HEADER).unlink(missing_ok=True)
    (path / WORDS).write_text(json.dumps(probe.words.as_dict(), ensure_ascii=False, indent=0) + "\n", "utf-8")
    (path / WEIGHTS).unlink(missing_ok=True)
    if probe.regression is not None:
        arrays = {name: getattr(probe.regression, name) for name in _ARRAYS}
        np.savez(path / WEIGHTS, intercept=np.array(probe.regression.intercept), **arrays)
    task = None if probe.task is None else asdict(probe.task)
    document = {"format": FORMAT, **probe.about, "states": [asdict(spec) for spec in probe.states], "task": task}
    with suppress(ValueError, TypeError, KeyError):
        same = {**document, "made": json.loads(before)["made"]}
        document = same if json.loads(before) == json.loads(json.dumps(same)) else document
    (path / HEADER).write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", "utf-8")


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return ""


def open_probe(spec: str | Path) -> FittedProbe:
    """The probe of a folder, or ``lab``, the laboratory model's. Raises InvalidInput where there is none."""
    path = LAB_FOLDER if str(spec) == LAB else Path(spec)
    about = read_header(spec)
    with made_by(COMMAND, path, "probe", EOFError, BadZipFile):
        words = WordClassifier.from_dict(json.loads(regular(path / WORDS).read_text("utf-8")), len(CLASSES))
        states = tuple(StateSpec(one["layer"], one["site"], one["position"]) for one in about["states"])
        regression = _weights(path / WEIGHTS) if states else None
        fitted = FittedProbe(words, states, _task(about["task"]), regression, about, str(spec))
        _ = fitted.thresholds  # numbers
        return fitted


def read_header(spec: str | Path) -> dict[str, Any]:
    """What ``probe.json`` of a folder, or of ``lab``, says. Raises InvalidInput where there is none."""
    path = LAB_FOLDER if str(spec) == LAB else Path(spec)
    with made_by(COMMAND, path, "probe"):
        about: Any = json.loads(regular(path / HEADER).read_text("utf-8"))
        check_format(about, FORMAT)
        for key in ("model", "settings", "data"):
            if not isinstance(about.get(key, {}), dict):
                raise ValueError(f"{key} is no object")
        for key, name in (("model", "name"), ("model", "fingerprint"), ("data", "name"), ("data", "fingerprint")):
            if not isinstance(about.get(key, {}).get(name, ""), str):
                raise ValueError(f"{key}.{name} is no text")
    return dict(about)


def _task(data: Any) -> Task | None:
    """As it was when the probe was trained: another instruction would be another prompt."""
    if data is None:
        return None
    demonstrations = tuple(
        Demonstration(
            one["question"], one["answer"], tuple(Passage(**passage) for passage in one["passages"]), tuple(one["choices"])
        )
        for one in data["demonstrations"]
    )
    return Task(data["name"], data["instruction"], demonstrations, data["answer_label"], data.get("form", ""))


def _weights(path: Path) -> Logistic:
    with regular(path).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        loaded = {name: np.asarray(arrays[name], np.float64) for name in _ARRAYS}
        if len({one.shape for one in loaded.values()}) != 1 or loaded["weights"].ndim != 1:
            raise ValueError(f"weights of shapes {[one.shape for one in loaded.values()]}")
        return Logistic(loaded["weights"], float(arrays["intercept"]), loaded["centre"], loaded["scale"])
