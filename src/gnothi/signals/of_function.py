"""A signal made of one function of the question and the answers."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast, overload

from gnothi.errors import InvalidSetting
from gnothi.own_code import running
from gnothi.signals.base import ComputedSignal, Continued, Sampling, Signal
from gnothi.types import Capabilities

Function = Callable[[str, Sequence[str]], float | None]


@dataclass(frozen=True, slots=True)
class OfReply(ComputedSignal):
    """``function`` sees the reply alone."""

    name: ClassVar[str]
    needs: ClassVar[Capabilities] = Capabilities()
    default_threshold: ClassVar[float | None] = None
    function: ClassVar[Function]

    def compute(self, continued: Continued) -> float:
        """Raises InvalidSetting where the function gives no number."""
        answers = [continued.greedy.text, *(one.text for one in continued.samples.generations)]
        with running(f"signal {self.name!r}"):
            value: Any = type(self).function(continued.question, answers)
        if value is None:
            return math.inf
        try:
            return math.inf if math.isnan(value) else float(value)
        except (TypeError, ValueError):
            raise InvalidSetting(
                f"signal {self.name!r}: the function gave {value!r:.80}, expected a number, or None where nothing can be "
                "measured."
            ) from None


@dataclass(frozen=True, slots=True)
class OfSamples(OfReply):
    """``function`` sees samples behind the reply."""

    sampling: Sampling = field(default_factory=Sampling)


@overload
def signal(function: Function, /) -> type[Signal]: ...


@overload
def signal(*, threshold: float | None = None, samples: bool = True) -> Callable[[Function], type[Signal]]: ...


def signal(function: Function | None = None, /, *, threshold: float | None = None, samples: bool = True) -> Any:
    """Make a signal of ``def name(question, answers)``, which tells how uncertain the model is; higher is less certain, and
    None where nothing can be measured. ``answers`` are texts: first the reply, then the samples, of which there are none
    without ``samples``. ``threshold`` is where a gate fires by default; None if no value is usual for any model.

    Raises InvalidSetting for a function that cannot be called so.
    """
    if function is None:
        return lambda one: signal_of(one, threshold, samples)
    return signal_of(function, threshold, samples)


@functools.cache
def signal_of(function: Any, threshold: float | None = None, samples: bool = True) -> type[Signal]:
    """The signal of a function. Raises as ``signal``."""
    name = str(getattr(function, "__name__", type(function).__name__))
    if inspect.iscoroutinefunction(function) or not _takes_two(function):
        raise InvalidSetting(
            f"signal: got {function!r:.80}, expected a function, not async, of (question, answers) that gives a number."
        )
    namespace = {
        "__module__": getattr(function, "__module__", __name__),
        "__qualname__": getattr(function, "__qualname__", name),
        "__doc__": inspect.getdoc(function) or f"The function {name}.",
        "__slots__": (),
        "name": name,
        "function": staticmethod(function),
        "default_threshold": threshold,
    }
    return cast("type[Signal]", type(name, (OfSamples if samples else OfReply,), namespace))


def as_signal(value: Any) -> Any:
    """A function as a signal; anything else as it is."""
    plain = callable(value) and not isinstance(value, type) and not hasattr(value, "measure")
    return signal_of(value) if plain else value


def _takes_two(function: Any) -> bool:
    try:
        inspect.signature(function).bind("question", ["answer"])
    except TypeError:
        return False
    except ValueError:  # it does not say what it takes
        return True
    return True
