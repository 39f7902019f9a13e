"""The memory that a service's queries read into the L2 cache beside their first kernels."""

from __future__ import annotations

from typing import Any

import torch

# Most part of the L2 cache. The cache has two halves, and each keeps a copy of what its SMs read.
_SHARE_MOST = 0.5
_RANGES_MOST = 4096  # the library's limit


def weight_tensors(weights: Any) -> tuple[Any, ...]:
    """The GPU tensors of a module or of an iterable of tensors. A function has none."""
    if isinstance(weights, torch.nn.Module):
        tensors = [*weights.parameters(), *weights.buffers()]
    elif callable(weights):
        return ()
    else:
        tensors = list(weights)
    return tuple(tensor for tensor in tensors
                 if tensor.is_cuda and tensor.layout == torch.strided and tensor.numel() > 0)


def warm_memory_of(tensors: tuple[Any, ...]) -> list[tuple[int, int]]:
    """Address and bytes of each storage, once. Empty if together they need too much of the L2 cache."""
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    storages.pop(0, None)  # address 0: a tensor subclass that keeps its data elsewhere
    cache = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), 'L2_cache_size', 0)
    if sum(storages.values()) > _SHARE_MOST * cache or len(storages) > _RANGES_MOST:
        return []
    return sorted(storages.items())
