"""llama.cpp's server as a contender: the file it is given, how it is started and asked, and the whole beside the library."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import _llama, uncertainty
from benchmarks._shared import Words, prompt_text, small_model
from tests.messages import refused

LOCAL = "needs the extra 'local'"
PROGRAM = """#!{python}
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

flags = dict(zip(sys.argv[:-1], sys.argv[1:]))
tries = []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        tries.append(self.path)
        self.answer(503 if len(tries) == 1 else 200, {{"build_info": "b7", "status": "ok"}})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        one = {{"tokens": asked["prompt"][:1] * asked["n_predict"], "tokens_evaluated": len(asked["prompt"])}}
        self.answer(200, one if asked["n_cmpl"] == 1 else [one] * asked["n_cmpl"])

    def answer(self, code, body):
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_):
        pass


HTTPServer((flags["--host"], int(flags["--port"])), Handler).serve_forever()
"""


def program(place: Path, text: str) -> str:
    place.write_text(text.format(python=sys.executable))
    place.chmod(0o755)
    return str(place)


def test_rows_that_are_turned_together_stand_side_by_side() -> None:
    torch = pytest.importorskip("torch", reason=LOCAL)

    rows = torch.arange(8)[:, None]
    assert _llama.paired(rows, 2).flatten().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert _llama.paired(rows, 1).flatten().tolist() == [0, 4, 1, 5, 2, 6, 3, 7]


@pytest.mark.parametrize("half", [False, True])
def test_a_file_holds_a_models_weights(half: bool, tmp_path: Path) -> None:
    torch, gguf = (pytest.importorskip(name, reason=LOCAL) for name in ("torch", "gguf"))

    model, _ = small_model(2, 128)
    model = model.bfloat16() if half else model
    _llama.write(model, tmp_path / "model.gguf")
    reader: Any = gguf.GGUFReader(tmp_path / "model.gguf")
    found = {one.name: one for one in reader.tensors}
    assert len(found) == len(model.state_dict())
    for name, weights in (
        ("token_embd.weight", model.model.embed_tokens.weight),
        ("blk.1.ffn_down.weight", model.model.layers[1].mlp.down_proj.weight),
        ("blk.1.attn_norm.weight", model.model.layers[1].input_layernorm.weight),
        ("blk.0.attn_k.weight", _llama.paired(model.model.layers[0].self_attn.k_proj.weight, 2)),
    ):
        numbers = gguf.quants.dequantize(found[name].data, found[name].tensor_type)
        assert torch.equal(torch.from_numpy(numbers.copy()), weights.detach().float())
    assert found["output.weight"].tensor_type.name == ("BF16" if half else "F32")
    assert found["output_norm.weight"].tensor_type.name == "F32"
    assert reader.fields["llama.attention.head_count"].contents() == 2


def test_a_server_has_room_for_each_continuation() -> None:
    flags = _llama.arguments("llama-server --no-repack", "model.gguf", 2, 21, 304, 8080)
    assert flags[:2] == ["llama-server", "--no-repack"]
    assert flags[flags.index("--parallel") + 1] == "21"
    assert flags[flags.index("--ctx-size") + 1] == "6384"
    assert flags[flags.index("--threads-batch") + 1] == "2"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_server_is_waited_for_and_asked(tmp_path: Path) -> None:
    server = _llama.Server(program(tmp_path / "server", PROGRAM), "model.gguf", 1, 3, 9)
    try:
        assert server.version == "b7"
        assert server.complete([5, 6], 3, {"top_k": 1}) == [[5, 5, 5]]
        assert server.complete([5, 6], 1, {}, 2) == [[5], [5]]
        assert server.cpu_seconds() >= 0
    finally:
        server.close()


def test_a_server_that_ends_says_why(tmp_path: Path) -> None:
    ends = program(tmp_path / "server", "#!{python}\nimport sys\nsys.exit('no such file')\n")
    with refused(RuntimeError):
        _llama.Server(ends, "model.gguf", 1, 3, 9)


def test_prompts_of_a_real_models_words_have_so_many_tokens() -> None:
    pytest.importorskip("transformers", reason=LOCAL)
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from transformers import PreTrainedTokenizerFast

    names = ("<unk>", "Question:", "Answer:", "salt", "river", "of", "stone", "Tarn")
    bare = Tokenizer(WordLevel({name: number for number, name in enumerate(names)}, unk_token="<unk>"))
    bare.pre_tokenizer = WhitespaceSplit()
    make: Any = PreTrainedTokenizerFast
    tokenizer = make(tokenizer_object=bare, unk_token="<unk>")
    words = Words.of(tokenizer)
    assert (words.known, words.before, words.after) == (["river", "salt", "stone"], 1, 1)
    ids = tokenizer(prompt_text(*words.parts(20, 12, 3, 4)))["input_ids"]
    assert len(ids) == 20
    assert ids[11] == 1
    assert ids[:11] == tokenizer(prompt_text(*words.parts(20, 12, 3, 5)))["input_ids"][:11]


def test_ours_are_held_against_llama_cpp_in_the_same_state() -> None:
    one = {"floor": 1.0, "ours, cold": 1.4, "ours, warm": 1.0, "llama.cpp": 2.0, "llama.cpp, warm": 1.2}
    one["llama.cpp, alike"] = 1.8
    targets = uncertainty.compare([one], [one], {}, 200)["targets_met"]
    shares = {name: met for name, met in targets.items() if "llama" in name}
    assert shares == {
        "ours, cold: at most 0.8 of the time of llama.cpp": True,
        "ours, warm: at most 0.8 of the time of llama.cpp, warm": False,
        "ours, cold: at most 0.8 of the time of llama.cpp, alike": True,
    }


@pytest.mark.llama
@pytest.mark.skipif("LLAMA_SERVER" not in os.environ, reason="no llama-server is named in LLAMA_SERVER: run `make test-llama`")
def test_the_server_says_what_the_library_says(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason=LOCAL)

    model, tokenizer = small_model(2, 128)
    _llama.write(model, tmp_path / "model.gguf")
    (row,) = ids = tokenizer(["w5 w6 w7 w8"], return_token_type_ids=False, return_tensors="pt")["input_ids"]
    (whole,) = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False).tolist()
    server = _llama.Server(os.environ["LLAMA_SERVER"], tmp_path / "model.gguf", 1, 4, 64)
    try:
        assert server.complete(row.tolist(), 8, {"samplers": ["top_k"], "top_k": 1}) == [whole[len(row) :]]
        drawn = server.complete(row.tolist(), 8, {"samplers": ["temperature"], "temperature": 1.0}, 3)
        assert [len(tokens) for tokens in drawn] == [8] * 3
        assert len({*map(tuple, drawn)}) == 3
    finally:
        server.close()
