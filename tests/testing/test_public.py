"""What others test with is public, and what needs no pytest does not ask for it."""

from __future__ import annotations

from gnothi import testing
from gnothi.testing import conformance
from tests.test_imports import loaded_after


def test_fakes_need_no_pytest() -> None:
    assert "pytest" not in loaded_after("import gnothi.testing")
    assert set(testing.__all__) <= set(vars(testing))


def test_suites_are_for_subclasses_alone() -> None:
    suites = [vars(conformance)[name] for name in conformance.__all__]
    assert all(isinstance(suite, type) and not suite.__name__.startswith("Test") for suite in suites)
    assert "pytest" in loaded_after("import gnothi.testing.conformance")
