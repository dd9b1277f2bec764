"""The advantages that reach TRL's loss are ours. If this fails after an update of TRL, its trainer's insides have moved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("trl")

from gnothi.models import LAB_FOLDER
from gnothi.models.rendering import Tagged
from gnothi.training.self_knowledge.reward import AdvantageRule

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::FutureWarning")]


@pytest.mark.parametrize("rule", [AdvantageRule(0.5, "none"), AdvantageRule(0.25, "symmetric", 0.7)])
def test_the_loss_sees_our_advantages(tmp_path: Path, rule: AdvantageRule) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl.trainer.grpo_config import GRPOConfig

    from datasets import Dataset
    from gnothi.training.self_knowledge.grpo import SkillTrainer
    from gnothi.training.self_knowledge.policy import Prompts

    tokenizer = AutoTokenizer.from_pretrained(LAB_FOLDER)
    model: Any = AutoModelForCausalLM.from_pretrained(LAB_FOLDER)
    given: list[float] = []
    seen: list[dict[str, Any]] = []

    def lengths(completions: list[str], **_: Any) -> list[float]:
        given[:] = [len(text) % 5 - 2.0 for text in completions]
        return given

    class Watched(SkillTrainer):
        def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
            seen.append(inputs)
            parent: Any = super()
            return parent._compute_loss(model, inputs)

        def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
            out = super()._generate_and_score_completions(inputs)
            seen.append(dict(out))
            return out

    trainer = Watched(
        model=model,
        reward_funcs=[lengths],
        args=GRPOConfig(
            output_dir=str(tmp_path), max_steps=1, per_device_train_batch_size=12, num_generations=4, max_completion_length=8,
            use_cpu=True, bf16=False, gradient_checkpointing=False, report_to="none", disable_tqdm=True, loss_type="grpo",
            shuffle_dataset=False, temperature=1.5,
        ),
        train_dataset=Dataset.from_dict({"prompt": [f"<question> Who leads {name}? <know>" for name in "abc"]}),
        processing_class=tokenizer,
        rule=rule,
        prompts=Prompts(tokenizer, Tagged()),
        validate=lambda _: {},
    )  # fmt: skip
    trainer.train()
    made, reached = seen
    untrained: Any = AutoModelForCausalLM.from_pretrained(LAB_FOLDER)
    ids = torch.cat([made["prompt_ids"], made["completion_ids"]], dim=1)
    mask = torch.cat([made["prompt_mask"], made["completion_mask"]], dim=1)
    with torch.no_grad():
        logits = untrained(input_ids=ids, attention_mask=mask).logits[:, made["prompt_ids"].shape[1] - 1 : -1] / 1.5
    said: Any = torch.distributions.Categorical(logits=logits)
    entropy = said.entropy()
    counted = made["completion_mask"]
    means = (entropy * counted).sum(1) / counted.sum(1)
    expected = rule(np.reshape(given, (3, 4)), means.numpy().reshape(3, 4)).reshape(-1)
    assert np.abs(expected).max() > 0.05
    assert made["advantages"].numpy() == pytest.approx(expected, abs=1e-4)
    # TRL shuffles the replies of a step before the loss.
    assert sorted(reached["advantages"].tolist()) == pytest.approx(sorted(expected), abs=1e-4)
