"""Choosing tokens from logits that may lie on an accelerator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnothi.models import sampling


class Choice(NamedTuple):
    """Per row: the token, its log-probability at temperature 1 without cuts, and the logsumexp of the raw logits."""

    ids: NDArray[np.int64]
    logprobs: NDArray[np.float64]
    logsumexps: NDArray[np.float64]


def choose(
    logits: Tensor,
    rows: NDArray[np.int64],
    temperature: NDArray[np.float64],
    top_k: NDArray[np.int64],
    top_p: NDArray[np.float64],
    uniform: NDArray[np.float64],
) -> Choice:
    """One token for each of ``rows`` of the logits (all rows, vocabulary); the others have one entry per chosen row."""
    if len(rows) < len(logits):
        logits = logits[torch.from_numpy(rows).to(logits.device)]
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if logits.device.type != "cpu":
        return _on_device(logits, temperature, top_k, top_p, uniform)
    # NumPy's vectorised partition and argmax are several times faster than torch's on a CPU.
    values = logits.numpy()
    sums = sampling.logsumexp(values)
    broken = ~np.isfinite(sums)
    if broken.any():
        # Their log-probabilities come out as not-a-number, which the engine reports; the draw must survive until then.
        values = np.where(broken[:, None], values.dtype.type(0), values)
    ids = np.empty(len(values), np.int64)
    greedy = temperature == 0
    ids[greedy] = values[greedy].argmax(axis=1)
    drawn = ~greedy
    if drawn.any():
        chosen = values if drawn.all() else values[drawn]
        ids[drawn] = sampling.draw(chosen, temperature[drawn], top_k[drawn], top_p[drawn], uniform[drawn])
    return Choice(ids, values[np.arange(len(values)), ids] - sums, sums)


def _on_device(
    logits: Tensor,
    temperature: NDArray[np.float64],
    top_k: NDArray[np.int64],
    top_p: NDArray[np.float64],
    uniform: NDArray[np.float64],
) -> Choice:
    """The vocabulary is searched on the device; only the candidates of each row come over."""
    sums = torch.logsumexp(logits, dim=-1)
    picked = logits.argmax(dim=-1)
    drawn = np.flatnonzero(temperature > 0)
    if len(drawn):
        index = torch.from_numpy(drawn).to(logits.device)
        chosen = logits[index]
        widest = int(top_k[drawn].max()) if (top_k[drawn] > 0).all() else logits.shape[1]
        if widest < logits.shape[1]:
            candidates = chosen.topk(widest).indices.sort(dim=-1).values
            chosen = chosen.gather(1, candidates)
        else:
            candidates = torch.arange(logits.shape[1], device=logits.device).expand_as(chosen)
        places = sampling.draw(chosen.cpu().numpy(), temperature[drawn], top_k[drawn], top_p[drawn], uniform[drawn])
        picked[index] = candidates.gather(1, torch.from_numpy(places).to(logits.device)[:, None])[:, 0]
    logprobs = logits.gather(1, picked[:, None])[:, 0] - sums
    return Choice(picked.cpu().numpy(), logprobs.double().cpu().numpy(), sums.double().cpu().numpy())
