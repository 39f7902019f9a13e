"""Two green contexts that share a GPU's SMs, through the driver's API."""

from __future__ import annotations

import ctypes
from typing import Any

import torch

RESOURCE_BYTES = 144  # CUdevResource: type, 92 bytes of padding, a union of 48
SM_TYPE = 1
DEFAULT_STREAM = 1  # CU_GREEN_CTX_DEFAULT_STREAM
NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING


def check(code: int, what: str) -> None:
    if code != 0:
        raise RuntimeError(f'The driver returned CUresult {code} for {what}.')


class _Resource(ctypes.Structure):
    _fields_ = [('type', ctypes.c_int), ('padding', ctypes.c_ubyte * 92), ('sm_count', ctypes.c_uint),
                ('rest', ctypes.c_ubyte * (RESOURCE_BYTES - 100))]


class GreenContexts:
    """`sms` SMs for the first stream, the others for the second. Both live as long as the process."""

    def __init__(self, sms: int) -> None:
        self._cuda = ctypes.CDLL('libcuda.so.1')
        torch.cuda.init()
        device, whole = ctypes.c_int(), _Resource()
        self._check(self._cuda.cuDeviceGet(ctypes.byref(device), torch.cuda.current_device()))
        self._check(self._cuda.cuDeviceGetDevResource(device, ctypes.byref(whole), SM_TYPE))
        part, rest, groups = _Resource(), _Resource(), ctypes.c_uint(1)
        self._check(self._cuda.cuDevSmResourceSplitByCount(
            ctypes.byref(part), ctypes.byref(groups), ctypes.byref(whole), ctypes.byref(rest), 0, sms))
        self.sms = (part.sm_count, rest.sm_count)
        self.streams: tuple[Any, Any] = (self._stream(part, device), self._stream(rest, device))

    def _stream(self, resource: _Resource, device: ctypes.c_int) -> Any:
        description, context, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self._check(self._cuda.cuDevResourceGenerateDesc(ctypes.byref(description), ctypes.byref(resource), 1))
        self._check(self._cuda.cuGreenCtxCreate(ctypes.byref(context), description, device, DEFAULT_STREAM))
        self._check(self._cuda.cuGreenCtxStreamCreate(ctypes.byref(stream), context, NON_BLOCKING, 0))
        return torch.cuda.ExternalStream(stream.value)

    @staticmethod
    def _check(code: int) -> None:
        check(code, 'a green context')
