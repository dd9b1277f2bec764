"""Things by name: those of this package, those of other packages, and those given in this process.

Built-in things and those of others are found in the same way. A *home* is a package in which each module holds one thing and is
called by its name: a new file is a new thing, and no list names it. Another package declares an entry point in its
``pyproject.toml``, which names one object, or a package of its own that is read like a home:

    [project.entry-points."gnothi.signals"]
    hedging = "my_package.signal:Hedging"
    mine = "my_package.signals"

Nothing is imported before it is asked for, and entry points are not looked up for a name that is built in.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType, ModuleType
from typing import Any, Generic, TypeVar, cast

from gnothi.errors import BrokenPlugin, GnothiError, InvalidSetting, PluginWarning, UnknownName
from gnothi.own_code import target_of, thing_of

T = TypeVar("T")

BUILT_IN = "gnothi"
GIVEN = "this process"
_NOTHING: Mapping[str, str] = MappingProxyType({})
_REGISTRIES: dict[str, Registry[Any]] = {}


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a thing is. ``target`` is ``package.module:attribute``; without an attribute, the module's object of that name.
    ``origin`` is ``BUILT_IN``, ``GIVEN``, or the distribution that brings it, with its version."""

    name: str
    target: str
    origin: str


class Own(str):
    """The name of a ``thing`` that was given in this process to the registry of a ``group``, bound to it: whatever else bears
    the name, this stays that thing, and equals no other. Another process imports it."""

    thing: Any
    group: str

    def __new__(cls, name: str, thing: Any, group: str) -> Own:
        own = super().__new__(cls, name)
        own.thing, own.group = thing, group
        return own

    def __eq__(self, other: object) -> bool:
        return self.thing is other.thing if isinstance(other, Own) else str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return _imported, (str(self), target_of(self.thing), self.group)


def _imported(name: str, target: str, group: str) -> Own:
    return Own(name, _REGISTRIES[group].imported(target), group)


class Registry(Generic[T]):
    """Things of one ``kind`` ("method"), which is how errors call them.

    ``group`` is that of the entry points. ``home`` is the package of the built-in ones; its modules ``besides`` them are parts
    that they share, and so are those whose name begins with an underscore. ``attribute`` is what every module of a home calls
    its thing; empty: it is the one object that has the attributes ``like`` and the module's name for its ``name``. ``also`` are
    built-in things that live elsewhere, as targets by name. ``adapt`` makes a thing of what is imported: of a function, say.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        home: str = "",
        attribute: str = "",
        like: Collection[str] = ("name",),
        besides: Collection[str] = (),
        also: Mapping[str, str] = _NOTHING,
        adapt: Callable[[Any], Any] = lambda thing: thing,
    ) -> None:
        self.kind = kind
        self.group = group
        self._home = home
        self._attribute = attribute
        self._like = like
        self._besides = frozenset(besides)
        self._also = dict(also)
        self._adapt = adapt
        self._loaded: dict[str, T] = {}
        self._broken: dict[str, str] = {}
        self._given: dict[str, Entry] = {}
        _REGISTRIES[group] = self

    def names(self) -> tuple[str, ...]:
        """Built-in ones first, then those of other packages and those given here; each in the order of the alphabet. Nothing is
        imported for it."""
        others = {name for name, offers in self._offered.items() if len(offers) == 1} | self._given.keys()
        return (*self._built_in, *sorted(others - self._built_in.keys()))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, Own) or name in self._built_in or name in self._given or name in self._offered

    def entry(self, name: str) -> Entry:
        """Raises UnknownName, or BrokenPlugin where two packages offer something of that name."""
        if isinstance(name, Own):
            return Entry(name, target_of(name.thing), GIVEN)
        known = self._built_in.get(name) or self._given.get(name)
        if known is not None:
            return known
        offers = self._offered.get(name, [])
        if len(offers) > 1:
            raise BrokenPlugin(self._twice(name, offers))
        if not offers:
            raise UnknownName(self.kind, name, self.names())
        return offers[0]

    def find(self, name: str) -> T:
        """The thing of that name, imported at the first time. Raises UnknownName or BrokenPlugin."""
        if isinstance(name, Own):
            return cast("T", name.thing)
        if name not in self._loaded:
            self._loaded[name] = self._load(self.entry(name))
        return self._loaded[name]

    def items(self) -> Iterator[tuple[Entry, T]]:
        """All things, for a listing or a choice among all. What another package cannot deliver is left out with a
        PluginWarning."""
        for name, offers in self._offered.items():
            if name in self._built_in:
                places = " and ".join(_place(offer) for offer in offers)
                self._warn(f"{self.kind} {name!r} of {places} is left out: a built-in one has this name, which stays.")
            elif len(offers) > 1:
                self._warn(self._twice(name, offers))
        for name in self.names():
            try:
                thing = self.find(name)
            except BrokenPlugin as error:
                self._warn(str(error))
            else:
                yield self.entry(name), thing

    def imported(self, target: str) -> T:
        """What ``module:object`` names, which need not be installed: the module may lie in the folder that we are in.

        Raises BrokenPlugin, and what the object itself raises where it is not fit."""
        if "" not in sys.path:
            sys.path.append("")
        try:
            return self._imported(Entry(target, target, GIVEN))
        except GnothiError:
            raise
        except Exception as error:
            raise BrokenPlugin(
                f"{self.kind} {target!r} cannot be imported: {type(error).__name__}: {error}. Expected MODULE:OBJECT, in a "
                "module that Python finds from here."
            ) from error

    def add(self, name: str, thing: T) -> str:
        """Make ``thing``, an object of this process, known by ``name``: what is returned stays bound to it, and the plain name
        is that of what was added last, as where a notebook defines a function anew. Raises InvalidSetting where something
        built in, or of another package, has the name."""
        bound = self.bound(name, thing)
        if isinstance(bound, Own):
            self._given[name] = Entry(name, target_of(thing), GIVEN)
            self._loaded[name] = thing
        return bound

    def bound(self, name: str, thing: T) -> str:
        """The name bound to ``thing``, for whoever has it: the plain name stays unknown. Raises as ``add``."""
        if name in self._built_in or (name in self._offered and name not in self._given):
            if self.find(name) is thing:
                return name
            where = _place(self.entry(name))
            raise InvalidSetting(f"{self.kind} {name!r}: there is one of that name ({where}). Give yours another name.")
        return Own(name, thing, self.group)

    def remove(self, name: str) -> None:
        """Forget what was added by that name, if anything was."""
        if self._given.pop(name, None):
            del self._loaded[name]

    # --- where things are ----------------------------------------------------------------------------------------------

    @cached_property
    def _built_in(self) -> dict[str, Entry]:
        entries = {name: Entry(name, target, BUILT_IN) for name, target in self._also.items()}
        if self._home:
            entries |= {entry.name: entry for entry in self._scan(self._home, BUILT_IN) if entry.name not in self._besides}
        return dict(sorted(entries.items()))

    @cached_property
    def _offered(self) -> dict[str, list[Entry]]:
        """What other packages offer, by name."""
        from importlib.metadata import entry_points

        entries: dict[str, list[Entry]] = {}
        for point in sorted(entry_points(group=self.group), key=lambda point: (point.name, point.value)):
            origin = f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
            for entry in self._of_point(point.name, point.value, origin):
                if entry not in entries.setdefault(entry.name, []):
                    entries[entry.name].append(entry)
        return entries

    def _of_point(self, name: str, target: str, origin: str) -> list[Entry]:
        """One thing, or all of a package. One that cannot be read becomes an entry, too: it fails when it is asked for."""
        if ":" not in target:
            try:
                spec = importlib.util.find_spec(target)
                if spec is not None and spec.submodule_search_locations:
                    return list(self._scan(target, origin))
            except Exception:  # noqa: BLE001 - another's code; asked for by name, it says what is wrong
                pass
        return [Entry(name, target, origin)]

    def _scan(self, package: str, origin: str) -> Iterator[Entry]:
        """An entry for each module of the package, which is not imported; those above it are."""
        spec = importlib.util.find_spec(package)
        assert spec is not None, f"there is no package {package}"
        for module in pkgutil.iter_modules(spec.submodule_search_locations):
            if not module.ispkg and not module.name.startswith("_"):
                attribute = f":{self._attribute}" if self._attribute else ""
                yield Entry(module.name, f"{package}.{module.name}{attribute}", origin)

    # --- imports -------------------------------------------------------------------------------------------------------

    def _load(self, entry: Entry) -> T:
        if entry.name in self._broken:  # an import that failed is not tried again
            raise BrokenPlugin(self._broken[entry.name])
        try:
            return self._imported(entry)
        except Exception as error:
            if entry.origin == BUILT_IN:
                raise
            self._broken[entry.name] = (
                f"{self.kind} {entry.name!r} of {_place(entry)} cannot be loaded: {type(error).__name__}: {error}. Repair that "
                "package or uninstall it."
            )
            raise BrokenPlugin(self._broken[entry.name]) from error

    def _imported(self, entry: Entry) -> T:
        path, _, attribute = entry.target.partition(":")
        if not attribute:
            return self._by_name(importlib.import_module(path), entry.name)
        thing: T = self._adapt(thing_of(entry.target))
        return thing

    def _by_name(self, module: ModuleType, name: str) -> T:
        things = {id(thing): thing for thing in vars(module).values()}.values()
        named = [thing for thing in things if all(hasattr(thing, key) for key in self._like) and thing.name == name]
        if len(named) != 1:
            raise TypeError(
                f"{module.__name__} holds {len(named) or 'no'} objects with {' and '.join(self._like)} whose name is {name!r}, "
                f"expected one: the file, or the entry point, of a {self.kind} is called by its name"
            )
        return cast("T", named[0])

    # --- messages ------------------------------------------------------------------------------------------------------

    def _twice(self, name: str, offers: Collection[Entry]) -> str:
        places = " and ".join(_place(offer) for offer in offers)
        return f"{self.kind} {name!r} is offered by {places}: neither is used. Uninstall one of them."

    def _warn(self, message: str) -> None:
        warnings.warn(message, PluginWarning, stacklevel=3)


def _place(entry: Entry) -> str:
    return "built in" if entry.origin == BUILT_IN else f"{entry.origin} ({entry.target})"
