"""llama.cpp's own server beside us: a GGUF file of a Llama's weights, and a server of such a file that is asked for tokens."""

from __future__ import annotations

import atexit
import json
import os
import shlex
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_BEGIN, _END, _UNKNOWN = 2, 3, 1
_LAYERS = 64
"""At most so many are named."""


def write(model: Any, out: Path) -> None:
    """A transformers Llama as a GGUF file, its matrices in float32 or bfloat16 as the model has them.

    Its words are numbers: who asks sends tokens and wants none put into words."""
    import gguf
    import torch

    made = gguf.GGUFWriter(out, "llama")
    describe(made, model.config)
    half = model.dtype == torch.bfloat16
    made.add_file_type(gguf.LlamaFileType.MOSTLY_BF16 if half else gguf.LlamaFileType.ALL_F32)
    made.add_tokenizer_model("llama")
    made.add_token_list([f"w{number}" for number in range(model.config.vocab_size)])
    made.add_token_scores([0.0] * model.config.vocab_size)
    made.add_token_types([gguf.TokenType.NORMAL] * model.config.vocab_size)
    made.add_bos_token_id(_BEGIN)
    made.add_eos_token_id(_END)
    made.add_unk_token_id(_UNKNOWN)
    bfloat16 = gguf.GGMLQuantizationType.BF16
    for name, weights in tensors(model):
        numbers = weights.detach().float().contiguous().numpy()
        if half and numbers.ndim > 1:
            made.add_tensor(name, gguf.quants.quantize(numbers, bfloat16), raw_dtype=bfloat16)
        else:
            made.add_tensor(name, numbers)
    made.write_header_to_file()
    made.write_kv_data_to_file()
    made.write_tensors_to_file()
    made.close()


def describe(made: Any, config: Any) -> None:
    """Write a Llama's sizes."""
    made.add_context_length(config.max_position_embeddings)
    made.add_embedding_length(config.hidden_size)
    made.add_block_count(config.num_hidden_layers)
    made.add_feed_forward_length(config.intermediate_size)
    made.add_head_count(config.num_attention_heads)
    made.add_head_count_kv(config.num_key_value_heads)
    made.add_layer_norm_rms_eps(config.rms_norm_eps)
    made.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    made.add_rope_freq_base(config.rope_parameters["rope_theta"])
    made.add_vocab_size(config.vocab_size)


def tensors(model: Any) -> Iterator[tuple[str, Any]]:
    """A Llama's weights by llama.cpp's names, and laid out as it reads them."""
    import gguf

    config = model.config
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, _LAYERS)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for name, weights in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        kind = name.rsplit(".", 2)[-2]
        yield names.get_name(name, (".weight",)) or name, paired(weights, heads[kind]) if kind in heads else weights


def paired(weights: Any, heads: int) -> Any:
    """Rows of a projection to heads as llama.cpp has them: the two numbers that are turned together stand side by side, where
    transformers has those of the first kind before those of the second."""
    half = weights.shape[0] // heads // 2
    return weights.reshape(heads, 2, half, -1).transpose(1, 2).reshape(weights.shape)


class Server:
    """A server of one GGUF file, with as many threads as the others, and room for ``slots`` continuations of ``context``
    tokens each."""

    def __init__(self, program: str, file: str | Path, threads: int, slots: int, context: int) -> None:
        self._folder = tempfile.TemporaryDirectory()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._address = f"http://127.0.0.1:{(port := free.getsockname()[1])}"
        command = arguments(program, file, threads, slots, context, port)
        self._log = Path(self._folder.name, "log")
        with self._log.open("w") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        atexit.register(self.close)
        try:
            self._wait()
            self.version = str(self._ask("/props")["build_info"])
        except BaseException:
            self.close()
            raise

    def _wait(self, seconds: float = 300.0) -> None:
        end = time.monotonic() + seconds
        while True:
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"llama.cpp's server does not answer: {self._log.read_text()[-300:]}")
            try:
                self._ask("/health")
            except OSError:  # it is not there yet, or says that it still loads
                time.sleep(0.1)
            else:
                return

    def complete(self, tokens: Sequence[int], new: int, sampling: Mapping[str, Any], count: int = 1) -> list[list[int]]:
        """``count`` continuations of a prompt, of ``new`` tokens each."""
        asked = {"prompt": list(tokens), "n_predict": new, "n_cmpl": count, "ignore_eos": True, "return_tokens": True}
        answer = self._ask("/completion", {**asked, "cache_prompt": True, **sampling})
        found = answer if isinstance(answer, list) else [answer]
        assert {one["tokens_evaluated"] for one in found} == {len(tokens)}
        return [one["tokens"] for one in found]

    def cpu_seconds(self) -> float:
        """Of the server, since it began. Needs Linux."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        atexit.unregister(self.close)
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()

    def _ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._address + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.loads(answer.read())


def arguments(program: str, file: str | Path, threads: int, slots: int, context: int, port: int) -> list[str]:
    """Of a server with a context for each continuation, which keeps prompts in their slots and nowhere else. Behind ``program``
    may stand flags of its own."""
    flags = {"--model": file, "--host": "127.0.0.1", "--port": port, "--threads": threads, "--threads-batch": threads}
    flags |= {"--parallel": slots, "--ctx-size": slots * context, "--cache-ram": 0}
    return [*shlex.split(program), "--no-kv-unified", "--no-warmup", *(str(part) for pair in flags.items() for part in pair)]
