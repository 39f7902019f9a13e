"""Functions without a runtime: versions, policies, profiles, the calibration of a device, pre-runs of kernels."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gpushare import abi
from gpushare._callbacks import Inside
from gpushare._library import check, library
from gpushare._structs import init, read_text, text_of
from gpushare.kernel import KernelSpec
from gpushare.options import CalibrationOptions, KernelCounters, PreRunOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

# A kernel to measure and one sample task of it as a C struct; None: a task without arguments.
CalibrationItem = tuple[KernelSpec, 'abi.gpushare_task_options | None']


def version() -> str:
    """The release of the loaded library."""
    return str(library().gpushare_version_string().decode())


def policy_names() -> list[str]:
    """The names of the built-in policies."""
    return read_text(library().gpushare_policy_names).split()


def validate_profile(path: str | os.PathLike[str]) -> None:
    """Checks a profile file as Runtime does, and raises what is wrong with it."""
    check(library().gpushare_profile_validate(text_of('path', path)))


def calibrate(output_path: str | os.PathLike[str], items: Sequence[CalibrationItem],
              progress: Callable[[abi.gpushare_calibration_progress], None] | None = None,
              **options: Unpack[CalibrationOptions]) -> None:
    """Measures a device and kernels on it, and writes their profile. No runtime may use the device.

    progress: runs on this thread between measurements. Its argument is valid during the call. An exception that it
    raises ends the calibration and is raised here.
    """
    for i, item in enumerate(items):
        if not (isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], KernelSpec)):
            raise TypeError(f'items[{i}] is {item!r}, and it must be a pair: a KernelSpec, and a task or None.')
    rows = (abi.gpushare_calibration_item * len(items))()
    for row, item in zip(rows, items, strict=True):
        kernel, task = item
        row.kernel = ctypes.pointer(kernel.struct)
        if task is not None:
            row.task = ctypes.pointer(task)
    struct = init(abi.gpushare_calibration_options, {**options, 'output_path': output_path})
    struct.items, struct.item_count = rows, len(items)
    cancel = ctypes.c_int32()
    struct.cancel = ctypes.pointer(cancel)
    raised: list[BaseException] = []

    def call(_user: int | None, given: ctypes._Pointer[abi.gpushare_calibration_progress]) -> None:
        try:
            if progress is not None:
                with Inside():
                    progress(given.contents)
        except BaseException as error:  # no exception may pass through C; `cancel` stops the calibration
            raised.append(error)
            cancel.value = 1

    status = library().gpushare_calibrate(ctypes.byref(struct), abi.gpushare_calibration_callback(call), None)
    if raised:
        raise raised[0]
    try:
        check(status)
    except Exception as error:
        for kernel, _ in items:
            kernel.raise_captured(error)
        raise


def pre_run(kernel: KernelSpec, task: abi.gpushare_task_options, **options: Unpack[PreRunOptions]) -> KernelCounters:
    """Runs some block tasks of a kernel and counts what they do: for register_kernel(counters=...).

    No runtime may use the device. task: a sample of the kernel, which may run many times. Raises
    PermissionDeniedError where the driver lets only administrators count, and UnavailableError without CUPTI.
    """
    if not isinstance(kernel, KernelSpec):
        raise TypeError(f'kernel is {kernel!r}, and it must be a KernelSpec.')
    if kernel.ptx is not None:
        raise TypeError(f'Kernel {kernel.name!r} has PTX, and a pre-run takes functions: original_function and others.')
    struct = init(abi.gpushare_pre_run_options, options)
    struct.kernel, struct.task = ctypes.pointer(kernel.struct), ctypes.pointer(task)
    counted = abi.init(abi.gpushare_kernel_counters)
    check(library().gpushare_kernel_pre_run(ctypes.byref(struct), ctypes.byref(counted)))
    counters: KernelCounters = {}
    for name in KernelCounters.__annotations__:
        counters[name] = getattr(counted, name)  # type: ignore[literal-required]
    return counters
