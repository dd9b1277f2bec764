from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gnothi.errors import InvalidInput
from gnothi.methods.steps.prompts import ANSWER
from gnothi.signals.probe_folder import HEADER, WEIGHTS, WORDS, open_probe, read_header, write_probe
from tests.messages import refused
from tests.signals.probes import HIDDEN_SIZE, probe_saying

ABOUT = {"model": {"name": "m", "fingerprint": "f"}, "settings": {"reason": True}}


def test_written_and_read(tmp_path: Path) -> None:
    made = replace(probe_saying(0.7, 0.2, ANSWER), about=ABOUT)
    write_probe(tmp_path, made)
    first = [(tmp_path / name).read_bytes() for name in (HEADER, WEIGHTS, WORDS)]
    read = open_probe(tmp_path)
    state = np.random.default_rng(0).normal(size=HIDDEN_SIZE)
    assert read.wrong_by_state(state) == made.wrong_by_state(state) == pytest.approx(0.7)
    assert read.wrong_by_words("Who?") == made.wrong_by_words("Who?") == pytest.approx(0.2)
    assert (read.states, read.task, read.name) == (made.states, ANSWER, str(tmp_path))
    assert read_header(tmp_path).items() >= ABOUT.items()
    write_probe(tmp_path, made)
    assert [(tmp_path / name).read_bytes() for name in (HEADER, WEIGHTS, WORDS)] == first


def test_what_is_found_again_keeps_its_day(tmp_path: Path) -> None:
    def made(day: str, **about: object) -> None:
        write_probe(tmp_path, replace(probe_saying(0.7, 0.2, ANSWER), about={**ABOUT, "made": {"date": day}, **about}))

    made("Monday")
    first = (tmp_path / HEADER).read_bytes()
    made("Tuesday")
    assert (tmp_path / HEADER).read_bytes() == first
    made("Tuesday", questions=2)
    assert read_header(tmp_path)["made"] == {"date": "Tuesday"}
    (tmp_path / HEADER).write_text("{")
    made("Wednesday")
    assert read_header(tmp_path)["made"] == {"date": "Wednesday"}


def test_states_that_are_no_numbers_are_refused() -> None:
    with refused(InvalidInput):
        probe_saying(0.7).wrong_by_state(np.full(HIDDEN_SIZE, np.nan))


def test_of_a_model_without_states(tmp_path: Path) -> None:
    write_probe(tmp_path, probe_saying(0.7))
    write_probe(tmp_path, replace(probe_saying(0.7, 0.2), states=(), regression=None))
    read = open_probe(tmp_path)
    assert not (tmp_path / WEIGHTS).exists()
    assert read.states == ()
    with refused(InvalidInput):
        read.wrong_by_state(np.zeros(HIDDEN_SIZE))


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with refused(InvalidInput):
        open_probe(tmp_path)
    odd = ('{"format": 1, "model": 7}', '{"format": 1, "model": {"name": 7}}', '{"format": 1, "data": {"fingerprint": []}}')
    for text in ("{", "[]", '{"format": 2}', *odd):
        (tmp_path / HEADER).write_text(text)
        with refused(InvalidInput):
            open_probe(tmp_path)
    write_probe(tmp_path, probe_saying(0.5))
    (tmp_path / WEIGHTS).unlink()
    with refused(InvalidInput):
        open_probe(tmp_path)
    np.savez(tmp_path / WEIGHTS, weights=np.zeros(3), centre=np.zeros(2), scale=np.ones(3), intercept=0.0)
    with refused(InvalidInput):
        open_probe(tmp_path)
    write_probe(tmp_path, probe_saying(0.5))
    whole = (tmp_path / WEIGHTS).read_bytes()
    for content in (b"no archive", b"", whole[: len(whole) // 2], whole[:-1]):
        (tmp_path / WEIGHTS).write_bytes(content)
        with refused(InvalidInput):
            open_probe(tmp_path)
    (tmp_path / WORDS).write_text(json.dumps({"features": {}, "constants": [1.0]}))
    with refused(InvalidInput):
        open_probe(tmp_path)


@pytest.mark.parametrize("held_out", [7, {"probe": 7}, {"probe": {"threshold": [1]}}, {"question": {"threshold": "high"}}])
def test_thresholds_are_numbers(tmp_path: Path, held_out: object) -> None:
    write_probe(tmp_path, replace(probe_saying(0.5), about=ABOUT | {"held_out": held_out}))
    with refused(InvalidInput):
        open_probe(tmp_path)
