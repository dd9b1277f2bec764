"""What needs no vLLM: a stand-in module takes its place up to where the engine would start."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gnothi.errors import InvalidSetting, MissingDependency, ModelUnavailable, UsageError
from gnothi.models import ModelSettings, VLLMSettings, load_model
from gnothi.models.settings import CallCache
from gnothi.models.vllm import loading
from tests.messages import refused


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a vLLM of a version in place."""
    for name in ("VLLM_LOGGING_STREAM", "VLLM_LOGGING_LEVEL", "VLLM_NO_USAGE_STATS", "VLLM_USE_V2_MODEL_RUNNER"):
        monkeypatch.delenv(name, raising=False)

    def put(version: str) -> None:
        package: Any = ModuleType("vllm")
        package.__version__ = version
        package.__spec__ = importlib.machinery.ModuleSpec("vllm", None)
        platforms: Any = ModuleType("vllm.platforms")
        platforms.current_platform = SimpleNamespace(is_cpu=lambda: True)
        monkeypatch.setitem(sys.modules, "vllm", package)
        monkeypatch.setitem(sys.modules, "vllm.platforms", platforms)

    return put


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "config.json").write_text("{}")
    return f"vllm:{tmp_path}"


def test_without_vllm(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "vllm" else find_spec(name))
    with refused(MissingDependency):
        load_model(folder)


def test_a_spec_without_a_model() -> None:
    with refused(UsageError):
        load_model("vllm: ")


@pytest.mark.parametrize(
    "settings",
    [
        ModelSettings(attention="forked"),
        VLLMSettings(dtype="float64"),
        VLLMSettings(gpu_memory=0.0),
        VLLMSettings(gpu_memory=1.5),
        VLLMSettings(context=-1),
        VLLMSettings(tensor_parallel=2),
        VLLMSettings(tensor_parallel=0),
    ],
)
def test_settings_that_mean_nothing_here(install: Any, folder: str, settings: CallCache) -> None:
    install("0.32.0")
    with refused(InvalidSetting):
        load_model(folder, settings)


def test_a_version_that_is_too_old(install: Any, folder: str) -> None:
    install("0.9.1")
    with refused(ModelUnavailable):
        load_model(folder)


def test_a_build_for_another_device(install: Any, folder: str) -> None:
    install("0.32.0")
    with refused(ModelUnavailable):
        load_model(folder, VLLMSettings(device="cuda"))


def test_a_folder_that_is_not_there(install: Any) -> None:
    install("0.32.0")
    with refused(ModelUnavailable):
        load_model("vllm:./nowhere")


@pytest.mark.parametrize(
    ("version", "eager", "reason"),
    [
        ("0.32.0", True, ""),
        ("0.32.1+cpu", True, ""),
        ("0.33.0", True, "vLLM 0.33.0 is not among the versions"),
        ("dev", True, "vLLM dev is not among the versions"),
        ("0.32.0", False, "compiled graphs"),
    ],
)
def test_hidden_states_need_a_version_whose_insides_are_known(version: str, eager: bool, reason: str) -> None:
    found = loading._no_states(version, VLLMSettings(eager=eager))
    assert found.startswith(reason) if not reason else reason in found
    assert bool(found) == bool(reason)


def test_options() -> None:
    settings = VLLMSettings(cache_mb=64, max_rows=8, prefill_tokens=4, gpu_memory=0.5, tensor_parallel=2)
    on_cpu = loading._options("m", settings, on_cpu=True, no_states=False)
    assert on_cpu["kv_cache_memory_bytes"] == 64 * 2**20
    assert on_cpu["block_size"] % 32 == 0
    assert on_cpu["dtype"] == "float32"
    assert on_cpu["worker_extension_cls"] == "gnothi.models.vllm.worker.WorkerExtension"
    on_gpu = loading._options("m", settings, on_cpu=False, no_states=True)
    assert on_gpu["gpu_memory_utilization"] == 0.5
    assert on_gpu["dtype"] == "bfloat16"
    assert on_gpu["max_num_batched_tokens"] == 8
    assert on_gpu["tensor_parallel_size"] == 2
    assert on_gpu["trust_remote_code"] is False
    assert "worker_extension_cls" not in on_gpu


def test_an_adapter(install: Any, tmp_path: Path) -> None:
    install("0.32.0")
    for name in ("base", "adapter"):
        (tmp_path / name).mkdir()
    (tmp_path / "base" / "config.json").write_text("{}")
    (tmp_path / "adapter" / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(tmp_path / "base")}))
    (tmp_path / "adapter" / "adapter_model.safetensors").touch()
    with refused(ModelUnavailable):
        load_model(f"vllm:{tmp_path / 'adapter'}")
