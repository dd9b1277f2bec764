"""GRPO by TRL with SKILL-RAG's advantages and its own validation (section 4.2).

TRL has no place for another advantage. So the rewards are kept as they are computed, and the advantages are overwritten before
the loss sees them; ``tests/training/self_knowledge/test_grpo.py`` checks that this reaches the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from trl.models.utils import disable_gradient_checkpointing
from trl.trainer.grpo_trainer import GRPOTrainer

from gnothi.training.finetuning import Validating
from gnothi.training.self_knowledge.policy import Prompts
from gnothi.training.self_knowledge.reward import AdvantageRule


class SkillTrainer(Validating, GRPOTrainer):
    """``validate``: from the model to the figures of ``policy.assess``."""

    model: Any

    def __init__(
        self,
        *args: Any,
        rule: AdvantageRule,
        prompts: Prompts,
        validate: Callable[[Any], Mapping[str, float | None]],
        **kwargs: Any,
    ) -> None:
        self._rule, self._prompts, self.validate = rule, prompts, validate
        super().__init__(*args, **kwargs)

    def _tokenize_prompts(self, prompts: list[str]) -> tuple[list[list[int]], None, dict[str, Any]]:
        return self._prompts.encode(prompts), None, {}  # special tokens as the renderer wants them

    def _calculate_rewards(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        rewards: torch.Tensor = super()._calculate_rewards(*args, **kwargs)
        self._rewards = rewards  # of all processes
        return rewards

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        out: dict[str, Any] = super()._generate_and_score_completions(inputs)
        group = int(self.num_generations or 1)
        rewards = self._rewards[:, 0]
        entropies = None
        if self._rule.needs_entropies:
            own = self._entropies(out)
            entropies = self.accelerator.gather(own).double().view(-1, group).cpu().numpy()
        advantages = self._rule(rewards.double().view(-1, group).cpu().numpy(), entropies)
        rank, size = self.accelerator.process_index, len(inputs)
        own_part = torch.from_numpy(advantages.reshape(-1)[rank * size : (rank + 1) * size])
        out["advantages"] = own_part.to(out["advantages"])
        return out

    def _entropies(self, out: Mapping[str, Any]) -> torch.Tensor:
        """Mean token entropy (nats) of each reply under the policy that sampled it, shape (replies,)."""
        mask: torch.Tensor = out["completion_mask"]
        checkpointing: Any = self.args.gradient_checkpointing_kwargs
        with torch.no_grad(), disable_gradient_checkpointing(self.model, checkpointing):
            _, entropies, _ = self._get_per_token_logps_and_entropies(
                self.model,
                torch.cat([out["prompt_ids"], out["completion_ids"]], dim=1),
                torch.cat([out["prompt_mask"], mask], dim=1),
                out["completion_ids"].shape[1],
                batch_size=self.args.per_device_train_batch_size,
                compute_entropy=True,
            )
        if entropies is None:
            raise RuntimeError("TRL gave no entropies")
        return torch.as_tensor((entropies * mask).sum(1) / mask.sum(1).clamp(min=1))
