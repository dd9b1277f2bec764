"""Linear layers whose weights lie as oneDNN's kernels read them, for float32 and bfloat16 on a CPU.

The default product lays a weight out anew at every call, which for the few rows of a decode step costs as much as the
arithmetic. Laid out once, a step of 21 rows takes half the time, and a row's result no longer depends on which rows are
computed beside it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

# Below this many weights (a megabyte) a call's fixed cost outweighs what the layout saves, unless it has many rows.
_LARGE = 1 << 18
_MANY_ROWS = 64
# More rows are computed in pieces of that many.
_MOST_ROWS = 512
# The layout is chosen for about so many rows.
_ROWS = 32
# How far results may lie apart, by precision.
_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 2e-2}


class Packed(nn.Module):
    """Computes what ``linear`` does, without gradients. A small layer keeps its weight as it was, too, for few rows."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self._plain = linear.weight.detach() if linear.weight.numel() < _LARGE else None
        self._packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), _ROWS)
        self.bias = None if linear.bias is None else linear.bias.detach()

    @property
    def weight(self) -> Tensor:
        """As the layer had it; of a large one a copy, made when asked for."""
        return self._packed.to_dense() if self._plain is None else self._plain

    def forward(self, rows: Tensor) -> Tensor:
        """(..., in_features) to (..., out_features)."""
        count = rows.numel() // self.in_features
        if self._plain is not None and count < _MANY_ROWS:
            return functional.linear(rows, self._plain, self.bias)
        if count <= _MOST_ROWS and count == _padded(count):
            return self._product(rows)
        flat = rows.reshape(count, self.in_features)
        pieces = [self._piece(piece) for piece in torch.split(flat, _MOST_ROWS)]
        whole = pieces[0] if len(pieces) == 1 else torch.cat(pieces)
        return whole.view(*rows.shape[:-1], self.out_features)

    def _piece(self, rows: Tensor) -> Tensor:
        spare = _padded(len(rows)) - len(rows)
        return self._product(functional.pad(rows, (0, 0, 0, spare)))[: len(rows)] if spare else self._product(rows)

    def _product(self, rows: Tensor) -> Tensor:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(rows, self._packed, self.bias, "none", [], "")
        return product


def pack(model: nn.Module) -> bool:
    """Replace the model's linear layers in place, one after another, so that no large weight is held twice (except one that
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
    plain = type(weight) is nn.Parameter and weight.dtype in _TOLERANCE and weight.device.type == "cpu"
    # A layer with hooks or a parametrisation is somebody else's.
    hooked = linear._forward_hooks or linear._forward_pre_hooks or hasattr(linear, "parametrizations")
    return plain and not hooked and weight.numel() > 0


def _agrees(linear: nn.Linear) -> bool:
    """The operations are torch's own for compiled models; a version or platform without them is found out here."""
    rows = torch.linspace(-1, 1, _MANY_ROWS * linear.in_features).reshape(_MANY_ROWS, linear.in_features)
    rows = rows.to(linear.weight.dtype)
    with torch.no_grad():
        expected = linear(rows)
        try:
            output = Packed(linear)(rows)
        except (AttributeError, RuntimeError):
            return False
    close = _TOLERANCE[linear.weight.dtype]
    return torch.allclose(output, expected, rtol=close, atol=close * float(expected.abs().max()))


def _padded(rows: int) -> int:
    """oneDNN makes a kernel for each number of rows and keeps it: a millisecond and half a megabyte. So few numbers must do."""
    step = 1 if rows <= 8 else 8 if rows <= 64 else 32 if rows <= 256 else 64
    return -(-rows // step) * step
