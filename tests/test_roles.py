"""Methods that play a part can do what the part asks."""

from __future__ import annotations

import pytest

from gnothi import methods, roles


def test_each_is_a_method() -> None:
    named = {value for key, value in vars(roles).items() if key.isupper() and isinstance(value, str)}
    assert named | set(roles.SERVED) <= set(methods.names())


@pytest.mark.parametrize("name", [roles.REASONING, roles.AT_ONCE, roles.EVERY_SIGNAL])
def test_what_answers_from_memory_needs_nothing_but_a_model(name: str) -> None:
    assert methods.spec(name).required.keys() == {"model"}
    assert methods.spec(name).gate is None


@pytest.mark.parametrize("name", [roles.ALWAYS, roles.STEPWISE, roles.STAGES])
def test_what_always_retrieves_has_no_threshold(name: str) -> None:
    assert "retriever" in methods.spec(name).required
    assert methods.spec(name).gate is None


@pytest.mark.parametrize("name", [roles.GATED, roles.ANY_GATE])
def test_what_is_gated_can_be_calibrated(name: str) -> None:
    assert methods.spec(name).gate is not None
