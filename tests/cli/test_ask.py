"""`gnothi ask` with a scripted model over the laboratory's passages: one question, or many of a file."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gnothi.cli import main
from gnothi.models.wrappers import Seeded, Traced
from gnothi.runs.folder import read_rows
from gnothi.session import sources
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Capabilities, Prompt
from tests.command_line import KNOWN, Json, Run, covered_fact, script, stand_in
from tests.messages import complained
from tests.patience import PATIENCE
from tests.runs.fake_ray import FakeRay

SUBJECT, TRUE, QUESTION = covered_fact()


@pytest.mark.usefixtures("scripted")
def test_what_the_model_knows_is_not_looked_up(gnothi_json: Json) -> None:
    result = gnothi_json("ask", KNOWN)
    assert result["answer"] == "Ada Bram"
    assert result["retrievals"] == 0
    assert result["evidence"] == []
    assert [decision["verdict"] for decision in result["decisions"]] == ["trust"]
    assert result["decisions"][0].keys() >= {"kind", "score", "threshold", "verdict"}


@pytest.mark.usefixtures("scripted")
def test_what_it_does_not_know_is_looked_up(gnothi_json: Json) -> None:
    result = gnothi_json("ask", QUESTION, "--set", "max_steps=2")
    assert result["answer"] == TRUE
    assert result["retrievals"] == 1
    assert [passage["title"] for passage in result["evidence"]] == [SUBJECT]
    assert result["decisions"][0]["verdict"] == "retrieve"
    assert result["decisions"][0]["score"] > result["decisions"][0]["threshold"]
    assert result["usage"]["model_calls"] > 0
    assert "events" not in result


@pytest.mark.usefixtures("scripted")
def test_trace_adds_the_events(gnothi_json: Json) -> None:
    events = {event["event"] for event in gnothi_json("ask", QUESTION, "--trace")["events"]}
    assert events >= {"drafted", "decided", "searched", "ranked", "model_call"}


@pytest.mark.usefixtures("scripted")
def test_steps_are_plain_text_of_80_columns_when_piped(gnothi: Run) -> None:
    code, out, err = gnothi("ask", QUESTION)
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert all(len(line) <= 80 for line in out.splitlines())
    for part in ("draft", "gate", "search", "read", "write", "answers", "evidence", "cost"):
        assert f"\n    {part}" in f"\n{out}" or f" {part} " in out
    assert f"\n{TRUE}\n" in out


def two_quizzes(prompt: Prompt) -> list[str]:
    """Knows who made the film and not where she was born; text only."""
    who, where = "Who directed The Amber Gate?", "Where was Ada Bram born?"
    replies: dict[tuple[str, str], list[str]] = {
        ("decompose", "Where was the director of The Amber Gate born?"): [f"1. {who} 2. Where was #1 born?"],
        ("answer", who): ["Ada Bram"],
        ("answer", where): ["Corda"] if prompt.passages else ["Corda", "Vesk", "Lund", "Orvel"],
        ("reason", where): ["Ada Bram was born in Corda. So the answer is Corda."],
        ("reason", who): ["Ada Bram directed The Amber Gate. So the answer is Ada Bram."],
    }
    rest = {"useful": "Yes", "equivalent": "No", "reason": "So the answer is Corda."}
    return replies.get((prompt.task.name, prompt.question), [rest.get(prompt.task.name, "unknown")])


def test_keqa_on_a_model_that_gives_text_only(monkeypatch: pytest.MonkeyPatch, gnothi: Run, gnothi_json: Json) -> None:
    model = Scripted(two_quizzes, name="lab", capabilities=Capabilities())
    monkeypatch.setattr(sources, "open_model", stand_in(model))
    asked = ("ask", "Where was the director of The Amber Gate born?", "--method", "keqa", "--set", "k=2")
    result = gnothi_json(*asked, "--trace")
    assert (result["answer"], result["retrievals"]) == ("Corda", 1)
    assert result["searches"][0]["query"] == "Where was Ada Bram born?"
    assert [(decision["verdict"], decision["signal"]) for decision in result["decisions"]] == [
        ("trust", "consistency"),
        ("retrieve", "consistency"),
    ]
    tags = {event["event"] for event in result["events"]}
    assert tags >= {"decomposed", "grouped", "picked", "quiz_answered", "summarised", "model_call"}
    (picked,) = (event for event in result["events"] if event["event"] == "picked")
    assert (len(picked["kept"]), picked["dropped"]) == (2, [])
    code, out, err = gnothi(*asked)
    assert (code, err) == (0, "")
    assert all(len(line) <= 80 for line in out.splitlines())
    for part in ("quiz", "tries", "gate", "search", "pick", "solved", "notes", "because", "cost"):
        assert f" {part} " in out


def test_seakr_on_a_model_that_gives_text_only(monkeypatch: pytest.MonkeyPatch, gnothi: Run, gnothi_json: Json) -> None:
    model = Scripted(lambda prompt: script(prompt).text, name="lab", capabilities=Capabilities())
    monkeypatch.setattr(sources, "open_model", stand_in(model))
    complained(gnothi("ask", KNOWN))
    assert gnothi_json("ask", KNOWN, "--set", "signal=consistency")["answer"] == "Ada Bram"


def test_settings_choices_and_seed_reach_the_method(scripted: Scripted, gnothi_json: Json) -> None:
    arguments = ("--method", "direct", "--choice", "Ada Bram", "--choice", "Bram Dor", "--set", "max_tokens=2")
    assert gnothi_json("ask", KNOWN, *arguments)["answer"] == "Ada Bram"
    assert scripted.prompts[0].choices == ("Ada Bram", "Bram Dor")
    doubt = [gnothi_json("ask", QUESTION, "--seed", seed)["decisions"][0]["score"] for seed in ("1", "2", "1")]
    assert doubt[0] == doubt[2] != doubt[1]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("--method seaker", 2),
        ("--set treshold=1", 2),
        ("--set threshold=high", 2),
        ("--set max_steps=0", 2),
        ("--set max_steps", 2),
        ("--set rag.k=many --method rag", 2),
        ("--set model.dtyp=float32", 2),
        ("--config absent.toml", 2),
        ("--index absent", 3),
        ("--model ./absent", 3),
        ("--model ./absent --index absent", 3),
        ("--model openai:some --set signal=consistency", 2),
        ("--seed x", 2),
    ],
)
@pytest.mark.usefixtures("scripted")
def test_bad_input_is_one_clear_line(gnothi: Run, options: str, code: int) -> None:
    complained(gnothi("ask", KNOWN, *options.split()), code)


def test_a_blank_question(gnothi: Run) -> None:
    complained(gnothi("ask", " "))


@pytest.mark.usefixtures("scripted")
def test_settings_come_from_file_environment_and_command_line(
    gnothi_json: Json, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def threshold(*arguments: str) -> float:
        value: float = gnothi_json("ask", KNOWN, "--config", str(file), *arguments)["decisions"][0]["threshold"]
        return value

    file = tmp_path / "settings.toml"
    file.write_text("threshold = -1.0\n[rag]\nk = 7\n[model]\n")
    assert threshold() == -1.0
    monkeypatch.setenv("GNOTHI_THRESHOLD", "-2")
    assert threshold() == -2.0
    assert threshold("--set", "seakr.threshold=-3") == -3.0


WITH_SCRIPT = """
import sys
from gnothi.cli import main
from gnothi.session import sources
from gnothi.testing.model import Scripted
from tests.command_line import Json, script, stand_in
sources.open_model = stand_in(Scripted(script, name="lab", thresholds={"gram": -6.0}))
sys.exit(main.run(sys.argv[1:]))
"""


def on_a_terminal(*arguments: str, **more: str) -> tuple[bytes, bytes]:
    """What ``gnothi ask`` writes to standard output and standard error, each a terminal of its own."""
    root = Path(main.__file__).parents[3]
    environment = {"PYTHONPATH": f"{root / 'src'}:{root}", "COLUMNS": "80", "PATH": os.environ["PATH"], **more}
    terminals = [pty.openpty() for _ in range(2)]
    command = [sys.executable, "-c", WITH_SCRIPT, "ask", QUESTION, *arguments]
    process = subprocess.Popen(command, stdout=terminals[0][1], stderr=terminals[1][1], env=environment)
    written = [b"", b""]
    for place, (ours, theirs) in enumerate(terminals):
        os.close(theirs)
        while chunk := _read(ours):
            written[place] += chunk
        os.close(ours)
    assert process.wait(PATIENCE) == 0
    assert TRUE.encode() in written[0]
    return written[0], written[1]


def test_on_a_terminal_steps_are_coloured() -> None:
    assert b"\x1b[32m" in on_a_terminal(TERM="xterm-256color")[0]


def test_unless_told_otherwise_and_the_plan_is_told_while_the_model_loads() -> None:
    shown, told = on_a_terminal("--method", "rag", TERM="xterm-256color", NO_COLOR="1")
    assert b"\x1b[32m" not in shown
    assert told.splitlines()[0] == b"method rag, model lab, index lab"


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # Linux says EIO when the other side has closed
        return b""


SLOW_MODEL = """
import asyncio, sys
from gnothi.cli import main
from gnothi.session import sources
from gnothi.testing.model import Scripted
from tests.command_line import Json, stand_in

class Slow(Scripted):
    async def sample(self, *arguments):
        print("asked", flush=True)
        await asyncio.sleep(600)

sources.open_model = stand_in(Slow({}, default="So."))
main.main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("how", "program"),
    [
        (signal.SIGINT, SLOW_MODEL),
        (signal.SIGTERM, SLOW_MODEL),
        (signal.SIGHUP, SLOW_MODEL),
        (signal.SIGTERM, f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN){SLOW_MODEL}"),
    ],
    ids=["Ctrl-C", "SIGTERM", "SIGHUP", "SIGTERM in the background"],
)
def test_an_interrupt_ends_it_with_one_line(how: int, program: str) -> None:
    root = Path(main.__file__).parents[3]
    heard = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # the tests themselves may run under nohup
    with subprocess.Popen(
        [sys.executable, "-c", heard + program, "ask", QUESTION],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": f"{root / 'src'}:{root}"},
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.send_signal(how)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + how
    (line,) = err.strip().splitlines()
    assert line.startswith("gnothi: interrupted.")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_an_interrupt_while_python_ends_shows_nothing(how: int) -> None:
    lingering = """
import atexit, sys, time
from gnothi.cli import main
atexit.register(lambda: (print("ending", flush=True), time.sleep(600)))
main.main(["--version"])
"""
    root = Path(main.__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", lingering],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": f"{root / 'src'}:{root}"},
        text=True,
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)][1] == "ending\n"
        process.send_signal(how)
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (-how, "")


ASKED = ("Who directed The Amber Harbour?", "Who wrote The Hollow Letter?")


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    file = tmp_path / "questions.txt"
    file.write_text(f"\ufeff{ASKED[0]}\n\n  {ASKED[1]}\n", "utf-8")
    return file


@pytest.mark.usefixtures("scripted")
def test_a_line_a_question_and_an_answer(gnothi: Run, lines: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, said, err = gnothi("ask", "--file", str(lines), "--method", "rag", "--out", str(out))
    assert code == 0, err
    rows = {row.question_id: row for row in read_rows(out)}
    assert [(id, row.question) for id, row in sorted(rows.items())] == [("1", ASKED[0]), ("3", ASKED[1])]
    assert said.splitlines() == [f"{id}\t{rows[id].answer}" for id in ("1", "3")]
    assert all(row.answer and not row.gold and not row.metrics for row in rows.values())


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_what_a_model_says_does_not_steer_the_terminal(
    gnothi: Run, lines: Path, tmp_path: Path, form: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Traced(Seeded(Scripted(lambda _: Reply("Rome \x1b[31m\x9b2J \u202edesrever"), name="lab")))
    monkeypatch.setattr(sources, "open_model", lambda *_, **__: model)
    code, said, err = gnothi("ask", "--file", str(lines), "--method", "direct", *form, "--out", str(tmp_path / "run"))
    assert code == 0, err
    assert "desrever" in said
    assert not {letter for letter in said + err if not letter.isprintable()} - {"\n", "\t"}


@pytest.mark.usefixtures("scripted")
def test_it_goes_on_and_prints_all(gnothi: Run, lines: Path, tmp_path: Path) -> None:
    arguments = ("ask", "--file", str(lines), "--method", "rag", "--json", "--out", str(tmp_path / "run"))
    _, before, _ = gnothi(*arguments)
    rows = tmp_path / "run" / "rows.jsonl"
    kept = rows.read_text().splitlines()
    rows.write_text(kept[0] + "\n")
    code, after, _ = gnothi(*arguments)
    assert code == 0
    assert len(rows.read_text().splitlines()) == 2
    one, other = ([json.loads(line) for line in said.splitlines()] for said in (before, after))
    assert [row["id"] for row in other] == ["1", "3"]
    assert [row["answer"] for row in one] == [row["answer"] for row in other]
    assert {"question", "evidence", "decisions", "cost", "uncertainty"} < other[0].keys()
    assert other[0]["cost"]["retrievals"] == 1


@pytest.mark.usefixtures("scripted")
def test_records_may_lack_answers(gnothi: Run, tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text('{"id": "a", "question": "Who?"}\n{"id": "b", "question": "Where?", "answers": ["Rome"]}\n')
    code, said, err = gnothi("ask", "--file", str(file), "--method", "direct", "--out", str(tmp_path / "run"))
    assert code == 0, err
    assert [line.partition("\t")[0] for line in said.splitlines()] == ["a", "b"]
    complained(gnothi("eval", str(file), "--method", "direct", "--out", str(tmp_path / "eval")))


@pytest.mark.usefixtures("scripted")
def test_on_ray(gnothi: Run, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", ray)
    given = ("ask", "--file", str(lines), "--method", "rag", "--out")
    _, here, _ = gnothi(*given, str(tmp_path / "here"))
    code, there, err = gnothi(*given, str(tmp_path / "ray"), "--on", "ray", "--workers", "2")
    assert (code, there, len(ray.actors)) == (0, here, 2), err


def test_a_question_that_fails(gnothi: Run, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gnothi.methods.direct import Direct

    async def fails(*_: object) -> None:
        raise ValueError("no idea")

    monkeypatch.setattr(Direct, "__call__", fails)
    given = ("ask", "--file", str(lines), "--method", "direct", "--out", str(tmp_path / "run"))
    code, said, err = gnothi(*given)
    assert (code, said.splitlines()) == (1, ["1\t", "3\t"])
    assert "warning: question 3 failed: no idea" in err
    code, said, _ = gnothi(*given, "--json")
    assert (code, json.loads(said.splitlines()[0])["error"]["message"]) == (1, "no idea")


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Who? --out run",
        "Who? --on ray",
        "Who? --file FILE --out run",
        "--file FILE",
        "--file FILE --out run --choice a",
        "--file FILE --out run --trace",
        "--file nowhere.txt --out run",
        "--file EMPTY --out run",
        "--file LATIN --out run",
    ],
)
def test_mistakes(gnothi: Run, lines: Path, tmp_path: Path, given: str) -> None:
    (tmp_path / "empty").write_text("\n \n")
    (tmp_path / "latin").write_bytes(b"Who?\nO\xf9?\n")
    named = {
        "FILE": str(lines),
        "EMPTY": str(tmp_path / "empty"),
        "LATIN": str(tmp_path / "latin"),
        "run": str(tmp_path / "run"),
    }
    complained(gnothi("ask", *(named.get(one, one) for one in given.split())))
    assert not (tmp_path / "run").exists()
