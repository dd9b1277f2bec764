"""Every default that an answer depends on, beside the one it had: a default changes knowingly, and the changelog says so
(docs/project/versions.md). After a wanted change: python -m tests.methods.test_defaults, and read the difference."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import tomli_w

from gnothi import config, methods
from gnothi.methods.compose import CERTAINTY, LIMITS
from gnothi.signals import registry as signals
from gnothi.signals.assessment import Assessment

KEPT = Path(__file__).with_name("defaults.toml")


def defaults() -> dict[str, dict[str, str]]:
    """Method → setting → default as text; under ``signals`` their thresholds."""
    found = {
        name: {key: config.as_text(one.default) for key, one in sorted(config.settings_of(methods.spec(name).method).items())}
        for name in sorted(methods.names())
    }
    return found | {"signals": {name: config.as_text(signals.find(name).default_threshold) for name in sorted(signals.names())}}


def test_defaults_are_those_that_were_published() -> None:
    """A method or a signal that is new since then is published with the next version."""
    published, now = tomllib.loads(KEPT.read_text("utf-8")), defaults()
    signals_now = {name: now["signals"].get(name) for name in published["signals"]}
    assert {name: now.get(name) for name in published} | {"signals": signals_now} == published


def default(method: str, setting: str) -> Any:
    return methods.spec(method).settings[setting].default


def test_the_parts_of_compose_have_the_numbers_of_the_methods_they_come_from() -> None:
    assert {
        "draft": default("seakr", "certainty"),
        "masked": default("flare", "beta"),
        "questions": default("flare", "beta"),
        "claims": default("slimplm", "certainty"),
    } == CERTAINTY
    assert LIMITS["rerank"][1] == default("iekr", "k")
    assert LIMITS["relevance"] == (default("crag", "strip_threshold"), default("crag", "strips"))
    assert LIMITS["pmi"] == (default("skill_rag", "threshold"), None)
    for measure in ("strinc", "lexical", "cxmi"):
        assert LIMITS[measure][1] == default("filco", "spans")


def test_an_assessment_has_keqas_numbers() -> None:
    ours = {item.name: item.default for item in fields(Assessment) if item.name in ("tries", "alpha", "schedule")}
    assert ours == {key: default("keqa", key) for key in ours}


if __name__ == "__main__":
    KEPT.write_text(tomli_w.dumps(defaults()), "utf-8")
