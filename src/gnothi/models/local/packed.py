"""Linear layers whose weights lie as oneDNN's kernels read them, for float32 on a CPU.

The default product lays a weight out anew at every call, which for the few rows of a decode step costs as much as the
arithmetic. Laid out once, a step of 21 rows takes half the time, and a row's result no longer depends on which rows are
computed beside it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

# Below this many weights a call's fixed cost outweighs what the layout saves.
_LEAST = 1 << 18
# The layout is chosen for about so many rows.
_ROWS = 32


class Packed(nn.Module):
    """Computes what ``linear`` does. Inference only; ``weight`` is a copy, made when asked for."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self._packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), _ROWS)
        self.bias = None if linear.bias is None else linear.bias.detach()

    @property
    def weight(self) -> Tensor:
        return self._packed.to_dense()

    def forward(self, rows: Tensor) -> Tensor:
        """(..., in_features) to (..., out_features)."""
        count = rows.numel() // self.in_features
        spare = _padded(count) - count
        if not spare:
            return self._product(rows)
        flat = functional.pad(rows.reshape(count, self.in_features), (0, 0, 0, spare))
        return self._product(flat)[:count].reshape(*rows.shape[:-1], self.out_features)

    def _product(self, rows: Tensor) -> Tensor:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(rows, self._packed, self.bias, "none", [], "")
        return product


def pack(model: nn.Module) -> bool:
    """Replace the model's larger linear layers in place, one after another, so that no weight is held twice (except one that
    is shared with the embedding). False, and nothing is changed, where that cannot be done or gives other results."""
    places = [
        (parent, name)
        for parent in model.modules()
        for name, child in parent.named_children()
        if type(child) is nn.Linear and _fits(child)
    ]
    if not places or not available() or not _agrees(getattr(*places[0])):
        return False
    for parent, name in places:
        setattr(parent, name, Packed(getattr(parent, name)))
    return True


def available() -> bool:
    """Whether this build of torch has oneDNN."""
    return bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]


def is_packed(model: nn.Module) -> bool:
    return any(isinstance(module, Packed) for module in model.modules())


def _fits(linear: nn.Linear) -> bool:
    weight: Any = linear.weight
    plain = type(weight) is nn.Parameter and weight.dtype == torch.float32 and weight.device.type == "cpu"
    # A layer with hooks or a parametrisation is somebody else's.
    hooked = linear._forward_hooks or linear._forward_pre_hooks or hasattr(linear, "parametrizations")
    return plain and not hooked and weight.numel() >= _LEAST


def _agrees(linear: nn.Linear) -> bool:
    """The operations are torch's own for compiled models; a version or platform without them is found out here."""
    rows = torch.linspace(-1, 1, 3 * linear.in_features).reshape(3, linear.in_features)
    with torch.no_grad():
        expected = linear(rows)
        try:
            given = Packed(linear)(rows)
        except (AttributeError, RuntimeError):
            return False
    return torch.allclose(given, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))


def _padded(rows: int) -> int:
    """Kernels are made, in a millisecond, and kept for each number of rows: a few hundred numbers must do."""
    step = 1 if rows <= 32 else 8 if rows <= 256 else 64
    return -(-rows // step) * step
