"""What the processes of a launch share, and what is refused before they start."""

from __future__ import annotations

import pytest

from gnothi.errors import InvalidSetting
from gnothi.training import processes


def test_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.delenv("RANK", raising=False)
    assert (processes.count(), processes.leads(), processes.share(7, "batch")) == (1, True, 7)
    assert processes.agreed({"score": 0.5}) == {"score": 0.5}
    processes.check()


def test_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "3")
    assert (processes.count(), processes.leads(), processes.share(8, "batch")) == (4, False, 2)
    with pytest.raises(InvalidSetting, match="setting 'batch': got 6, expected a multiple of the 4 processes"):
        processes.share(6, "setting 'batch'")


def test_weights_that_are_spread_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_DEEPSPEED_ZERO_STAGE", "2")
    processes.check()
    monkeypatch.setenv("ACCELERATE_DEEPSPEED_ZERO_STAGE", "3")
    with pytest.raises(InvalidSetting, match=r"got DeepSpeed ZeRO stage 3.*expected plain processes"):
        processes.check()
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    with pytest.raises(InvalidSetting, match="got FSDP"):
        processes.check()
