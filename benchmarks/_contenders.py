"""Ways of getting a greedy answer and k samples with their states, in a process of its own, where they share one model.

``python -m benchmarks._contenders NAMES JSON`` (NAMES as a JSON list) makes the model, says so with a line of JSON, and
answers each line of its input, {"name": NAME, "do": "time" | "memory", "number": n}, with a line: what was measured, or
{"failed": why}. Only our own ways need Gnothi, so that the others run where it is not installed.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks import _llama
from benchmarks._shared import VOCABULARY, WORDS, Peak, Words, give_back, own_mb, prompt_text, real_model, small_model

TOP_K, TOP_P = 50, 0.9
DRAWN = {"samplers": ["top_k", "top_p", "temperature"], "temperature": 1.0, "top_k": TOP_K, "top_p": TOP_P}
"""The same as llama.cpp's server is told it."""
VLLM_MB = 12 * 1024
"""Beside the weights, what vLLM may take of a card for keys, values and its graphs: it takes it at once, needed or not."""


class Contender(ABC):
    """``total`` and ``static`` tokens of prompt, ``tokens`` new ones, ``k`` samples."""

    def __init__(self, model: Any, tokenizer: Any, settings: Mapping[str, Any]) -> None:
        self.model, self.tokenizer, self.settings = model, tokenizer, settings
        self.total, self.static, self.tokens, self.k = (settings[key] for key in ("total", "static", "tokens", "k"))
        self.words = Words.of(tokenizer) if settings.get("folder") else WORDS
        self.parameters = sum(weights.numel() for weights in model.parameters())

    about = ""

    def cpu_seconds(self) -> float:
        """What it has used of processors so far."""
        return time.process_time()

    def prepare(self, number: int) -> None:  # noqa: B027 - most have nothing to prepare
        """What is not timed before the prompt of that number."""

    @abstractmethod
    def run(self, number: int) -> list[int]:
        """Answer a prompt never seen before; how many tokens each continuation has."""

    def text(self, number: int, variant: int = 0) -> str:
        return prompt_text(*self.words.parts(self.total, self.static, number, variant))

    def close(self) -> None:  # noqa: B027
        """Release what it holds."""


class Library(Contender):
    """The library's ``generate``."""

    def generate(self, number: int, **options: Any) -> Any:
        ids = self.tokenizer(self.text(number), return_tensors="pt", return_token_type_ids=False).to(self.model.device)
        assert ids["input_ids"].shape[1] == self.total
        return self.model.generate(**ids, max_new_tokens=self.tokens, return_dict_in_generate=True, **options)

    def sample(self, number: int, **options: Any) -> Any:
        return self.generate(
            number, do_sample=True, temperature=1.0, top_k=TOP_K, top_p=TOP_P, output_hidden_states=True, **options
        )

    def lengths(self, out: Any) -> list[int]:
        return [out.sequences.shape[1] - self.total] * len(out.sequences)


class Floor(Library):
    about = "one greedy generation by the library"

    def run(self, number: int) -> list[int]:
        return self.lengths(self.generate(number, do_sample=False))


class Naive(Library):
    about = "the library's own: a greedy generation, then num_return_sequences=k with all hidden states"

    def run(self, number: int) -> list[int]:
        greedy = self.lengths(self.generate(number, do_sample=False))
        return greedy + self.lengths(self.sample(number, num_return_sequences=self.k))


class Procedure(Library):
    about = (
        "LM-Polygraph's EigenScore, reproduced: k generations one after another with scores and all hidden states, no greedy "
        "one, then the mean log eigenvalue of the middle states at the last position"
    )

    def run(self, number: int) -> list[int]:
        import numpy as np
        import torch

        outs = [self.sample(number, output_scores=True) for _ in range(self.k)]
        middle = len(outs[0].hidden_states[0]) // 2
        states = torch.stack([out.hidden_states[-1][middle][0, -1] for out in outs]).double().cpu().numpy()
        states -= states.mean(axis=1, keepdims=True)
        np.log(np.linalg.eigvalsh(states @ states.T + 1e-3 * np.eye(self.k))).mean()
        return [length for out in outs for length in self.lengths(out)]


class Polygraph(Contender):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        from importlib.metadata import version

        from lm_polygraph.estimators.eigenscore import EigenScore  # type: ignore[import-not-found,unused-ignore]
        from lm_polygraph.stat_calculators.sample import (  # type: ignore[import-not-found,unused-ignore]
            SamplingGenerationCalculator,
        )
        from lm_polygraph.utils.generation_parameters import (  # type: ignore[import-not-found,unused-ignore]
            GenerationParameters,
        )
        from lm_polygraph.utils.model import WhiteboxModel  # type: ignore[import-not-found,unused-ignore]

        parameters = GenerationParameters(temperature=1.0, top_k=TOP_K, top_p=TOP_P)
        self.whitebox = WhiteboxModel(self.model, self.tokenizer, model_path="made", generation_parameters=parameters)
        self.calculate, self.estimate = SamplingGenerationCalculator(self.k), EigenScore()
        self.about = (
            f"LM-Polygraph {version('lm-polygraph')} itself: its sampling calculator and EigenScore estimator, no greedy answer"
        )

    def run(self, number: int) -> list[int]:
        statistics = self.calculate({}, [self.text(number)], self.whitebox, self.tokens)
        self.estimate(statistics)
        return [len(tokens) for tokens in statistics["sample_tokens"][0]]


class VLLM(Contender):
    """Greedy and n = k samples by vLLM of the same model, saved to a folder. Without states, which it does not give."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        from vllm import LLM, SamplingParams  # type: ignore[import-not-found,unused-ignore]
        from vllm import __version__ as version

        self._folder = tempfile.TemporaryDirectory()
        self.model.save_pretrained(self._folder.name)
        self.tokenizer.save_pretrained(self._folder.name)
        device, dtype = self.model.device, str(self.model.dtype).removeprefix("torch.")
        self.model.to("meta")  # vLLM has its own copy
        gc.collect()
        # By itself it wants nearly all memory, on a CPU too; there its threads would keep one core for others.
        share = _share(self.parameters * 2, device) if device.type == "cuda" else 0.25
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
        self.llm = LLM(
            self._folder.name, dtype=dtype, max_model_len=8192, enable_prefix_caching=False, gpu_memory_utilization=share
        )
        self.sampling = SamplingParams
        self.about = f"vLLM {version}: greedy, then n = k samples; without the states, which it does not give"

    def run(self, number: int) -> list[int]:
        greedy = self.sampling(temperature=0.0, max_tokens=self.tokens)
        drawn = self.sampling(n=self.k, temperature=1.0, top_k=TOP_K, top_p=TOP_P, max_tokens=self.tokens)
        outs = self.llm.generate([self.text(number)] * 2, [greedy, drawn], use_tqdm=False)
        return [len(one.token_ids) for out in outs for one in out.outputs]


_PAGE = 32
"""Tokens of a page of its cache: whole pages of the prompt are shared."""


class Batch(Contender):
    """The library's ``generate_batch``. Its requests are sampled alike, so the answer is one sample more."""

    about = "the library's generate_batch: k + 1 samples of a prompt read once, no greedy one; without states"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        from transformers import ContinuousBatchingConfig, GenerationConfig

        self.configured: Any = ContinuousBatchingConfig
        make: Any = GenerationConfig
        sampling = {"do_sample": True, "temperature": 1.0, "top_k": TOP_K, "top_p": TOP_P, "num_return_sequences": self.k + 1}
        self.size = 0, 0
        # An end token of -1 is none.
        self.sampling = make(eos_token_id=-1, pad_token_id=self.tokenizer.pad_token_id, **sampling)

    def run(self, number: int) -> list[int]:
        ids = self.tokenizer(self.text(number))["input_ids"]
        assert len(ids) == self.total
        if (self.total, self.tokens) != self.size:
            self.close()
            self.size = self.total, self.tokens
        self.sampling.max_new_tokens = self.tokens
        # By default it takes more than half of the memory.
        blocks = (self.k + 1) * (-(-(self.total + self.tokens) // _PAGE) + 1)
        limits = self.configured(page_size=_PAGE, num_blocks=blocks, max_batch_tokens=max(self.total, 256))
        more = {"continuous_batching_config": limits, "persistent_manager": True}
        outs = self.model.generate_batch([ids], generation_config=self.sampling, **more)
        return [len(out.generated_tokens) for out in outs.values()]

    def close(self) -> None:
        self.model.destroy_cached_continuous_batching_manager()


_SERVERS: list[_llama.Server] = []
"""The one that llama.cpp's contenders share."""


class LlamaServer(Contender):
    """A server of llama.cpp with the same weights: the GGUF file that the model was read from, or one written of the model."""

    way = "greedy and n = k samples asked for at once"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        file = self.settings.get("gguf")
        if not _SERVERS:
            with tempfile.TemporaryDirectory() as folder:
                written = Path(folder, "model.gguf")
                if not file:
                    _llama.write(self.model, written)
                sizes = self.settings["threads"], self.k + 1, self.total + self.tokens + 64
                _SERVERS.append(_llama.Server(self.settings["llama"], file or written, *sizes))
        (self.server,) = _SERVERS
        what = Path(file).name if file else f"the same weights in {str(self.model.dtype).removeprefix('torch.')}"
        self.about = f"llama.cpp's server {self.server.version} with {what}: {self.way}; without states, which it does not give"

    def cpu_seconds(self) -> float:
        return super().cpu_seconds() + self.server.cpu_seconds()

    def run(self, number: int) -> list[int]:
        return self._measure(number, 0)

    def _measure(self, number: int, variant: int) -> list[int]:
        ids = self.tokenizer(self.text(number, variant))["input_ids"]
        assert len(ids) == self.total
        with ThreadPoolExecutor(1) as other:
            greedy = other.submit(self.server.complete, ids, self.tokens, {"samplers": ["top_k"], "top_k": 1})
            drawn = self.server.complete(ids, self.tokens, DRAWN, self.k)
        return [len(tokens) for tokens in (*greedy.result(), *drawn)]

    def close(self) -> None:
        self.server.close()


class LlamaServerWarm(LlamaServer):
    way = "the same, after another prompt with the same static part was answered"

    def prepare(self, number: int) -> None:
        self._measure(number, 1)


class LlamaServerAlike(LlamaServer):
    way = "n = k + 1 samples of a prompt read once, no greedy one"

    def _measure(self, number: int, variant: int) -> list[int]:
        ids = self.tokenizer(self.text(number, variant))["input_ids"]
        return [len(tokens) for tokens in self.server.complete(ids, self.tokens, DRAWN, self.k + 1)]


class Ours(Contender):
    """Greedy and samples asked for at once through the model protocol, and U of the states, as SeaKR does."""

    about = "Gnothi: greedy and k samples with their states at once, U of the states; nothing of the prompt was read before"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        from gnothi.models.batched import Batched
        from gnothi.models.engine.packed import pack
        from gnothi.models.rendering import Plain
        from gnothi.models.transformers import TransformersBackend
        from gnothi.models.wrappers import Seeded, Traced

        def open_backend() -> TransformersBackend:
            # As `load_model` does.
            pack(self.model)
            return TransformersBackend(self.model, self.tokenizer, Plain(), name="made")

        batched = Batched.opened(open_backend, "made")
        self.speaker = Traced(Seeded(batched))
        self.runner = asyncio.Runner()

    def run(self, number: int) -> list[int]:
        return self.runner.run(self._measure(number, 0))

    def close(self) -> None:
        self.runner.run(self.speaker.aclose())
        self.runner.close()

    async def _measure(self, number: int, variant: int) -> list[int]:
        from gnothi.concurrency import both
        from gnothi.signals.kinds.gram import gram_uncertainty
        from gnothi.types import Decoding, Prompt, StateSpec, Task

        instruction, question = self.words.parts(self.total, self.static, number, variant)
        prompt = Prompt(Task("answer", instruction), question)
        drawn = Decoding(self.tokens, 1.0, TOP_K, TOP_P)
        greedy, samples = await both(
            self.speaker.generate(prompt, Decoding(self.tokens)), self.speaker.sample(prompt, self.k, drawn, [StateSpec()])
        )
        assert greedy.prompt_tokens == self.total
        gram_uncertainty(samples.states[0])
        return [one.generated_tokens for one in (greedy, *samples.generations)]


class OursWarm(Ours):
    about = "the same, after another prompt with the same static part was answered"

    def prepare(self, number: int) -> None:
        self.runner.run(self._measure(number, 1))


CONTENDERS: dict[str, type[Contender]] = {
    "floor": Floor,
    "ours, cold": Ours,
    "ours, warm": OursWarm,
    "library": Naive,
    "polygraph": Polygraph,
    "procedure": Procedure,
    "generate_batch": Batch,
    "llama.cpp": LlamaServer,
    "llama.cpp, warm": LlamaServerWarm,
    "llama.cpp, alike": LlamaServerAlike,
    "vllm": VLLM,
}


def _share(weights: int, device: Any) -> float:
    """Of the card's memory, for weights of so many bytes; what torch holds and does not use is given back before."""
    import torch

    torch.cuda.empty_cache()
    return min(0.9, (weights + VLLM_MB * 2**20) / torch.cuda.get_device_properties(device).total_memory)


def make(names: Sequence[str], settings: dict[str, Any]) -> dict[str, Contender]:
    import torch

    torch.set_num_threads(settings["threads"])
    # As `load_model` does: what the engine's thread computes with is made there.
    with ThreadPoolExecutor(1) as other:
        model, tokenizer = other.submit(_model, settings).result()
    return {name: CONTENDERS[name](model, tokenizer, settings) for name in names}


def _model(settings: Mapping[str, Any]) -> tuple[Any, Any]:
    if folder := settings.get("folder"):
        return real_model(folder, settings["precision"])
    shape = {key: settings[key] for key in ("layers", "hidden", "device", "llama3") if key in settings}
    model, tokenizer = small_model(**shape)
    return (model.bfloat16() if settings.get("precision") == "bfloat16" else model), tokenizer


def measure(contender: Contender, number: int) -> dict[str, Any]:
    """Seconds of the wall and of the processors."""
    contender.prepare(number)
    _wait(contender)
    began, cpu = time.perf_counter(), contender.cpu_seconds()
    lengths = contender.run(number)
    _wait(contender)
    return {"seconds": time.perf_counter() - began, "cpu_seconds": contender.cpu_seconds() - cpu, "lengths": lengths}


def measure_memory(contender: Contender, number: int) -> dict[str, Any]:
    """Peak above what is held with the model loaded and used once on a few tokens; what is kept of prompts counts."""
    device = contender.model.device
    if device.type == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats(device)
        base = torch.cuda.memory_allocated(device) / 2**20
        lengths = _first(contender, number)
        return {"extra_mb": torch.cuda.max_memory_allocated(device) / 2**20 - base, "base_mb": base, "lengths": lengths}
    give_back()
    base = own_mb()
    with Peak() as peak:
        lengths = _first(contender, number)
    return {"extra_mb": peak.mb - base, "base_mb": base, "lengths": lengths}


def _first(contender: Contender, number: int) -> list[int]:
    contender.prepare(number)
    return contender.run(number)


def _wait(contender: Contender) -> None:
    if contender.model.device.type == "cuda":
        import torch

        torch.cuda.synchronize()


def main(names: Sequence[str], settings: dict[str, Any]) -> None:
    # Whatever a library prints must not stand between the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    contenders = make(names, settings)
    for contender in contenders.values():
        full = contender.total, contender.static, contender.tokens
        contender.total, contender.static, contender.tokens = 16, 8, 2
        contender.run(VOCABULARY)
        contender.total, contender.static, contender.tokens = full
    about = {name: contender.about for name, contender in contenders.items()}
    parameters = contenders[names[0]].parameters
    answers.write(json.dumps({"about": about, "parameters": parameters}) + "\n")
    for line in sys.stdin:
        order = json.loads(line)
        work = {"time": measure, "memory": measure_memory}[order["do"]]
        answers.write(json.dumps(_tried(work, contenders[order["name"]], order["number"])) + "\n")
    for contender in contenders.values():
        contender.close()


def _tried(work: Callable[[Contender, int], dict[str, Any]], contender: Contender, number: int) -> dict[str, Any]:
    """Out of memory, say: the others in this process go on."""
    try:
        return work(contender, number)
    except Exception as error:  # noqa: BLE001 - libraries raise what they like
        failed = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    gc.collect()
    if contender.model.device.type == "cuda":
        import torch

        torch.cuda.empty_cache()
    return {"failed": failed}


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), json.loads(sys.argv[2]))
