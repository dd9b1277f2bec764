"""How a kind of model is opened, and what is known of one before that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from gnothi.errors import UsageError
from gnothi.models.of_function import as_model
from gnothi.models.settings import CallCache
from gnothi.protocols import LanguageModel
from gnothi.schemes import Scheme, as_scheme

LAB = "lab"
LAB_FOLDER = Path(__file__).parent.parent / "lab" / "model"
LAB_READER = "lab-reader"
LABORATORYS = {LAB: LAB_FOLDER, LAB_READER: LAB_FOLDER.parent / "reader"}
"""Models that come with the package, and their folders."""
PLUGINS = "of other packages"

FORM = ("renderer", "demonstrations", "passages", "thinking", "endpoint")
"""Settings of a model that make up the form of its prompts, on which scores depend."""


def _nothing(argument: str, spec: str, on_the_hub: bool) -> None:
    """The model answers for itself."""


@dataclass(frozen=True, kw_only=True)
class ModelScheme(Scheme[LanguageModel]):
    """``open`` takes the argument, the whole spec (the name in errors) and settings of the class ``settings``, which is
    what ``--set model.KEY`` takes for models that run ``where``. ``check`` raises ModelUnavailable where there is no such
    model, without loading it. ``specs`` are what users write, each with a line about it. ``remote``: calls go to a server
    and cost money."""

    settings: type[CallCache] = CallCache
    where: str = PLUGINS
    specs: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[str, str, bool], None] = _nothing
    remote: bool = False


def as_model_scheme(thing: Any) -> ModelScheme:
    """What another package offers as a scheme: a ``ModelScheme``, or a class or function of the argument alone. One that has an
    attribute ``settings``, a dataclass that inherits from ``CallCache``, takes such settings, too."""
    if isinstance(thing, ModelScheme):
        return thing
    plain, settings = as_scheme(thing), getattr(thing, "settings", None)

    def open_plainly(argument: str, _: str, options: CallCache) -> LanguageModel:
        opened = as_model(plain.open(argument, options) if settings else plain.open(argument))
        return with_cache(opened, options, argument, plain.fingerprint)

    return ModelScheme(open=open_plainly, summary=plain.summary, fingerprint=plain.fingerprint, settings=settings or CallCache)


def with_cache(model: LanguageModel, settings: CallCache, argument: str, fingerprint: Callable[[str], str]) -> LanguageModel:
    """The model, its replies kept where the settings ask for it."""
    from gnothi.models.cache import Cached, open_store

    if (store := open_store(settings, by_default=False)) is None:
        return model
    own = {one.name: repr(getattr(settings, one.name)) for one in fields(settings) if not one.metadata.get("execution")}
    identity = {"kind": type(model).__qualname__, "model": argument, "version": fingerprint(argument), "settings": own}
    return Cached(model, store, identity, repr)


def folder_of(argument: str, spec: str) -> str:
    """A folder or hub id; of the laboratory's models the folder in the package. Raises UsageError for a blank one."""
    if not argument.strip():
        raise UsageError(
            f"no model was named: got {spec!r}, expected 'lab', a folder or a hub id, or one of them after 'vllm:', "
            "or openai:NAME."
        )
    return str(LABORATORYS.get(argument, argument))


def check_folder(argument: str, spec: str, on_the_hub: bool) -> None:
    """Raise ModelUnavailable where there is no such model here; to look ``on_the_hub`` takes a moment."""
    from gnothi.models.places import locate

    if argument not in LABORATORYS and argument.strip():
        locate(argument, spec, on_the_hub)
