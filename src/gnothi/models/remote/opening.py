"""Opening a model behind an API: the settings' trial of the server, or what an earlier one showed; and the cache."""

from __future__ import annotations

import json
import time

from gnothi.errors import MALFORMED, UsageError
from gnothi.models.cache import Cached, key_of, open_store
from gnothi.models.openai import PREFIX, OpenAIModel, trial
from gnothi.models.remote import budget as budgets
from gnothi.models.remote.client import Client
from gnothi.models.remote.features import Features, untried
from gnothi.models.remote.settings import RemoteSettings
from gnothi.models.store import Store
from gnothi.protocols import LanguageModel

TRIAL_DAYS = 7
"""How long the outcome of a trial is relied upon: servers are updated."""


def open_remote(argument: str, settings: RemoteSettings, prefix: str = PREFIX) -> LanguageModel:
    """The model that the server calls so and, unless switched off, cached. ``prefix`` is what stands before its name in a spec.

    Raises ModelUnavailable where the server cannot be reached, has no such model or wants a key; MissingDependency;
    InvalidSetting; BudgetSpent.
    """
    name = argument.strip()
    if not name:
        raise UsageError(
            f"model {prefix + argument!r}: expected the server's name of a model after {prefix}, as in {prefix}NAME."
        )
    settings = settings.located()
    budget = budgets.current()
    budget.check(budgets.Prices(settings.price_in, settings.price_out))
    client = Client(prefix + name, settings, budget)  # before anything is asked: says what is missing
    store = open_store(settings, by_default=True)
    try:
        features = _features(prefix + name, settings, budget, store)
    except BaseException:
        if store is not None:
            store.close()
        raise
    model = OpenAIModel(prefix + name, settings, features, client)
    if store is None:
        return model
    identity = {"kind": prefix, "model": name, "settings": settings.identity(), "features": features.identity()}
    return Cached(model, store, identity, model.rendered)


def _features(spec: str, settings: RemoteSettings, budget: budgets.Budget, store: Store | None) -> Features:
    told = _told(settings)
    if told is not None:
        return told
    key = key_of({"kind": PREFIX, "model": spec, "settings": settings.identity()}, {"operation": "trial"})
    kept = store.get(key) if store is not None else None
    if kept is not None and (remembered := _read(kept)) is not None:
        return remembered
    features = trial(spec, settings, budget)
    if store is not None:
        store.put(key, json.dumps({"at": time.time(), "features": features.as_dict()}).encode())
    return features


def _told(settings: RemoteSettings) -> Features | None:
    """Where the settings leave nothing open."""
    endpoint, scoring = settings.endpoint, settings.scoring
    if endpoint == "auto" or scoring == "auto" or "auto" in (settings.logprobs, settings.prefill):
        return None
    return Features(endpoint, settings.logprobs == "on", scoring, untried(settings))


def _read(kept: bytes) -> Features | None:
    try:
        data = json.loads(kept)
        if time.time() - data["at"] > TRIAL_DAYS * 86400:
            return None
        return Features.from_dict(data["features"])
    except MALFORMED:
        return None
