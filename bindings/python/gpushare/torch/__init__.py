"""PyTorch through gpushare: inference as an LC service, training steps as BE work, in one process.

    runtime = gpushare.Runtime()
    service = gpushare.torch.Service(runtime, model, (image,), p99_bound=1.05)
    training = gpushare.torch.Training(runtime, step, state=(net, optimizer))
    tickets = training.submit(100)   # steps run when the service leaves room
    output = service(image)          # called like the function
    tickets[-1].wait()

Both capture their function as a CUDA graph, on streams and in memory of their own, so that they do not disturb eager
PyTorch work. docs/python-training.md lists the rules for a captured function.
Server is a service of many graphs, such as an engine's steps (docs/python-server.md).
BestEffort is batch inference as BE work, with results of its own; MemoryPool bounds the memory of BE work.
eager_be holds the operations of an unmodified loop back while LC work runs.
PlaceCaptures captures a function for a kernel that you register yourself. region() runs eager work.
"""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('gpushare.torch needs PyTorch 2.8 or later: pip install torch.', name='torch') from error

from gpushare.torch._place_captures import PlaceCaptures
from gpushare.torch._region import region
from gpushare.torch.best_effort import BestEffort, Results
from gpushare.torch.eager import EagerGate, eager_be
from gpushare.torch.memory_pool import MemoryPool
from gpushare.torch.server import ServedGraph, Server
from gpushare.torch.service import Service
from gpushare.torch.training import Training

__all__ = ['BestEffort', 'EagerGate', 'MemoryPool', 'PlaceCaptures', 'Results', 'ServedGraph', 'Server', 'Service',
           'Training', 'eager_be', 'region']
