"""One LC service for the matrix: its bare graph, its registration with the library, and checks of its answers."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Sequence
from typing import Any

import torch
from arrivals import busy_distances
from networks import SERVICES

import gpushare
import gpushare.torch

ERROR_MAX = 0.02  # of the largest value: another number of SMs has another algorithm
WARM_UP_NS = 300_000_000  # of queries back to back, until the clocks have risen
AT_ONCE = 32  # launches in flight: far more of them block the host, which then sees ends late
BUSY = 160  # queries whose distances are the service times
BUSY_GAP = 0.8  # their gap over a query back to back: a queue of at most BUSY / 5 forms and never empties
QUEUE_FORMS = 10  # queries until then
SPACED_NS = 4_000_000  # between queries that meet an idle GPU
SPACED = 51


def graph_of_capture(stream: int) -> int:
    """The graph that a stream is being captured into."""
    status, number, graph = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p()
    code = ctypes.CDLL('libcuda.so.1').cuStreamGetCaptureInfo_v2(
        ctypes.c_void_p(stream), ctypes.byref(status), ctypes.byref(number), ctypes.byref(graph), None, None)
    if code != 0 or not graph.value:
        raise RuntimeError(f'cuStreamGetCaptureInfo gives {code} and status {status.value}.')
    return graph.value


class Answered:
    """A service with its eager answer."""

    def __init__(self, name: str) -> None:
        self.name = name
        torch.manual_seed(7)
        self.net, self.inputs = SERVICES[name]()
        with torch.no_grad():
            self.expected = self.net(self.inputs).clone()
        self.answer = torch.empty_like(self.expected)

    def call(self) -> None:
        """One query without the library. Its answer is in `answer`."""
        with torch.no_grad():
            self.answer.copy_(self.net(self.inputs))

    def check(self, what: str, answer: Any = None) -> None:
        """Raises unless the answer is that of the eager call."""
        torch.cuda.synchronize()
        answer = self.answer if answer is None else answer
        largest = self.expected.float().abs().max().item()
        error = (answer.float() - self.expected.float()).abs().max().item()
        if not largest > 1e-3 or not error <= ERROR_MAX * largest:  # NaN fails both
            raise RuntimeError(f'{self.name}, {what}: the answer is {error} off, where the largest value is {largest}.')


class Served(Answered):
    """A service of the matrix. `kernel` is what queries submit."""

    def __init__(self, name: str, catalogue: Any, profile: str) -> None:
        super().__init__(name)
        self._catalogue = catalogue
        self._captured: list[int] = []  # the graphs of the service's captures, one a place
        began = time.monotonic()
        self.runtime = gpushare.Runtime(device='cuda', profile_path=profile) if profile \
            else gpushare.Runtime(device='cuda')
        self._service = gpushare.torch.Service(self.runtime, self._traced, self.inputs, name=f'service-{name}',
                                               weights=self.net)
        self.registered_s = time.monotonic() - began
        self.kernel, self.answer = self._service.kernel, self._service.outputs
        reason = self._service.unconfinable
        self.confined = f'whole device only: {reason}'.splitlines()[0][:200] if reason else ''
        # The whole device's capture is the first one, or the last one where a place's failed.
        graph = self._captured[-1 if reason else 0]
        # Bare launches are of the graph that the library launches on the whole device, so they read its warm memory
        # too. A second capture has other memory, and DenseNet-121 takes 1.734 to 1.802 ms in six of them.
        self._bare = catalogue.make('graph_new', graph)

    def _traced(self, inputs: Any) -> Any:
        """The network. While it is captured, its graph is noted."""
        if torch.cuda.is_current_stream_capturing():
            self._captured.append(graph_of_capture(torch.cuda.current_stream().cuda_stream))
        return self.net(inputs)

    def bare(self, arrivals: Sequence[int]) -> tuple[list[int], int]:
        """Latencies of bare launches of the graph at the arrivals, and their window, both in ns."""
        count = len(arrivals)
        given, found = (ctypes.c_int64 * count)(*arrivals), (ctypes.c_int64 * count)()
        window = ctypes.c_int64()
        self.clear()
        self._catalogue.call('graph_run', self._bare, given, found, count, ctypes.byref(window))
        self.check('bare')
        return list(found), window.value

    def times(self) -> tuple[float, list[float]]:
        """The median latency on an idle GPU, and service times of queries back to back, in ns."""
        back_to_back_ns = self._warm_up()
        arrivals = [int(at * BUSY_GAP * back_to_back_ns) for at in range(BUSY)]
        busy = busy_distances(arrivals, self.bare(arrivals)[0])[QUEUE_FORMS:]
        spaced = self.bare([at * SPACED_NS for at in range(SPACED)])[0]
        return float(statistics.median(spaced[1:])), busy

    def _warm_up(self) -> float:
        """A query's share of AT_ONCE queries back to back, in ns: the median of the second half of the warm-up."""
        began = time.monotonic_ns()
        shares: list[float] = []
        while time.monotonic_ns() - began < WARM_UP_NS or len(shares) < 4:
            shares.append(self.bare([0] * AT_ONCE)[0][-1] / AT_ONCE)
        return float(statistics.median(shares[len(shares) // 2:]))

    def clear(self) -> None:
        self.answer.fill_(float('nan'))
        torch.cuda.synchronize()

    def close(self) -> None:
        self.runtime.close()
