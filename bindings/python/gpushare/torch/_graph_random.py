"""Random numbers of a captured function: each run of its graph draws the next ones, as each call of the function does.

PyTorch's kernels of a captured graph read the seed of their generator from one tensor on the GPU and add their place
in the graph to an offset in another one. CUDAGraph.replay() writes both before each replay (CUDAGeneratorImpl.cpp:
capture_prologue, replay_prologue). The library launches the graph itself, so here the last node of the graph adds to
the offset what one run draws. That is known from the warm-up: an eager run draws as much as a captured one.

The generators get a state of their own meanwhile, so the caller's goes on where it was. PyTorch does not say where the
two tensors are. capture_begin() fills them through the dispatcher, where a dispatch mode sees them. Each
generator gets a seed of its own meanwhile, by which its tensors are recognised.

  with GraphRandom(generators) as random:
      run random.counted(function) eagerly, at least once
      random.capture_begin(graph, ...); function(); random.advance(); graph.capture_end()
      random.restart()

Threads: the caller's. No other thread may draw from the generators meanwhile.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpushare.enums import Status
from gpushare.errors import InvalidArgumentError, UnimplementedError

_SEED_MARK = 0x7C3A_91E5_04D2_6800  # the seed of the first generator during the capture: any number that is rare


class _Generator:
    """A generator of the caller, and the state of its own that the graph uses."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.before = given.graphsafe_get_state()
        self.own = given.clone_state()
        self.seed, self.offset = given.initial_seed(), given.get_offset()
        self.draws: list[int] = []  # how far each eager run advanced the offset
        # On the GPU, once the capture has begun.
        self.seed_tensor: Any = None
        self.offset_tensor: Any = None

    @property
    def step(self) -> int:
        """How far one run advances the offset."""
        return self.draws[-1] if self.draws else 0


class GraphRandom:
    def __init__(self, generators: Sequence[Any], what: str) -> None:
        device = torch.cuda.current_device()
        torch.cuda.init()
        default = torch.cuda.default_generators[device]
        for generator in generators:
            if str(generator.device) not in ('cuda', f'cuda:{device}'):  # without a number: the current device
                raise InvalidArgumentError(
                    Status.INVALID_ARGUMENT, f'A generator of {what} is on {generator.device}, and its graph can draw '
                    f"from generators on cuda:{device}: torch.Generator('cuda').")
        # A capture uses the default generator in any case.
        further = [generator for generator in generators if generator is not default]
        self._generators = [_Generator(generator) for generator in (default, *further)]
        self._what = what

    def __enter__(self) -> GraphRandom:
        for generator in self._generators:
            generator.given.graphsafe_set_state(generator.own)
        return self

    def __exit__(self, *_: object) -> None:
        for generator in self._generators:
            generator.given.graphsafe_set_state(generator.before)

    def counted(self, function: Callable[[], Any]) -> Callable[[], Any]:
        """The function, which notes how far its call advances each generator."""
        def call() -> Any:
            before = [generator.own.get_offset() for generator in self._generators]
            result = function()
            for generator, offset in zip(self._generators, before, strict=True):
                generator.draws.append(generator.own.get_offset() - offset)
            return result
        return call

    def capture_begin(self, graph: Any, **options: Any) -> None:
        """graph.capture_begin, which gives the graph the generators' own states."""
        for generator in self._generators:
            if generator.draws[-2:].count(generator.step) != len(generator.draws[-2:]):
                raise UnimplementedError(
                    Status.UNIMPLEMENTED, f'{self._what} draws a different count of random numbers in each run '
                    f'({generator.draws}), and the captured graph would draw the same count in each.')
        for number, generator in enumerate(self._generators):
            generator.own.manual_seed(_SEED_MARK + number)
            if number:
                graph.register_generator_state(generator.given)
        filled: list[tuple[Any, int]] = []
        with _fills(filled):
            graph.capture_begin(**options)
        try:
            for number, generator in enumerate(self._generators):
                if generator.step:
                    self._find(generator, _SEED_MARK + number, filled)
        except Exception:
            with contextlib.suppress(Exception):
                graph.capture_end()
            raise

    def _find(self, generator: _Generator, seed: int, filled: list[tuple[Any, int]]) -> None:
        """Takes the tensors of a generator: the one that was filled with its seed, and the one filled next, with 0."""
        for (tensor, value), (following, offset) in itertools.pairwise(filled):
            if value == seed and offset == 0:
                generator.seed_tensor, generator.offset_tensor = tensor, following
                return
        raise UnimplementedError(
            Status.UNIMPLEMENTED, f'{self._what} draws random numbers on the GPU, and this version of PyTorch '
            f'({torch.__version__}) does not show where their offset is. Each launch of the graph would repeat them.')

    def advance(self) -> None:
        """Captures the last node: what the next run draws begins where this one ends."""
        for generator in self._drawn():
            with torch.no_grad():
                generator.offset_tensor.add_(generator.step)

    def restart(self) -> None:
        """The next run draws what the caller's generators would draw next. On the current stream."""
        for generator in self._drawn():
            with torch.no_grad():
                generator.seed_tensor.fill_(_signed(generator.seed))
                generator.offset_tensor.fill_(generator.offset)

    @property
    def draws(self) -> bool:
        """Whether a run draws random numbers on the GPU."""
        return bool(self._drawn())

    @property
    def memory(self) -> list[Any]:
        """The tensors that the graph reads."""
        return [(generator.seed_tensor, generator.offset_tensor) for generator in self._drawn()]

    def sync(self) -> None:
        """Sets the caller's generators to where the graph's runs, which must be complete, have come."""
        for generator in self._drawn():
            generator.given.manual_seed(generator.seed)
            generator.given.set_offset(generator.offset_tensor.item())

    def _drawn(self) -> list[_Generator]:
        """The generators from which a run draws."""
        return [generator for generator in self._generators if generator.step]


def _signed(value: int) -> int:
    """A seed of 64 bits as the tensor has it."""
    return value - 2**64 if value >= 2**63 else value


def _fills(filled: list[tuple[Any, int]]) -> Any:
    """A dispatch mode that notes each tensor that is filled with a number, and the number."""
    fill = torch.ops.aten.fill_.Scalar

    def dispatch(_: Any, function: Any, types: Any, given: Any = (), named: Any = None) -> Any:
        if function is fill:
            filled.append((given[0], given[1]))
        return function(*given, **(named or {}))

    mode = type('Fills', (torch.utils._python_dispatch.TorchDispatchMode,), {'__torch_dispatch__': dispatch})
    return mode()
