"""What bills show of prompts that were cut, and where servers tell their window."""

from __future__ import annotations

import pytest

from gnothi.models.remote.window import Sizes, window


def test_far_too_few_tokens_show_at_once() -> None:
    sizes = Sizes()
    assert sizes.saw(30, 1300) == 325
    assert sizes.cut == 1
    assert sizes.saw(325, 1300) is None


def test_fewer_tokens_than_usual_show_once_the_usual_is_known() -> None:
    sizes = Sizes()
    assert [sizes.saw(size // 4, size) for size in range(1000, 8000, 1000)] == [None] * 7
    assert sizes.saw(2051, 17_000) == 4250  # of 4,096, as Ollama cuts them
    assert sizes.saw(4250, 17_000) is None


def test_a_window_makes_smaller_cuts_show() -> None:
    sizes = Sizes()
    for size in range(1000, 8000, 1000):
        assert sizes.saw(size // 4, size) is None
    assert sizes.saw(2048, 10_240) is None
    sizes.window = 2048
    assert sizes.saw(2048, 10_240) == 2560


def test_other_languages_are_no_cuts() -> None:
    sizes = Sizes()
    ratios = (0.25, 0.22, 0.3, 0.4, 0.5, 0.24, 0.2)
    assert [sizes.saw(round(ratio * 4000), 4000) for ratio in ratios] == [None] * 7


def test_a_server_that_does_not_count_cuts_nothing() -> None:
    sizes = Sizes()
    assert sizes.saw(0, 4000) is None
    assert sizes.cut == 0


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"id": "x", "max_model_len": 8192}, 8192),
        ({"id": "x", "context_window": 131072, "owned_by": "Groq"}, 131072),
        ({"default_generation_settings": {"n_ctx": 4096, "params": {}}, "total_slots": 1}, 4096),
        ({"models": [{"name": "y:1b", "context_length": 1}, {"name": "x:latest", "context_length": 4096}]}, 4096),
        ({"data": [{"id": "x", "loaded_context_length": 2048, "max_context_length": 32768}]}, 2048),
        ({"models": [{"name": "y", "context_length": 4096}]}, None),
        ({"id": "x", "max_model_len": None}, None),
        ({"max_model_len": True}, None),
        ([], None),
        ("busy", None),
        (None, None),
    ],
)
def test_where_servers_tell_it(told: object, expected: int | None) -> None:
    assert window(told, "x") == expected
