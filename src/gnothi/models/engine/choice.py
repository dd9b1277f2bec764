"""Choosing tokens from logits that may lie on an accelerator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnothi.models import sampling


class Choice(NamedTuple):
    """Per sample: the token, its log-probability at temperature 1 without cuts, and the logsumexp of the raw logits."""

    ids: NDArray[np.int64]
    logprobs: NDArray[np.float64]
    logsumexps: NDArray[np.float64]


def choose(
    logits: Tensor,
    branch: NDArray[np.int64],
    temperature: NDArray[np.float64],
    top_k: NDArray[np.int64],
    top_p: NDArray[np.float64],
    uniform: NDArray[np.float64],
) -> Choice:
    """One token for each sample; sample i stands on row ``branch[i]`` of the logits (branches, vocabulary).

    What samples of one branch have in common, the search through the vocabulary, is done once.
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if logits.device.type != "cpu":
        return _on_device(logits, branch, temperature, top_k, top_p, uniform)
    # NumPy's vectorised partition and argmax are several times faster than torch's on a CPU.
    values = logits.numpy()
    sums = sampling.logsumexp(values)
    broken = ~np.isfinite(sums)
    if broken.any():
        # Their log-probabilities come out as not-a-number, which the engine reports; the draw must survive until then.
        values = np.where(broken[:, None], values.dtype.type(0), values)
    ids = np.empty(len(branch), np.int64)
    greedy = temperature == 0
    if greedy.any():
        ids[greedy] = values.argmax(axis=1)[branch[greedy]]
    drawn = np.flatnonzero(~greedy)
    if len(drawn):
        first, source = _distributions(branch[drawn], temperature[drawn], top_k[drawn], top_p[drawn])
        one = drawn[first]
        chosen = values if len(one) == len(values) and bool((branch[one] == np.arange(len(one))).all()) else values[branch[one]]
        ids[drawn] = sampling.draw(chosen, temperature[one], top_k[one], top_p[one], uniform[drawn], source)
    return Choice(ids, values[branch, ids] - sums[branch], sums[branch])


def _distributions(
    branch: NDArray[np.int64], temperature: NDArray[np.float64], top_k: NDArray[np.int64], top_p: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Samples that draw from the same distribution: one of each, and which of these each sample draws from."""
    key = branch
    if len(branch) and any(len(np.unique(one)) > 1 for one in (temperature, top_k, top_p)):
        settings = np.stack([temperature, top_k.astype(np.float64), top_p], axis=1)
        _, setting = np.unique(settings, axis=0, return_inverse=True)
        key = branch * (int(setting.max()) + 1) + setting.reshape(-1)
    _, first, source = np.unique(key, return_index=True, return_inverse=True)
    return first, source


def _on_device(
    logits: Tensor,
    branch: NDArray[np.int64],
    temperature: NDArray[np.float64],
    top_k: NDArray[np.int64],
    top_p: NDArray[np.float64],
    uniform: NDArray[np.float64],
) -> Choice:
    """The vocabulary is searched on the device; only the candidates of each branch come over."""
    sums = torch.logsumexp(logits, dim=-1)
    rows = torch.from_numpy(branch).to(logits.device)
    picked = logits.argmax(dim=-1)[rows]
    drawn = np.flatnonzero(temperature > 0)
    if len(drawn):
        first, source = _distributions(branch[drawn], temperature[drawn], top_k[drawn], top_p[drawn])
        one = drawn[first]
        chosen = logits[rows[torch.from_numpy(one).to(logits.device)]]
        widest = int(top_k[one].max()) if (top_k[one] > 0).all() else logits.shape[1]
        if widest < logits.shape[1]:
            candidates = chosen.topk(widest).indices.sort(dim=-1).values
            chosen = chosen.gather(1, candidates)
        else:
            candidates = torch.arange(logits.shape[1], device=logits.device).expand_as(chosen)
        places = sampling.draw(chosen.cpu().numpy(), temperature[one], top_k[one], top_p[one], uniform[drawn], source)
        ids = candidates[torch.from_numpy(source).to(logits.device), torch.from_numpy(places).to(logits.device)]
        picked[torch.from_numpy(drawn).to(logits.device)] = ids
    logprobs = logits[rows, picked] - sums[rows]
    return Choice(picked.cpu().numpy(), logprobs.double().cpu().numpy(), sums[rows].double().cpu().numpy())
