"""The program for a day with a card: what it does when steps fail, hang or lack something; in small sizes on the CPU."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import _contenders, gpu, uncertainty
from benchmarks.gpu import Step
from tests.benchmarks.conftest import Program
from tests.messages import refused
from tests.preloaded import Preloaded

HANGS = (
    "import signal, subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()']); signal.pause()"
)
Main = Callable[..., int]


@pytest.fixture
def main(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Main:
    """The program on the CPU, its file in a folder of its own."""

    def run(*options: str, steps: Sequence[Step] | None = None) -> int:
        monkeypatch.setattr(sys, "argv", ["gpu", "--out", str(tmp_path / "gpu.json"), "--device", "cpu", *options])
        monkeypatch.setattr(signal, "signal", lambda *_: None)  # this process goes on
        if steps is not None:
            monkeypatch.setattr(gpu, "steps", lambda _: iter(steps))
        return gpu.main()

    return run


def _python(code: str) -> tuple[str, str]:
    return "-c", code


def _steps(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))["steps"]
    return found


def _costs() -> dict[str, Any]:
    result = {
        "prompt": 1500,
        "parameters": 8_030_000_000,
        "seconds": [{"floor": 1.0, "ours, cold": 1.5, "vllm": 0.5}, {"floor": 2.0, "ours, cold": 2.0, "vllm": 0.5}],
        "extra_mb": {"floor": 80.0, "ours, cold": 90.0},
        "left_out": {"library": "OutOfMemoryError: CUDA out of memory."},
        "about": {"vllm": "vLLM 0.32.0"},
    }
    return {"options": {"k": 20, "tokens": 40, "repeats": 2}, "results": [result]}


def test_steps_that_fail_hang_lack_or_do_not_fit_leave_the_others(
    main: Main, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "gpu.json"
    few = [
        Step("fails", 1.0, _python("raise SystemExit('out of memory')")),
        Step("hangs", 0.005, _python(HANGS)),  # it ends with what it started: else its output would stay open
        Step("lacks", 1.0, lacks="give --vllm PYTHON"),
        Step("long", 99.0, _python("")),
        Step("costs", 1.0, _python(f"print({json.dumps(_costs())!r})")),
    ]
    assert main(steps=few) == 1
    assert {name: step["code"] for name, step in _steps(out).items()} == {
        "fails": 1,
        "hangs": 124,
        "lacks": None,
        "long": None,
        "costs": 0,
    }
    assert {"python", "cores", "torch"} <= _steps(out)["costs"]["machine"].keys()

    again = [Step("fails", 1.0, _python("print('{}')")), few[2], Step("costs", 1.0, _python("raise SystemExit('asked again')"))]
    assert main("--only", "costs", steps=again) == 0
    assert _steps(out)["fails"]["code"] == 1
    capsys.readouterr()

    assert main("--page") == 0
    page = capsys.readouterr().out.splitlines()
    assert "| floor | 1.50 (1.00 - 2.00) | 1.00 (1.00 - 1.00) | 3.00 (2.00 - 4.00) | 80.0 |" in page
    assert "| ours, cold | 1.75 (1.50 - 2.00) | 1.25 (1.00 - 1.50) | 3.50 (3.00 - 4.00) | 90.0 |" in page
    assert "library is left out: OutOfMemoryError: CUDA out of memory." in page
    assert "- vllm: vLLM 0.32.0" in page
    assert "- fails: exit code 1. out of memory" in page
    assert "- lacks: left out. give --vllm PYTHON" in page
    assert any(line.startswith("- hangs: exit code 124. stopped after") for line in page)
    assert any(line.startswith("- long: left out.") for line in page)

    assert main(steps=again) == 0
    assert _steps(out)["fails"]["code"] == 0


def test_answers_are_held_against_the_cpus(main: Main, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(answers: Sequence[str], score: float) -> dict[str, Any]:
        rows = {
            str(number): {"answer": answer, "accuracy": 1.0, "signals": {"perplexity": score, "gram": 3 * score}, "tokens": 50}
            for number, answer in enumerate(answers)
        }
        area = {"gram": 0.75, "perplexity": 0.8, "prompt": None}
        return {
            "code": 0,
            "seconds": 12.0,
            "rows": {"panel": rows, "direct": rows},
            "auroc": area,
            "resumed": False,
            "machine": {"cores": 2},
        }

    steps = {"popqa on cpu": told(["Rome", "Oslo"], 1.5), "popqa on cuda": told(["Rome", "Bonn"], 1.25)}
    (tmp_path / "gpu.json").write_text(json.dumps({"steps": steps}), "utf-8")
    assert main("--page") == 0
    page = capsys.readouterr().out.splitlines()
    assert "| popqa on cpu | 2 | 1.00 | 0.75 | perplexity 0.80 | 12.0 | 50.0 |  |  |" in page
    assert "| popqa on cuda | 2 | 1.00 | 0.75 | perplexity 0.80 | 12.0 | 50.0 | 1 of 2 | 0.25 |" in page


@pytest.mark.parametrize("content", ["{", "[]", '{"runs": 1}'])
def test_another_file_is_refused_and_kept(main: Main, tmp_path: Path, content: str) -> None:
    (tmp_path / "gpu.json").write_text(content, "utf-8")
    with refused(SystemExit):
        main()
    assert (tmp_path / "gpu.json").read_text("utf-8") == content


def test_two_taught_models_of_one_name_are_refused(main: Main) -> None:
    with refused(SystemExit):
        main("--taught", "one/seed-0", "--taught", "other/seed-0")


def test_without_a_card_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused(SystemExit):
        gpu._card("cuda")


def test_the_card_is_what_the_driver_names(monkeypatch: pytest.MonkeyPatch) -> None:
    told = SimpleNamespace(stdout="NVIDIA H100 80GB HBM3, 81559 MiB, 580.159.04\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: told)
    assert gpu._card("cuda") == {"card": "NVIDIA H100 80GB HBM3", "its memory": "81559 MiB", "driver": "580.159.04"}


def test_what_is_not_here_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    taught = tmp_path / "seed-0"
    for name in ("teaching/model", "memory-test"):
        (taught / name).mkdir(parents=True)
    for name in ("test.jsonl", "memory-test/done"):
        (taught / name).touch()
    given = ["--data", str(tmp_path), "--taught", str(taught), "--taught", str(tmp_path / "none")]
    monkeypatch.setattr(sys, "argv", ["gpu", *given])
    found = {step.name: step for step in gpu.steps(gpu._options())}
    assert "--vllm" in found["8 B beside vLLM, 1500 tokens"].lacks
    assert found["smollm2, popqa on cuda"].lacks
    assert "none" in found["taught none on cuda"].lacks
    assert "taught none on cpu" not in found
    assert found["taught seed-0 on cpu"] == Step("taught seed-0 on cpu", 0.0, run=taught / "memory-test")
    assert not found["taught seed-0 on cuda"].lacks
    assert "--llama3" in found["8 B, 1500 tokens"].command
    telling = [step.minutes for step in found.values() if "beside" not in step.name]
    assert sum(telling) <= 25


@contextmanager
def _working(names: Sequence[str], settings: dict[str, Any], *_: object, **__: str) -> Iterator[Any]:
    """Workers that answer at once; the library finds too little memory."""

    def ask(name: str, do: str, number: int) -> dict[str, Any]:
        assert name in names
        assert do == "time" or number == 0
        if name == "library":
            return {"failed": "OutOfMemoryError: CUDA out of memory."}
        count = {"floor": 1, "procedure": settings["k"], "polygraph": settings["k"]}.get(name, settings["k"] + 1)
        return {"seconds": 2.0, "cpu_seconds": 1.0, "extra_mb": 9.0, "lengths": [settings["tokens"]] * count}

    started = {"about": dict.fromkeys(names, "told"), "parameters": 7}
    yield SimpleNamespace(ask=ask, answer=lambda: started)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_who_finds_too_little_memory_is_left_out(
    device: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(uncertainty, "working", _working)
    few = ["--sizes", "1500:1400", "--tokens", "5", "--k", "3", "--repeats", "2", "--device", device]
    uncertainty.main([*few, "--json"])
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["left_out"] == {"library": "OutOfMemoryError: CUDA out of memory."}
    assert list(result["seconds"][0]) == ["floor", "ours, cold", "ours, warm", "procedure"]
    assert result["extra_mb"].keys() == {"floor", "ours, cold", "ours, warm", "procedure"}
    assert result["faster_than"].keys() == {"procedure"}
    uncertainty.main([*few, "--without", "library", "--without", "procedure", "--without", "ours, warm", "--vllm", "PYTHON"])
    assert "| vllm | 2.00 |" in capsys.readouterr().out


def test_llama_cpp_and_generate_batch_stand_beside_where_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(uncertainty, "working", _working)
    few = ["--sizes", "200:150", "--repeats", "1", "--no-memory", "--without", "library", "--without", "procedure"]
    uncertainty.main([*few, "--batch", "--llama", "PROGRAM", "--precision", "bfloat16", "--json"])
    document = json.loads(capsys.readouterr().out)
    (result,) = document["results"]
    names = ["floor", "ours, cold", "ours, warm", "generate_batch", "llama.cpp", "llama.cpp, warm", "llama.cpp, alike"]
    assert list(result["seconds"][0]) == names
    assert list(result["faster_than"]) == names[3:]
    assert result["extra_mb"] == {}
    assert document["options"]["precision"] == "bfloat16"
    uncertainty.main([*few, "--llama", "PROGRAM", "--without", "llama.cpp, alike"])
    shown = capsys.readouterr().out
    assert "NOT MET ours, cold: at most 0.8 of the time of llama.cpp" in shown
    assert "extra MB" not in shown
    with refused(SystemExit):
        uncertainty.main(["--device", "cuda", "--batch"])


@pytest.mark.parametrize("tiny", [[], ["--tiny"]])
def test_the_steps_that_compare_are_commands_of_uncertainty(
    tiny: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(uncertainty, "working", _working)
    monkeypatch.setattr(sys, "argv", ["gpu", "--vllm", "PYTHON", "--polygraph", "PYTHON", *tiny])
    compared = {}
    for step in gpu.steps(gpu._options()):
        if "benchmarks.uncertainty" in step.command:
            uncertainty.main(step.command[2:])
            document = json.loads(capsys.readouterr().out)
            compared[step.name] = list(document["results"][0]["seconds"][0])
            assert list(gpu.page({"steps": {step.name: {"code": 0, "machine": {}, "document": document}}}))
    assert compared == {
        "30 M, both prompts": ["floor", "ours, cold", "ours, warm", "procedure"],
        "8 B, 1500 tokens": ["floor", "ours, cold", "ours, warm"],
        "8 B, 200 tokens": ["floor", "ours, cold", "ours, warm"],
        "8 B beside vLLM, 1500 tokens": ["floor", "ours, cold", "ours, warm", "vllm"],
        "8 B beside vLLM, 200 tokens": ["floor", "ours, cold", "ours, warm", "vllm"],
        "8 B beside LM-Polygraph, 200 tokens": ["floor", "ours, cold", "polygraph"],
    }


def test_on_a_card_those_share_a_model_that_do_not_slow_each_other() -> None:
    names = ["floor", "ours, cold", "ours, warm", "library", "vllm"]
    assert uncertainty.groups(names, on_card=False) == [[name] for name in names]
    assert uncertainty.groups(["floor", "llama.cpp", "llama.cpp, alike"], on_card=False) == [
        ["llama.cpp", "llama.cpp, alike"],
        ["floor"],
    ]
    assert uncertainty.groups(names, on_card=True) == [["floor", "library"], ["ours, cold", "ours, warm"], ["vllm"]]


def test_a_contender_that_fails_says_why() -> None:
    def work(_: Any, number: int) -> dict[str, Any]:
        raise MemoryError(f"prompt {number}\nmore")

    here: Any = SimpleNamespace(model=SimpleNamespace(device=SimpleNamespace(type="cpu")))
    assert _contenders._tried(work, here, 3) == {"failed": "MemoryError: prompt 3"}


@pytest.mark.slow
def test_contenders_share_a_model_of_llama_3s_proportions(
    preloaded: Preloaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``cpu:0`` is no plain "cpu", so processes are shared as on a card, and the model is in bfloat16."""
    monkeypatch.setattr(sys, "executable", str(preloaded.client(tmp_path / "python")))
    few = ["--sizes", "24:12", "--k", "2", "--tokens", "3", "--inner", "1", "--repeats", "1", "--threads", "1"]
    uncertainty.main([*few, "--layers", "2", "--hidden", "256", "--llama3", "--device", "cpu:0", "--json"])
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert list(result["seconds"][0]) == ["floor", "ours, cold", "ours, warm", "library", "procedure"]
    assert result["left_out"] == {}
    assert result["parameters"] > 128_256 * 256 * 2


@pytest.mark.slow
def test_answers_in_small_sizes(program: Program, tmp_path: Path) -> None:
    """A step, then nothing again, then the page."""
    out = ["--out", str(tmp_path / "gpu.json"), "--device", "cpu", "--tiny", "--only", "lab"]
    first = program("benchmarks.gpu", *out)
    assert first.returncode == 0, first.stderr
    assert set(_steps(tmp_path / "gpu.json")["lab on cpu"]["rows"]) == {"panel", "direct"}
    assert "exit code" not in program("benchmarks.gpu", *out).stderr
    assert "| lab on cpu | 3 |" in program("benchmarks.gpu", *out, "--page").stdout
    read = gpu._do(Step("taught", 0.0, run=tmp_path / "gpu-runs" / "lab on cpu"), 0.0, tmp_path)
    assert read["rows"] == _steps(tmp_path / "gpu.json")["lab on cpu"]["rows"]
    assert "gram" in read["auroc"]
