"""What can go wrong, as a tree. Every message says what was got, what was expected and what to do.

GnothiError
├── UsageError            exit code 2: the caller asked for something that cannot be
│   ├── UnknownName         no such method, model, data set, setting ...; lists the valid ones
│   ├── InvalidSetting      a setting of the wrong type or range
│   ├── InvalidInput        a file, line or question that cannot be used
│   ├── PromptTooLong       a prompt that does not fit the model's context
│   ├── PromiseRefused      too few questions, or too many wrong, for the guarantee that was asked for
│   ├── OtherModel          a calibration file made for another model
│   └── MissingCapability   a method needs what the model lacks
├── ResourceUnavailable   exit code 3: a model, index or server that is not there or cannot be read
│   ├── MissingDependency   an extra is not installed
│   ├── IndexUnavailable    no index, an index of another version, or one locked by another writer
│   ├── ModelUnavailable    a model that cannot be loaded or reached
│   └── BrokenPlugin        what another package offers cannot be imported, or two packages offer the same name
├── CodeFailed            exit code 1: a method, signal, model or search of the caller's own raised; __cause__ is what
└── RunStopped            exit code 1: a run stopped before its end; what is finished is kept, the same command goes on
    ├── TooManyFailures     too many questions failed
    ├── BudgetSpent         what a model behind an API may cost has been spent
    ├── WorkerDied          processes that answered questions were killed or crashed, again and again
    └── TrainingCollapsed   a model in training gives one and the same reply to everything
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gnothi import naming

if TYPE_CHECKING:
    from gnothi.protocols import LanguageModel

MALFORMED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""What taking parsed data apart raises where it is not as expected; numbers beyond a float and nesting too deep included."""


def malformation(error: Exception) -> str:
    """What is wrong with data over which that was raised (``MALFORMED``), in words."""
    said = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    match error:
        case KeyError() if said and " " not in said:
            return f"{said!r} is missing"
        case OverflowError():
            return "a number is too large"
        case RecursionError():
            return "it is nested too deeply"
        case TypeError() | AttributeError():
            return _VAGUE
    return said.rstrip(".") or _VAGUE


_VAGUE = "a part is missing or of the wrong type"


class GnothiError(Exception):
    """Base of everything a user may see. ``exit_code`` is the command line's contract.

    A message names parameters by ``gnothi.naming``: shown, they are those of Python's functions; the command line shows its
    flags."""

    exit_code = 1

    def __str__(self) -> str:
        return naming.in_python(self.message)

    @property
    def message(self) -> str:
        """The text with its marks."""
        return str(self.args[0]) if self.args else ""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters and settings that it speaks of."""
        return naming.parameters(self.message)


class UsageError(GnothiError):
    exit_code = 2


class UnknownName(UsageError):
    """``kind`` is what was looked up ("method", "setting of seakr"), ``valid`` every name that would have worked."""

    def __init__(self, kind: str, name: str, valid: Iterable[str]) -> None:
        self.valid = sorted(set(valid))
        close = difflib.get_close_matches(name, self.valid, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        listing = ", ".join(self.valid) if self.valid else "(none)"
        super().__init__(f"unknown {kind}: got {name!r}.{hint} Expected one of: {listing}.")


class InvalidSetting(UsageError):
    pass


class InvalidInput(UsageError):
    pass


class PromptTooLong(UsageError):
    """``thought`` are those of the tokens that the model was to have for thinking; ``ours``: the limit may be a setting."""

    def __init__(self, model: str, tokens: int, limit: int, thought: int = 0, ours: bool = True) -> None:
        self.arguments = model, tokens, limit
        room = f", with {thought} for a thought: fewer with <--set model.thinking_tokens=...>" if thought else ""
        setting = " If the limit is not the model's own, raise it with <--set model.context=...>." if ours else ""
        super().__init__(
            f"the prompt does not fit {model}: got {tokens} tokens (reply included{room}), expected at most {limit}. "
            "Shorten the question, retrieve fewer passages (<--set k=...>), ask for less (<--set max_tokens=...>) or use a "
            f"model with a longer context.{setting}"
        )


class PromiseRefused(UsageError):
    """A guarantee that the sample cannot support; says how many questions it would take."""


class OtherModel(UsageError):
    pass


class MissingCapability(UsageError):
    """Raised before the first question, so that no run dies half-way for a foreseeable reason."""

    def __init__(self, method: str, model: LanguageModel, lacking: Sequence[str], alternative: str) -> None:
        what, why = ", ".join(lacking), "; ".join(filter(None, map(model.profile.lacks.get, lacking)))
        offers = f"does not offer ({why})" if why else "does not offer"
        super().__init__(f"method {method!r} needs {what}, which model {model.name!r} {offers}. {alternative}")


class ResourceUnavailable(GnothiError):
    exit_code = 3


class MissingDependency(ResourceUnavailable):
    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed. Install it with: pip install 'gnothi[{extra}]'"
        )


class IndexUnavailable(ResourceUnavailable):
    pass


class ModelUnavailable(ResourceUnavailable):
    pass


class BrokenPlugin(ResourceUnavailable):
    pass


class PluginWarning(UserWarning):
    """Something that another package offers is left out of a listing."""


class CodeFailed(GnothiError):
    """``code`` is of the caller's own, and raised ``error``, the cause, at ``where``: file and line."""

    def __init__(self, code: str, error: Exception, where: str | None) -> None:
        self.arguments = code, error, where
        message = f"{type(error).__name__}: {error!s:.300}".rstrip(": ")
        super().__init__(f"{code} raised {message}{f' (in {where})' if where else ''}. Correct it there.")


def origin(error: BaseException) -> BaseException:
    """As records have it: of code of the caller's own, what that raised."""
    return error.arguments[1] if isinstance(error, CodeFailed) else error


def recorded(error: Exception) -> dict[str, str]:
    """As rows and lines have it: the ``type`` and ``message`` of what was raised, and ``where`` in code of the caller's own."""
    raised = origin(error)
    place = {"where": where} if isinstance(error, CodeFailed) and (where := error.arguments[2]) else {}
    return {"type": type(raised).__name__, "message": str(raised) or repr(raised), **place}


def reason(error: Mapping[str, Any]) -> str:
    """What was ``recorded``, in words: ``ValueError: no such key (in mine.py, line 3)``."""
    return f"{error.get('type')}: {error.get('message')}{f' (in {where})' if (where := error.get('where')) else ''}"


def sentence(text: str) -> str:
    """With a full stop where it has no end: what others wrote, before a sentence of ours."""
    return text if text.rstrip().endswith((".", "!", "?", "…", "。")) else f"{text.rstrip()}."


class RunStopped(GnothiError):
    exit_code = 1


class TooManyFailures(RunStopped):
    pass


class BudgetSpent(RunStopped):
    pass


class WorkerDied(RunStopped):
    pass


class TrainingCollapsed(RunStopped):
    pass


def shown(value: object) -> str:
    """The value as a message shows it: cut where it is long, and said in words where Python itself cannot write it out."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or a number of thousands of digits
        return f"a very large {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def counted(number: int, unit: str, several: str = "") -> str:
    """``1 search``, ``2 searches``: the plural ends in s, unless it is given."""
    return f"{number:,} {unit if number == 1 else several or unit + 's'}"
