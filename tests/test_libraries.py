from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from gnothi.libraries import cache_argument, check_found, listed, reason, sleeping_threads
from tests.messages import refused


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("no such file", "no such file"),
        (
            "Error(s) in loading state_dict:\n\tsize mismatch for a.b\n\tsize mismatch for c.d",
            "Error(s) in loading state_dict: size mismatch for c.d",
        ),
        ("\n  first  line \n\n more\n\n-----\n last\tline \n\n", "first line last line"),
        ("same\nsame", "same"),
        ("\x1b[1mbold\x1b[0m", "bold"),
        ("", "ValueError"),
        (" \n---\n", "ValueError"),
        (
            "needs trust_remote_code=True",
            "it comes with Python code of its own (auto_map in its config.json), which is never run: ",
        ),
    ],
)
def test_what_a_library_said(message: str, said: str) -> None:
    assert reason(ValueError(message)).startswith(said)
    assert len(reason(ValueError(message))) < 200


def test_long_lines_keep_both_ends() -> None:
    said = reason(ValueError(f"begin {'x' * 9_000} middle\n{'y' * 9_000} end"))
    assert said.startswith("begin x")
    assert said.endswith("y end")
    assert len(said) < 700


def test_many_names() -> None:
    assert listed([]) == ""
    assert listed(["a", "b", "c"]) == "a, b, c"
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


def test_weights_that_a_report_names() -> None:
    rows = ["Key | Status | ", "----+----+-", "b.{0, 1}.w  | MISSING    | ", "a.w | MISMATCH | ckpt", "z | UNEXPECTED |"]
    report = "\n".join(["BertModel LOAD REPORT from: x", *rows])
    with refused(ValueError):
        check_found([report], "$^")
    check_found([report], r"\.w$")
    check_found([], "$^")


@pytest.mark.parametrize(("before", "inside"), [(None, "passive"), ("active", "active")])
def test_threads_sleep_while_torch_is_imported_unless_told_otherwise(
    before: str | None, inside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if before is not None:
        monkeypatch.setenv("OMP_WAIT_POLICY", before)
    with sleeping_threads():
        assert os.environ["OMP_WAIT_POLICY"] == inside
    assert os.environ.get("OMP_WAIT_POLICY") == before


@pytest.mark.parametrize("name", ["cache", "past_key_values", "cache_params"])
def test_a_cache_is_passed_by_the_name_that_the_model_has_for_it(name: str) -> None:
    forward = eval(f"lambda input_ids, {name}=None, **kwargs: None")
    assert cache_argument(SimpleNamespace(forward=forward)) == name


def test_a_model_may_take_no_cache() -> None:
    assert cache_argument(SimpleNamespace(forward=eval("lambda input_ids, state=None: None"))) is None
