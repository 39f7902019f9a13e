"""Puts the tensors that a warm-up changes back as they were.

  with Snapshot(state) as snapshot:
      run the step, as often as the warm-up does
      snapshot.restore()
  # An exception that leaves the block leaves the state as it was before the block.

An optimizer makes its state in its first step, and not all of it begins at zero: a product of NAdam begins at
one, a step size of Rprop at the learning rate. So the snapshot copies each tensor when the optimizer stores it,
before the step changes it.

Threads: the caller's. Copies are on the current stream.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

import torch

from gpushare.enums import Status
from gpushare.errors import UnimplementedError

# SGD stores its first gradient under this name, which is what a buffer of zeros becomes in the first step.
_MOMENTUM = 'momentum_buffer'


class _Noting(dict[Any, Any]):
    """An optimizer's state of one parameter. It reports each tensor that is stored under a new key."""

    def __init__(self, note: Callable[[Any, Any], None]) -> None:
        super().__init__()
        self._note = note

    def __setitem__(self, key: Any, value: Any) -> None:
        if key not in self and isinstance(value, torch.Tensor):
            self._note(key, value)
        super().__setitem__(key, value)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *given: Any, **named: Any) -> None:
        for key, value in dict(*given, **named).items():
            self[key] = value


class Snapshot:
    """A copy of the tensors of modules, optimizers (anything with a state_dict), GradScalers and nests of tensors."""

    def __init__(self, state: Sequence[Any]) -> None:
        self._state = state
        self._saved = {place: tensor.detach().clone() for place, tensor in _places(state)}
        # By address: a tensor that an optimizer made, and its value before the first step; None if that is unknown.
        self._made: dict[int, tuple[Any, Any]] = {}
        self._optimizers = [item for item in state
                            if isinstance(getattr(item, 'state', None), collections.defaultdict)]
        self._factories = [optimizer.state.default_factory for optimizer in self._optimizers]

    def __enter__(self) -> Snapshot:
        for optimizer in self._optimizers:
            note = self._noter(optimizer)
            optimizer.state.default_factory = lambda note=note: _Noting(note)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        for optimizer, factory in zip(self._optimizers, self._factories, strict=True):
            optimizer.state.default_factory = factory
            for key, entry in list(optimizer.state.items()):
                if isinstance(entry, _Noting) and kind is None:
                    optimizer.state[key] = dict(entry)
                elif isinstance(entry, _Noting):
                    del optimizer.state[key]
        if kind is not None:
            self._copy([(tensor, self._saved[place]) for place, tensor in _places(self._state)
                        if place in self._saved])

    def restore(self) -> None:
        """Puts every tensor back. Raises UnimplementedError for a new tensor whose first value is unknown."""
        pairs = []
        for place, tensor in _places(self._state):
            if tensor.numel() == 0:
                continue
            first = self._saved.get(place)
            if first is None:
                _, first = self._made.get(tensor.data_ptr(), (None, None))
            if first is None:
                raise UnimplementedError(
                    Status.UNIMPLEMENTED, f"The first run makes {_words(place)} of the state from its own values, so "
                    'the warm-up cannot be undone. Run it once yourself before the registration.')
            pairs.append((tensor, first))
        self._copy(pairs)

    def _noter(self, optimizer: Any) -> Callable[[Any, Any], None]:
        def note(key: Any, tensor: Any) -> None:
            value = tensor.detach().clone()
            if key == _MOMENTUM:
                damped = any(group.get('dampening') for group in optimizer.param_groups)
                value = None if damped else torch.zeros_like(value)
            elif not _uniform(value):
                value = None
            self._made[tensor.data_ptr()] = (tensor, value)
        return note

    @staticmethod
    def _copy(pairs: list[tuple[Any, Any]]) -> None:
        with torch.no_grad():
            for tensor, value in pairs:
                tensor.detach().copy_(value)


def _uniform(value: Any) -> bool:
    """Whether all elements are equal. Such a first value does not depend on a gradient."""
    return value.numel() == 0 or bool(torch.equal(value, torch.full_like(value, value.flatten()[0].item())))


def _places(state: Sequence[Any]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Each tensor of the state with its place: the item's number, then the keys and indices that lead to it."""
    for number, item in enumerate(state):
        yield from _walk((number,), _content(item))


def _content(item: Any) -> Any:
    """A nest with the item's tensors."""
    if hasattr(item, '_growth_tracker'):
        # A GradScaler, which makes its tensors with the first loss. Its state_dict() has numbers instead.
        if item._growth_tracker is None:
            item.scale(torch.zeros((), device=item._device))
        return {'scale': item._scale, 'growth_tracker': item._growth_tracker}
    return item.state_dict() if hasattr(item, 'state_dict') else item


def _walk(place: tuple[Any, ...], value: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, torch.Tensor):
        yield place, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _walk((*place, key), item)
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from _walk((*place, index), item)


def _words(place: tuple[Any, ...]) -> str:
    return f"'{'.'.join(str(key) for key in place[1:])}' in item {place[0]}"
