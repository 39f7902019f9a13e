#!/usr/bin/env python3
"""The part of gpushare's C ABI that the PyTorch example needs, by ctypes.

Structs carry the C names of their fields; check_layouts compares every size and offset with those
of the C compiler. Handles are released by close() or a with block, in any order that the library
allows. Callbacks are kept alive by the objects that hand them over.
"""

import ctypes
import time

i32, u32, i64, u64, f64 = (ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64,
                           ctypes.c_double)
ptr, text = ctypes.c_void_p, ctypes.c_char_p

NEVER = 2**63 - 1
LATENCY_CRITICAL, BEST_EFFORT = 1, 2
TASK_KERNEL, TASK_GRAPH = 1, 2
CHOICE_YES, CHOICE_NO = 1, 2
DRIVE_THREAD, DRIVE_POLL = 0, 1
VERDICT_OK = 1
FAILED_PRECONDITION = 9

# int32_t (void* user, void* stream, int32_t sm_count)
CaptureCallback = ctypes.CFUNCTYPE(i32, ptr, ptr, i32)
# void (void* user, const gpushare_calibration_progress*)
CalibrationCallback = ctypes.CFUNCTYPE(None, ptr, ptr)


class LatencySummary(ctypes.Structure):
    _fields_ = [('count', i64), ('p50_ns', i64), ('p99_ns', i64), ('max_ns', i64)]


class SpeedPoint(ctypes.Structure):
    _fields_ = [('sms', i32), ('reserved', i32), ('speed', f64)]


class RuntimeOptions(ctypes.Structure):
    _fields_ = [('struct_size', u32), ('drive', i32), ('device', text), ('policy', text),
                ('profile_path', text), ('seed', u64), ('sim_tier', text), ('sim_faults', text),
                ('device_ordinal', i32), ('splits_max', i32), ('hang_floor_ns', i64),
                ('hang_factor', f64), ('be_return_hysteresis_ns', i64),
                ('shutdown_timeout_ns', i64), ('log', ptr), ('log_user', ptr)]


class AppOptions(ctypes.Structure):
    _fields_ = [('struct_size', u32), ('app_class', i32), ('name', text), ('target_ns', i64),
                ('p99_bound', f64), ('p99_alone_ns', i64), ('solo_ns', i64), ('weight', f64),
                ('drop_late', i32), ('tasks_max', i32)]


class KernelOptions(ctypes.Structure):
    _fields_ = [('struct_size', u32), ('kind', i32), ('name', text), ('threads_per_block', i32),
                ('registers_per_thread', i32), ('shared_memory_bytes', i32),
                ('workers_per_sm_max', i32), ('evictable', i32), ('confinable', i32),
                ('roomy', i32), ('reserved', i32), ('yield_interval_ns', i64), ('solo_ns', i64),
                ('original_function', ptr), ('worker_function', ptr), ('graph', ptr),
                ('simulation', ptr), ('capture', CaptureCallback), ('capture_user', ptr),
                ('graph_exec', ptr), ('block_x', i32), ('block_y', i32), ('block_z', i32),
                ('dynamic_shared_memory_bytes', i32), ('library', ptr),
                ('slice_function', ptr)]


class TaskOptions(ctypes.Structure):
    _fields_ = [('struct_size', u32), ('kind', i32), ('kernel', ptr), ('block_tasks', i64),
                ('arguments', ptr), ('arguments_size_bytes', u64), ('query', u64),
                ('arrival_ns', i64), ('declared_ns', i64), ('copy_destination', ptr),
                ('copy_source', ptr), ('copy_size_bytes', i64), ('copy_direction', i32),
                ('copy_pageable', i32), ('wait_tickets', ptr), ('wait_events', ptr),
                ('wait_ticket_count', u32), ('wait_event_count', u32), ('signal_event', ptr),
                ('detached', i32), ('reserved', i32), ('enqueue', ptr), ('enqueue_user', ptr),
                ('callback', ptr), ('callback_user', ptr), ('grid_x', i32), ('grid_y', i32),
                ('grid_z', i32), ('reserved2', i32)]


class CompletionRecord(ctypes.Structure):
    _fields_ = [('struct_size', u32), ('verdict', i32), ('ticket', u64), ('query', u64),
                ('app_id', u32), ('queue_id', u32), ('kernel_id', u32), ('kind', i32),
                ('submit_ns', i64), ('admit_ns', i64), ('launch_ns', i64), ('start_ns', i64),
                ('end_ns', i64), ('complete_ns', i64), ('predicted_ns', i64),
                ('predicted_error_ns', i64), ('measured_ns', i64), ('evicted_ns', i64),
                ('block_tasks', i64), ('evictions', i32), ('launches', i32), ('form', i32),
                ('place', i32), ('launch_reason', i32), ('hold_reason', i32),
                ('beside_kernel_id', u32), ('error_code', i32), ('failed_dependency', u64),
                ('failed_dependency_verdict', i32), ('reserved', i32)]


class DeviceInfo(ctypes.Structure):
    _fields_ = [('struct_size', u32), ('simulated', i32), ('name', text), ('profile', text),
                ('policy', text), ('virtual_time', i32), ('partitions', i32), ('eviction', i32),
                ('timestamps', i32), ('sm_count', i32), ('sm_granularity', i32),
                ('lanes_max', i32), ('places_max', i32), ('threads_per_sm', i32),
                ('registers_per_sm', i32), ('shared_memory_per_sm_bytes', i32),
                ('blocks_per_sm', i32), ('launch_latency_ns', i64),
                ('completion_latency_ns', i64), ('eviction_write_latency_ns', i64),
                ('pinned_bytes_per_ns', f64)]


class RuntimeStats(ctypes.Structure):
    _fields_ = [('struct_size', u32), ('simulated', i32), ('ticks', i64), ('plans', i64),
                ('launches', i64), ('fast_path_launches', i64), ('evictions', i64),
                ('evictions_blocked', i64), ('hung', i64), ('busy_sm_ns', i64),
                ('tasks_pending', i64), ('prediction_samples', i64), ('prediction_error', f64),
                ('eviction_latency', LatencySummary), ('plan_time', LatencySummary),
                ('device_lost', i32), ('app_count', i32)]


class CalibrationItem(ctypes.Structure):
    _fields_ = [('kernel', ptr), ('task', ptr)]


class KernelCalibration(ctypes.Structure):
    _fields_ = [('struct_size', u32), ('kind', i32), ('name', text), ('block_tasks', i64),
                ('solo_ns', i64), ('worker_solo_ns', i64), ('block_task_ns', i64),
                ('eviction_p50_ns', i64), ('eviction_p99_ns', i64), ('block_task_spread', f64),
                ('worker_overhead', f64), ('saturating_occupancy', f64), ('speed', ptr),
                ('knees', ptr), ('speed_count', u32), ('knee_count', u32),
                ('workers_per_sm_max', i32), ('kept', i32), ('slice_block_tasks', i64),
                ('slice_overhead', f64), ('workers_per_sm_least', i32), ('intensity', i32)]


class CalibrationProgress(ctypes.Structure):
    _fields_ = [('struct_size', u32), ('done', i32), ('total', i32), ('reserved', i32),
                ('what', text), ('kernel', ptr), ('note', text)]


class CalibrationOptions(ctypes.Structure):
    _fields_ = [('struct_size', u32), ('device_ordinal', i32), ('device', text),
                ('profile_path', text), ('output_path', text), ('items', ptr), ('cancel', ptr),
                ('sim_tier', text), ('sim_faults', text), ('seed', u64), ('kernel_time_ns', i64),
                ('hang_limit_ns', i64), ('device_buffer', ptr), ('pinned_buffer', ptr),
                ('pageable_buffer', ptr), ('buffer_size_bytes', i64), ('item_count', u32),
                ('repeats', i32), ('evictions', i32), ('resume', i32), ('fused', ptr),
                ('total_time_ns', i64), ('slice_overhead_max', f64), ('fused_count', u32),
                ('reserved', u32)]


class ExampleField(ctypes.Structure):
    _fields_ = [('owner', text), ('name', text), ('offset', u64), ('size', u64)]


class LoadOptions(ctypes.Structure):
    _fields_ = [('runtime', ptr), ('lc_queue', ptr), ('be_queue', ptr), ('lc_task', ptr),
                ('be_task', ptr), ('arrivals_ns', ptr), ('latencies_ns', ptr), ('span_ns', i64),
                ('query_count', i32), ('warm_up_queries', i32), ('be_depth', i32),
                ('virtual_time', i32)]


PLACES, REASONS = 64, 128


class LoadResult(ctypes.Structure):
    _fields_ = [('span_ns', i64), ('be_block_tasks', f64), ('be_tasks', i64),
                ('be_evictions', i64), ('lc_queries', i64), ('wrong_verdicts', i64),
                ('lc_places', i64 * PLACES), ('be_places', i64 * PLACES),
                ('lc_reasons', i64 * REASONS), ('be_reasons', i64 * REASONS),
                ('be_holds', i64 * REASONS)]


STRUCTS = {
    'gpushare_latency_summary': LatencySummary,
    'gpushare_speed_point': SpeedPoint,
    'gpushare_runtime_options': RuntimeOptions,
    'gpushare_app_options': AppOptions,
    'gpushare_kernel_options': KernelOptions,
    'gpushare_task_options': TaskOptions,
    'gpushare_completion_record': CompletionRecord,
    'gpushare_device_info': DeviceInfo,
    'gpushare_runtime_stats': RuntimeStats,
    'gpushare_calibration_item': CalibrationItem,
    'gpushare_kernel_calibration': KernelCalibration,
    'gpushare_calibration_progress': CalibrationProgress,
    'gpushare_calibration_options': CalibrationOptions,
    'gpushare_example_load_options': LoadOptions,
    'gpushare_example_load_result': LoadResult,
}


class Error(RuntimeError):
    """A status that is not OK, with the library's message."""


def init(struct, /, **fields):
    """A struct with its size and the given fields set; all else is zero (as with _INIT)."""
    value = struct(**fields)
    value.struct_size = ctypes.sizeof(struct)
    return value


def address(value):
    """The address of a struct or an array. The caller keeps the value alive."""
    return ctypes.cast(ctypes.pointer(value), ptr)


class Library:
    """libgpushare and libgpushare_catalogue, loaded, with their functions declared."""

    def __init__(self, library='libgpushare.so.1', catalogue='libgpushare_catalogue.so'):
        self.abi = ctypes.CDLL(library)
        self.example = ctypes.CDLL(catalogue)
        self._declare_abi()
        self._declare_example()
        self.check_layouts()

    def _declare_abi(self):
        handle = ctypes.POINTER(ptr)
        for name, arguments in {
                'runtime_create': [ptr, handle],
                'runtime_release': [ptr],
                'runtime_shutdown': [ptr, i64],
                'runtime_stats_get': [ptr, ptr],
                'now_ns': [ptr, ctypes.POINTER(i64)],
                'device_info_get': [ptr, ptr],
                'app_create': [ptr, ptr, handle],
                'app_release': [ptr],
                'queue_create': [ptr, handle],
                'queue_release': [ptr],
                'kernel_register': [ptr, ptr, handle],
                'kernel_release': [ptr],
                'submit_lc': [ptr, ptr, ctypes.POINTER(u64)],
                'submit_be': [ptr, ptr, ctypes.POINTER(u64)],
                'ticket_wait': [ptr, u64, i64],
                'ticket_record': [ptr, u64, ptr],
                'ticket_release': [ptr, u64],
                'calibrate': [ptr, CalibrationCallback, ptr],
                'profile_validate': [text],
        }.items():
            function = getattr(self.abi, 'gpushare_' + name)
            function.argtypes, function.restype = arguments, i32
        for name in ('reason_name', 'status_name', 'verdict_name'):
            function = getattr(self.abi, 'gpushare_' + name)
            function.argtypes, function.restype = [i32], text
        self.abi.gpushare_last_error_message.argtypes = []
        self.abi.gpushare_last_error_message.restype = text
        self.abi.gpushare_version_string.argtypes = []
        self.abi.gpushare_version_string.restype = text

    def _declare_example(self):
        handle = ctypes.POINTER(ptr)
        for name, arguments in {
                'load_new': [ptr, handle],
                'load_run': [ptr, ptr],
                'has_cuda': [],
                'workload_new': [text, f64, u32, i32, handle],
                'workload_fill': [ptr, ptr, ptr],
                'workload_clear': [ptr],
                'workload_verify': [ptr, f64, ctypes.POINTER(i64), ctypes.POINTER(i64)],
                'graph_new': [ptr, handle],
                'graph_run': [ptr, ptr, ptr, i32, ctypes.POINTER(i64)],
                'enter_stream': [ptr],
        }.items():
            function = getattr(self.example, 'gpushare_example_' + name)
            function.argtypes, function.restype = arguments, i32
        for name in ('load_free', 'workload_free', 'graph_free'):
            function = getattr(self.example, 'gpushare_example_' + name)
            function.argtypes, function.restype = [ptr], None
        self.example.gpushare_example_error.argtypes = []
        self.example.gpushare_example_error.restype = text
        self.example.gpushare_example_layout.argtypes = [u32]
        self.example.gpushare_example_layout.restype = ctypes.POINTER(ExampleField)

    def check_layouts(self):
        """Checks every struct's fields, offsets and size against the C header."""
        left = {(owner, name) for owner, kind in STRUCTS.items()
                for name in [None] + [field[0] for field in kind._fields_]}
        index = 0
        while row := self.example.gpushare_example_layout(index):
            field = row.contents
            owner = field.owner.decode()
            name = field.name.decode() if field.name else None
            kind = STRUCTS[owner]
            ours = ((0, ctypes.sizeof(kind)) if name is None else
                    (getattr(kind, name).offset, getattr(kind, name).size))
            if ours != (field.offset, field.size):
                raise Error(f'{owner}.{name} lies at {ours[0]} with {ours[1]} bytes here, and at '
                            f'{field.offset} with {field.size} bytes in C.')
            left.discard((owner, name))
            index += 1
        if left:
            raise Error(f'C does not know {sorted(left, key=str)[0]}.')

    def check(self, status):
        if status != 0:
            name = self.abi.gpushare_status_name(status).decode()
            raise Error(f'{name}: {self.abi.gpushare_last_error_message().decode()}')

    def check_example(self, code):
        if code != 0:
            raise Error(self.example.gpushare_example_error().decode())

    def make(self, function, *arguments):
        handle = ptr()
        self.check(function(*arguments, ctypes.byref(handle)))
        return handle

    def make_example(self, function, *arguments):
        handle = ptr()
        self.check_example(function(*arguments, ctypes.byref(handle)))
        return handle

    def calibrate(self, output, items, report, **fields):
        """Measures (kernel options, task options or None) pairs; `report` gets each progress."""
        rows = (CalibrationItem * len(items))()
        for row, (kernel, task) in zip(rows, items):
            row.kernel = address(kernel)
            row.task = address(task) if task is not None else None
        options = init(CalibrationOptions, output_path=output.encode(), items=address(rows),
                       item_count=len(items), **fields)

        def progress(_, given):
            report(ctypes.cast(given, ctypes.POINTER(CalibrationProgress)).contents)

        callback = CalibrationCallback(progress)
        self.check(self.abi.gpushare_calibrate(address(options), callback, None))


class Runtime:
    """One device with its scheduler. A registered kernel stays until the runtime ends."""

    def __init__(self, library, **fields):
        self.library = library
        self._kept = []  # what a registered kernel names
        self.handle = library.make(library.abi.gpushare_runtime_create,
                                   address(init(RuntimeOptions, **fields)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Shuts down within 30 s of the device's clock and releases the runtime."""
        if self.handle is None:
            return
        handle, self.handle = self.handle, None
        abi = self.library.abi
        now = i64()
        abi.gpushare_now_ns(handle, ctypes.byref(now))
        shutdown = abi.gpushare_runtime_shutdown(handle, now.value + 30 * 10**9)
        for kernel in self._kept:
            abi.gpushare_kernel_release(kernel[0])
        self.library.check(abi.gpushare_runtime_release(handle))
        self.library.check(shutdown)

    def register(self, options):
        kernel = self.library.make(self.library.abi.gpushare_kernel_register, self.handle,
                                   address(options))
        self._kept.append((kernel, options))
        return kernel

    def info(self):
        info = init(DeviceInfo)
        self.library.check(self.library.abi.gpushare_device_info_get(self.handle, address(info)))
        return info

    def stats(self):
        stats = init(RuntimeStats)
        self.library.check(
            self.library.abi.gpushare_runtime_stats_get(self.handle, address(stats)))
        return stats


class App:
    """An app with one queue."""

    def __init__(self, runtime, app_class, name, **fields):
        self.library = runtime.library
        abi = self.library.abi
        options = init(AppOptions, app_class=app_class, name=name.encode(), **fields)
        self.app = self.library.make(abi.gpushare_app_create, runtime.handle, address(options))
        self.queue = self.library.make(abi.gpushare_queue_create, self.app)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Releases the queue and the app. Retries: the last callback may not have returned yet."""
        for release, handle in ((self.library.abi.gpushare_queue_release, self.queue),
                                (self.library.abi.gpushare_app_release, self.app)):
            status = release(handle)
            for _ in range(1000):
                if status != FAILED_PRECONDITION:
                    break
                time.sleep(0.001)
                status = release(handle)
            self.library.check(status)


_leaked = []  # kept until the process ends: tasks of a failed load may still use it


def run_load(runtime, lc=None, be=None, lc_task=None, be_task=None, arrivals_ns=(), span_ns=0,
             warm_up_queries=10, be_depth=4, virtual_time=False):
    """One window of load (catalogue.h): the result and the latencies in ns."""
    library = runtime.library
    count = len(arrivals_ns)
    arrivals = (i64 * max(1, count))(*arrivals_ns)
    latencies = (i64 * max(1, count))()
    options = LoadOptions(
        runtime=runtime.handle, lc_queue=lc.queue if lc else None,
        be_queue=be.queue if be else None, lc_task=address(lc_task) if lc else None,
        be_task=address(be_task) if be else None, arrivals_ns=address(arrivals),
        latencies_ns=address(latencies), span_ns=span_ns, query_count=count,
        warm_up_queries=warm_up_queries if lc else 0, be_depth=be_depth if be else 0,
        virtual_time=1 if virtual_time else 0)
    result = LoadResult()
    load = library.make_example(library.example.gpushare_example_load_new, address(options))
    code = library.example.gpushare_example_load_run(load, address(result))
    if code != 0:
        # Tasks may still run, so everything that they use stays until the process ends.
        _leaked.append((options, arrivals, latencies, lc_task, be_task))
    library.check_example(code)
    library.example.gpushare_example_load_free(load)
    return result, list(latencies)[:count]
