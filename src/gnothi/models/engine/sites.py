"""What the feed-forward part of a decoder layer adds to the residual stream: the modules that give it, and a check of them.

A layer is run once as it is and once with those modules silent. The difference is what they add: it has to be their outputs,
each times a constant. What is then left, the layer's output less its input and that, has to be what the layer's other modules
put out; else something else of the feed-forward part was missed.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

Parts = tuple[tuple[str, float], ...]
"""Modules of a layer by name, and the factors with which it adds their outputs."""

_AFTER_FFN = ("post_feedforward_layernorm", "post_mlp_layernorm", "post_ffn_layernorm", "post_feedforward_norm", "ffn_norm2")
_FFN = (
    "mlp", "feed_forward", "ffn", "block_sparse_moe", "moe", "fc2", "ff", "shared_mlp", "shared_expert", "shared_experts",
    "feedforward", "mlp_block", "channel_mixer", "mlps",
)  # fmt: skip
_NAMELESS = "nothing in its layers is named like one"
# How far apart results of the same sums may lie, and how small a share of a layer's work says nothing.
_CLOSE, _CLOSE_IN_16_BITS, _NOTHING = 1e-3, 0.03, 1e-6
_SMALL = 0.05


def parts_of(layer: nn.Module) -> Parts | str:
    """By their names: what comes last of the feed-forward part, as it is added. A reason where there is nothing."""
    names = next(iter(_choices(layer)), ())
    return tuple((name, 1.0) for name in names) or _NAMELESS


def _choices(layer: nn.Module) -> Iterator[tuple[str, ...]]:
    """The norm behind the feed-forward part; else its first module; else all of them."""
    for names, most in ((_AFTER_FFN, 1), (_FFN, 1), (_FFN, len(_FFN))):
        modules = {name: getattr(layer, name) for name in names if isinstance(getattr(layer, name, None), nn.Module)}
        # Some blocks (BLOOM, MPT) take the residual as an argument and add it themselves: nothing to read before.
        alone = [name for name, one in modules.items() if "residual" not in inspect.signature(one.forward).parameters]
        if alone:
            yield tuple(alone[:most])


def checked(layer: nn.Module, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Parts | str:
    """The modules and factors for a layer that is called like this, or why there are none."""
    reason = _NAMELESS
    for names in _choices(layer):
        try:
            outcome = _check(layer, names, arguments, keywords)
        except Exception as error:  # noqa: BLE001 - layers fail in many ways when they are run by themselves
            outcome = f"a trial of a layer failed with {type(error).__name__}"
        if not isinstance(outcome, str):
            return outcome
        reason = outcome
    return reason


def _check(layer: nn.Module, names: Sequence[str], arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Parts | str:
    modules: list[nn.Module] = [getattr(layer, name) for name in names]
    before, close = (arguments[0] if arguments else keywords["hidden_states"]).clone(), _CLOSE
    if before.element_size() < 4:
        # Beside a large state, what is added to it drowns in rounding. The sums are the same for any state.
        before, close = _small_state(before), _CLOSE_IN_16_BITS

    def run() -> Tensor:
        rest = {key: _fresh(value) for key, value in keywords.items()}
        positional = (before.clone(), *map(_fresh, arguments[1:])) if arguments else ()
        output: Tensor = first_tensor(layer(*positional, **rest if arguments else rest | {"hidden_states": before.clone()}))
        return output.double()

    inside = {id(one) for module in modules for one in module.modules()}
    others = [one for one in layer.modules() if one is not layer and id(one) not in inside]
    with _outputs([*modules, *others], before) as outputs:
        whole = run()
    active = {name: module for name, module in zip(names, modules, strict=True) if id(module) in outputs}
    if not active:
        return "its feed-forward modules put out nothing of the size of a state"
    with _silent(list(active.values())):
        added = whole - run()
    if added.norm() <= _NOTHING * whole.norm():
        return "without its feed-forward modules a layer says the same"
    factors, missed = _fitted(added, [outputs[id(module)] for module in active.values()])
    if missed > close:
        return "a layer adds something else than what its feed-forward modules put out"
    also = {id(one) for one in _modules_named(layer)}
    rest = whole - before.double() - added
    known = [outputs[id(one)] for one in others if id(one) in outputs and id(one) not in also]
    if rest.norm() > close * whole.norm() and _fitted(rest, [*known, before])[1] > close:
        return "a layer adds more than attention and what its feed-forward modules put out"
    return tuple((name, _exact(factor, layer, close)) for name, factor in zip(active, factors, strict=True))


def _small_state(like: Tensor) -> Tensor:
    drawn = torch.randn(like.shape, generator=torch.Generator().manual_seed(0))
    return (_SMALL * drawn).to(like)


def _exact(factor: float, layer: nn.Module, close: float) -> float:
    """One, or a setting of the layer, where the measured factor is close to it; else the measured factor."""
    candidates = [1.0, *(value for value in vars(layer).values() if isinstance(value, float))]
    return next((value for value in candidates if abs(factor - value) <= close * abs(value)), round(factor, 6))


def _modules_named(layer: nn.Module) -> Iterator[nn.Module]:
    for name in _FFN:
        if isinstance(module := getattr(layer, name, None), nn.Module):
            yield from module.modules()


def _fitted(target: Tensor, parts: Sequence[Tensor]) -> tuple[list[float], float]:
    """Factors with which the sum of ``parts`` is closest to ``target``, and the share that it misses."""
    columns = torch.stack([one.double().flatten() for one in parts], dim=1)
    goal = target.flatten()[:, None]
    factors = torch.linalg.pinv(columns) @ goal
    return factors[:, 0].tolist(), float((columns @ factors - goal).norm() / goal.norm())


@contextmanager
def _outputs(modules: Sequence[nn.Module], like: Tensor) -> Iterator[dict[int, Tensor]]:
    """What modules put out inside the block, by their ids, in the shape of a state; of what has another size nothing."""
    outputs: dict[int, Tensor] = {}

    def note(module: nn.Module, _: Any, output: Any) -> None:
        tensor = first_tensor(output)
        if isinstance(tensor, Tensor) and tensor.numel() == like.numel() and tensor.shape[-1] == like.shape[-1]:
            outputs[id(module)] = tensor.clone().reshape(like.shape)

    hooks = [module.register_forward_hook(note) for module in modules]
    try:
        yield outputs
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def _silent(modules: Sequence[nn.Module]) -> Iterator[None]:
    def hush(_: nn.Module, _inputs: Any, output: Any) -> Any:
        nothing = torch.zeros_like(first_tensor(output))
        return (nothing, *output[1:]) if isinstance(output, tuple) else nothing

    hooks = [module.register_forward_hook(hush) for module in modules]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _fresh(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def first_tensor(output: Any) -> Any:
    """Of what a module returns, the states."""
    return output[0] if isinstance(output, tuple | list) else output
