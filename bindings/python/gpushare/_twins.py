"""Twins of kernels that a compiler made, so that a BE graph's long nodes are evicted between their block tasks.

What loads a kernel offers its PTX here (gpushare.triton). A registration of a graph that may be cut by measured
durations first registers the twins of the functions that the graph launches: on a thread of the runtime's, at most
LIMIT of them, and it waits for at most WAIT_S. What is not ready by then stays as it is in that graph
(docs/evictable-nodes.md).
"""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections.abc import Callable, Collection, Mapping
from typing import Any

from gpushare._graph_functions import functions_of
from gpushare._handle import Handle
from gpushare.enums import Choice, Form, PtxFormBit
from gpushare.errors import described
from gpushare.ptx import Ptx

# Of a runtime, which has room for 1,024 kernels. Of more functions the first ones have a twin.
LIMIT = 256
# An assembly takes 0.1 to 3 s where the code cache has none (docs/ptx-kernels.md).
WAIT_S = 120.0
BYTES_LIMIT = 256 << 20  # of all texts; of more, those loaded first are forgotten


@dataclasses.dataclass(frozen=True)
class Offered:
    """A function that was loaded: its text, and how it is launched."""

    function: int
    name: str
    text: bytes
    dynamic_shared_memory_bytes: int
    left_out: str = ''  # why it gets no twin, a sentence
    device: int | None = None  # ordinal of the GPU that it was loaded on; None: not known
    token: object = dataclasses.field(default_factory=object, compare=False)  # of this text, without keeping it


@dataclasses.dataclass(frozen=True)
class Twin:
    """What became of a function's twin.

    state: 'known': no graph asked for it yet; 'made'; 'refused': `reason` says why, and `line` where in the PTX;
    'left out': its launch is none that a twin has, or there is no room; 'failed': `reason` is the error.
    """

    name: str
    function: int
    state: str
    reason: str = ''
    line: int = 0


class Twins:
    """The texts of functions by their CUfunction, and the twins that runtimes have. Threads: any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._offered: dict[int, Offered] = {}
        self._bytes = 0
        # By runtime, which keeps its own: a kernel keeps its runtime alive.
        self._made: weakref.WeakKeyDictionary[Any, weakref.ref[RuntimeTwins]] = weakref.WeakKeyDictionary()

    def offer(self, offered: Offered) -> None:
        """Remembers a function. The driver may give the address of an unloaded one again: the last text counts."""
        with self._lock:
            self._forget(offered.function)
            self._offered[offered.function] = offered
            self._bytes += len(offered.text)
            while self._bytes > BYTES_LIMIT:
                self._forget(next(iter(self._offered)))

    def _forget(self, function: int) -> None:
        offered = self._offered.pop(function, None)
        if offered is not None:
            self._bytes -= len(offered.text)

    def register(self, runtime: Any, graph: int = 0, wait_s: float = WAIT_S) -> None:
        """Gives the runtime the twins of the graph's functions, of those that are known now.

        graph: a cudaGraph_t. Of 0, of a simulated device's and of one that the driver does not describe, the twins of
        all known functions are made.
        """
        with self._lock:
            offered = {function: one for function, one in self._offered.items() if may_run_on(runtime, one)}
            made = self._of(runtime)
            if made is None and offered:
                made = RuntimeTwins(runtime.register_kernel)
                self._made[runtime] = weakref.ref(made)
                runtime.keep(made)
        if made is None:
            return
        launched = functions_of(graph) if graph and offered and not runtime.device().simulated else None
        made.register(offered, offered.keys() if launched is None else offered.keys() & launched, wait_s)

    def _of(self, runtime: Any) -> RuntimeTwins | None:
        made = self._made.get(runtime)
        return made() if made is not None else None

    def table(self, runtime: object = None) -> list[Twin]:
        """What became of each function of the runtime's GPU, in the order in which they were loaded."""
        with self._lock:
            offered = [one for one in self._offered.values() if runtime is None or may_run_on(runtime, one)]
            made = self._of(runtime) if runtime is not None else None
        return [(made.of(one) if made is not None else None) or checked(one) for one in offered]


def may_run_on(runtime: Any, offered: Offered) -> bool:
    """Whether the function may be of the runtime's GPU. A function of another one is no code of its context."""
    return offered.device is None or offered.device == runtime.device_ordinal


def checked(offered: Offered) -> Twin:
    """What the text alone says. Raises nothing: a check that fails is an answer."""
    if offered.left_out:
        return Twin(offered.name, offered.function, 'left out', offered.left_out)
    try:
        refusal = Ptx(offered.text, offered.name).refusal(Form.WORKERS)
    except Exception as error:
        return failed(offered, error)
    if refusal is not None:
        return Twin(offered.name, offered.function, 'refused', refusal.reason, refusal.line)
    return Twin(offered.name, offered.function, 'known')


def failed(offered: Offered, error: Exception) -> Twin:
    return Twin(offered.name, offered.function, 'failed', described(error))


class RuntimeTwins:
    """The twins of one runtime, and the thread that registers them. It keeps no text of a twin that is done."""

    def __init__(self, register_kernel: Callable[..., Handle]) -> None:
        self._register_kernel = weakref.WeakMethod(register_kernel)  # the thread keeps no runtime alive
        self._changed = threading.Condition()
        self._pending: dict[int, Offered] = {}
        self._done: dict[int, tuple[object, Twin]] = {}  # by function: the text's token
        self._kernels: dict[int, Handle] = {}
        self._numbers = 0  # names are given once
        self._thread: threading.Thread | None = None

    def register(self, offered: Mapping[int, Offered], wanted: Collection[int], wait_s: float) -> None:
        """Makes the twins of the wanted ones of the functions that are offered, and waits for these alone."""
        with self._changed:
            for gone in self._done.keys() - offered.keys() - self._kernels.keys():
                del self._done[gone]
            for function, one in offered.items():
                done = self._done.get(function)
                if function not in wanted:
                    continue
                if done is None or done[0] is not one.token:
                    self._pending[function] = one
            if self._pending and self._thread is None:
                self._thread = threading.Thread(target=self._run, name='gpushare-twins', daemon=True)
                self._thread.start()
            self._changed.wait_for(lambda: not self._pending.keys() & wanted, wait_s)

    def of(self, offered: Offered) -> Twin | None:
        with self._changed:
            done = self._done.get(offered.function)
            return done[1] if done is not None and done[0] is offered.token else None

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._pending:
                    self._thread = None
                    return
                function, offered = next(iter(self._pending.items()))
            twin = self._make(offered)
            with self._changed:
                self._done[function] = (offered.token, twin)
                if self._pending.get(function) is offered:  # else another text came meanwhile
                    del self._pending[function]
                self._changed.notify_all()

    def _make(self, offered: Offered) -> Twin:
        try:
            old = self._kernels.pop(offered.function, None)
            if old is not None:
                old.close()
            twin = checked(offered)
            if twin.state != 'known':
                return twin
            if len(self._kernels) >= LIMIT:
                return dataclasses.replace(twin, state='left out', reason=f'{LIMIT} functions have a twin already.')
            self._kernels[offered.function] = self._kernel(offered)
            return dataclasses.replace(twin, state='made')
        except Exception as error:
            return failed(offered, error)

    def _kernel(self, offered: Offered) -> Handle:
        register_kernel = self._register_kernel()
        if register_kernel is None:
            raise RuntimeError('The runtime is gone.')
        self._numbers += 1
        code = Ptx(offered.text, offered.name, forms=PtxFormBit.WORKERS | PtxFormBit.GRAPH_NODES)
        return register_kernel(
            f'twin {self._numbers} {offered.name}'[:63], ptx=code, original_function=offered.function,
            dynamic_shared_memory_bytes=offered.dynamic_shared_memory_bytes, evictable=Choice.YES)


twins = Twins()
