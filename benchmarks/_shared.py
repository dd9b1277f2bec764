"""What the benchmarks share: interleaved rounds, ratios with spread, fitted exponents, memory, a model, output.

Nothing heavy is imported before it is needed, and nothing of Gnothi by what a contender without it uses.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import json
import math
import os
import platform
import statistics
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
Rounds = list[dict[str, float]]
"""One entry per round: contender → what it cost."""


# --- output ----------------------------------------------------------------------------------------------------------


def arguments(doc: str | None, repeats: int, threads: int | None = 2) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=repeats, help="rounds, each with every contender [%(default)s]")
    if threads is not None:
        parser.add_argument("--threads", type=int, default=threads, help="threads of a tensor operation [%(default)s]")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def numbers(text: str) -> list[int]:
    """``1,8,64`` for argparse."""
    return [int(part) for part in text.split(",") if part.strip()]


def say(text: str) -> None:
    """Progress, beside the result."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def publish(document: Mapping[str, Any], lines: Iterable[str], as_json: bool) -> None:
    sys.stdout.write((json.dumps(document, indent=1) if as_json else "\n".join(lines)) + "\n")


def leave_out_of_collection() -> None:
    """Have Python's collector of garbage leave alone what was made so far. A pass over the objects of libraries takes a quarter
    of a second, which one contender would pay for all."""
    gc.collect()
    gc.freeze()


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in (header, ["---"] * len(header), *rows)]


def machine() -> dict[str, Any]:
    """What a figure depends on beside the code."""
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, Any] = {"python": platform.python_version(), "cores": os.cpu_count()}
    for package in ("torch", "transformers", "tantivy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


# --- arithmetic ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle of repeated measurements, the least and the greatest of them, and how many there were."""

    median: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{rounded(self.median)} ({rounded(self.low)} - {rounded(self.high)})"


def rounded(value: float) -> str:
    """Three digits that count."""
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.3f}"


def spread(values: Iterable[float]) -> Spread:
    found = list(values)
    return Spread(statistics.median(found), min(found), max(found), len(found))


def ratios(rounds: Rounds, of: str, to: str) -> Spread:
    """``of`` as a multiple of ``to``, one ratio a round: what slows a whole round cancels out."""
    return spread(one[of] / one[to] for one in rounds)


def interleave(names: Sequence[str], measure: Callable[[str, int], float], repeats: int) -> Rounds:
    """``repeats`` rounds of all contenders, each round begun by another one, so that drift and neighbours hit all alike."""
    rounds: Rounds = []
    for number in range(repeats):
        first = number % len(names)
        one = {name: measure(name, number) for name in (*names[first:], *names[:first])}
        rounds.append({name: one[name] for name in names})
        say(f"  round {number + 1} of {repeats}: " + ", ".join(f"{name} {rounded(cost)}" for name, cost in rounds[-1].items()))
    return rounds


@dataclass(frozen=True, slots=True)
class Fit:
    """cost ~ size ** ``exponent`` over all sizes with its 95% interval, and between the two largest sizes alone."""

    exponent: float
    low: float
    high: float
    last: float

    def __str__(self) -> str:
        return f"{self.exponent:.2f} [{self.low:.2f}, {self.high:.2f}], between the two largest {self.last:.2f}"


def fit(sizes: Sequence[float], costs: Sequence[Sequence[float]]) -> Fit:
    """Least squares on logarithms of every measurement; ``costs[i]`` are those of ``sizes[i]``, at least two sizes.

    The interval is Student's. It covers noise and curvature alike: a cost a + b n is a power of n only in the limit.
    """
    import numpy as np

    x = np.log(np.repeat(np.asarray(sizes, float), [len(row) for row in costs]))
    line = slope(x.tolist(), np.log(np.concatenate([np.asarray(row, float) for row in costs])).tolist())
    ordered = sorted(zip(sizes, (statistics.median(row) for row in costs), strict=True))
    (size_a, cost_a), (size_b, cost_b) = ordered[-2:]
    return Fit(line.median, line.low, line.high, math.log(cost_b / cost_a) / math.log(size_b / size_a))


def slope(x: Sequence[float], y: Sequence[float]) -> Spread:
    """Least-squares slope of y over x with its 95% interval (Student's), infinite for two points, as a Spread."""
    from scipy import stats

    line = stats.linregress(x, y)
    error = float(line.stderr) if math.isfinite(line.stderr) else 0.0  # not a number where all y are equal
    half = float(stats.t.ppf(0.975, len(x) - 2)) * error if len(x) > 2 else math.inf
    return Spread(float(line.slope), float(line.slope) - half, float(line.slope) + half, len(x))


def as_json(value: Any) -> Any:
    """Dataclasses inside mappings and sequences as plain data; numbers with six digits, None for what is not finite."""
    if isinstance(value, Spread | Fit):
        return as_json(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): as_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


# --- memory ----------------------------------------------------------------------------------------------------------


def own_mb() -> float:
    """Resident memory of this process that is its own. Mapped files (the code of libraries) count as resident too, but come and
    go as the system pleases. Needs Linux."""
    return int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0]) / 1024


def give_back() -> None:
    """Freed memory goes back to the system."""
    gc.collect()
    with contextlib.suppress(AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


class Peak(threading.Thread):
    """The most memory of its own that this process had while the block ran, looked at every few milliseconds."""

    def __init__(self, pause: float = 0.002) -> None:
        super().__init__(daemon=True)
        self._pause, self._over = pause, threading.Event()
        self.mb = own_mb()

    def run(self) -> None:
        while not self._over.wait(self._pause):
            self.mb = max(self.mb, own_mb())

    def __enter__(self) -> Peak:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


# Every tensor of some size is allocated alone and given back when it is freed, so that what is resident is what is in use and
# not what an allocator keeps for later. Slow: for measuring memory, not time.
EXACT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}


# --- a model made on the spot ------------------------------------------------------------------------------------------

VOCABULARY = 4_096
_SPECIAL = ("<pad>", "<unk>", "<bos>", "<eos>", "Question:", "Answer:")


def small_model(layers: int = 8, hidden: int = 512, device: str = "cpu", llama3: bool = False) -> tuple[Any, Any]:
    """A random Llama (31.5 M parameters at 8 x 512) and its tokenizer of whole words. It never says its end token: that
    token's logit is 0 always, and thousands of others lie above. On a GPU it is made there, in bfloat16. ``llama3``: with
    Llama 3's proportions and as many words (8.03 B parameters at 32 x 4096)."""
    import torch
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from tokenizers.processors import TemplateProcessing
    from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

    auto: Any = AutoModelForCausalLM

    vocabulary = 128_256 if llama3 else VOCABULARY
    heads = max(1, hidden // (128 if llama3 else 64))
    words = (*_SPECIAL, *(f"w{number}" for number in range(vocabulary - len(_SPECIAL))))
    bare = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    bare.pre_tokenizer = WhitespaceSplit()
    bare.add_special_tokens(["<pad>", "<unk>", "<bos>", "<eos>"])
    bare.post_processor = TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 2)])
    make: Any = PreTrainedTokenizerFast
    tokenizer = make(tokenizer_object=bare, pad_token="<pad>", unk_token="<unk>", bos_token="<bos>", eos_token="<eos>")
    torch.manual_seed(7)
    config: Any = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=hidden * 7 // 2 if llama3 else hidden * 43 // 16,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=max(1, heads // 4) if llama3 else heads,
        max_position_embeddings=8192,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
    )
    with torch.device(device):
        model: Any = auto.from_config(config, dtype=torch.float32 if device == "cpu" else torch.bfloat16)
    with torch.no_grad():
        # As spread as a trained model's probabilities, at every width.
        model.lm_head.weight *= 5 * (512 / hidden) ** 0.5
        model.lm_head.weight[3] = 0
    return model.eval(), tokenizer


def real_model(folder: str, precision: str) -> tuple[Any, Any]:
    """From a folder, and its tokenizer. Its end token is another special one, which it hardly says, so that continuations are
    as long as is asked for."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    auto: Any = AutoModelForCausalLM
    model, tokenizer = auto.from_pretrained(folder, dtype=precision), AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    added: Mapping[str, int] = tokenizer.get_added_vocab()
    tokenizer.eos_token = max(added, key=added.__getitem__)
    model.config.eos_token_id = model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model.eval(), tokenizer


@dataclass(frozen=True)
class Words:
    """Those of which prompts are made, each one token; ``before`` and ``after`` are how many tokens more stand before the
    question and behind it."""

    known: Sequence[str]
    before: int
    after: int

    @classmethod
    def of(cls, tokenizer: Any) -> Words:
        """Of a real model's tokenizer: small letters that are one token with a space before them and without."""
        ids: Mapping[str, int] = tokenizer.get_vocab()
        known = sorted(word for word in ids if word.isascii() and word.isalpha() and word.islower() and len(word) > 2)
        known = [word for word in known if len(tokenizer(f" {word} {word}", add_special_tokens=False)["input_ids"]) == 2]
        first, whole = known[0], len(tokenizer(prompt_text(known[0], known[0]))["input_ids"])
        before = len(tokenizer(f"{first}\n\nQuestion:")["input_ids"]) - 1
        return cls(known, before, whole - before - 2)

    def parts(self, total: int, static: int, static_seed: int, seed: int) -> tuple[str, str]:
        """Instruction and question of a prompt of ``total`` tokens, the first ``static`` of which depend on ``static_seed``
        alone."""
        import numpy as np

        def words(count: int, *key: int) -> str:
            return " ".join(self.known[number] for number in np.random.default_rng(key).integers(0, len(self.known), count))

        return words(static - self.before, 1, static_seed), words(total - static - self.after, 2, static_seed, seed)


WORDS = Words([f"w{number}" for number in range(VOCABULARY - len(_SPECIAL))], before=2, after=1)
"""Of the model made on the spot: a beginning token and ``Question:``, and ``Answer:``."""


def prompt_text(instruction: str, question: str) -> str:
    """The prompt as the plain renderer writes it."""
    return f"{instruction}\n\nQuestion: {question}\nAnswer:"
