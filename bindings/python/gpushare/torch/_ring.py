"""New inputs for tasks that are queued ahead: copies that the library orders before the task that reads them.

  batch on the CPU --queue of the ring--> slot (GPU) --queue of the graph--> the captured inputs, then the graph
  batch on the GPU ------------------------------------queue of the graph--> the captured inputs, then the graph

The graph reads one set of inputs, so it is captured once; a capture for each slot would multiply registration, graphs
and their memory by the number of slots. The slots let the slow copy from the host run beside earlier steps; the copy
on the GPU takes some microseconds. A slot is written again when its copy on the GPU is complete, so a step never reads
half of another batch.

Threads: the caller's, one at a time.
"""

from __future__ import annotations

from typing import Any

import torch

from gpushare.app import App
from gpushare.enums import CopyDirection, TaskKind
from gpushare.options import TaskOptions
from gpushare.ticket import Ticket
from gpushare.torch._chain import Chain
from gpushare.torch._tensors import map_tensors, recorded_event, tensor_pairs


class RingMemory:
    """The inputs that a graph reads, at addresses that stay, and the slots before them.

    example: the first inputs, on the CPU or GPU. batches: how many from the CPU can be on their way.
    """

    def __init__(self, example: Any, batches: int) -> None:
        if batches < 1:
            raise ValueError(f'batches is {batches}, and it must be at least 1.')
        device = torch.device('cuda', torch.cuda.current_device())
        self.inputs = tuple(map_tensors(lambda tensor: tensor.detach().to(device).clone(), item)
                            for item in arguments(example))
        targets = [target for target, _ in tensor_pairs(self.inputs, self.inputs, 'the input')]
        self.slots = [[torch.empty_like(target) for target in targets] for _ in range(batches)]


def arguments(inputs: Any) -> tuple[Any, ...]:
    """The positional arguments that a batch stands for: a tuple or list of them, as a DataLoader yields, or one."""
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)


class InputRing:
    """Fills the inputs of a graph in front of its tasks. app, chain: those of these tasks."""

    def __init__(self, app: App, chain: Chain, memory: RingMemory, simulated: bool) -> None:
        self._inputs = memory.inputs
        self._slots = memory.slots
        self._chain = chain
        self._queue = app.create_queue()
        self._arrivals = Chain(self._queue, simulated)
        # The last copy out of each slot.
        self._reads: list[Ticket | None] = [None] * len(memory.slots)
        self._next = 0
        # What copies in flight use (Runtime.keep).
        self.memory = (memory, self._arrivals.memory)

    def close(self) -> None:
        """Gives the ring's queue back, which keeps the app and its name."""
        self._queue.close()

    def load(self, batch: Any) -> bool:
        """Submits the copies of a batch behind what the chain has. They start behind the current stream's work.

        The batch's tensors are kept until they are copied. Returns whether the chain has a copy: a batch may be empty.
        """
        pairs = tensor_pairs(self._inputs, arguments(batch), 'the batch')
        sources = [laid_out(source, target) for target, source in pairs]
        event = recorded_event()
        self._arrivals.begin_pass()
        slot, read = self._slots[self._next], self._reads[self._next]
        free = [] if read is None or read.done() else [read]
        arrived = {number: self._arrivals.submit(event=event, wait_tickets=free, uses=[source],
                                                 **copy_options(slot[number], source))
                   for number, source in enumerate(sources) if not source.is_cuda and source.numel()}
        copied = False
        for number, (target, _) in enumerate(pairs):
            if number in arrived:
                self._chain.submit(wait_tickets=[arrived[number]], event=event, **copy_options(target, slot[number]))
            elif sources[number].numel():
                self._chain.submit(event=event, uses=[sources[number]], **copy_options(target, sources[number]))
            else:
                continue
            copied = True
        if arrived:
            self._reads[self._next] = self._chain.last
            self._next = (self._next + 1) % len(self._slots)
        return copied


def laid_out(source: Any, target: Any) -> Any:
    """The source with the target's strides, for a copy of bytes; on the CPU or on the target's GPU."""
    source = source.detach()
    elsewhere = source.is_cuda and source.device != target.device
    if source.stride() == target.stride() and not elsewhere:
        return source
    with torch.no_grad():
        return torch.empty_like(target, device=target.device if source.is_cuda else 'cpu').copy_(source)


def copy_options(target: Any, source: Any) -> TaskOptions:
    """The options of a copy of all bytes. Of the two, one may be on the CPU."""
    if source.is_cuda and target.is_cuda:
        direction, pageable = CopyDirection.PEER, False
    elif target.is_cuda:
        direction, pageable = CopyDirection.HOST_TO_DEVICE, not source.is_pinned()
    else:
        direction, pageable = CopyDirection.DEVICE_TO_HOST, not target.is_pinned()
    return {'kind': TaskKind.MEMCPY, 'copy_destination': target.data_ptr(), 'copy_source': source.data_ptr(),
            'copy_size_bytes': source.numel() * source.element_size(), 'copy_direction': direction,
            'copy_pageable': pageable}
