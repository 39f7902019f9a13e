#!/usr/bin/env python3
"""One latency-critical query beside best-effort work, from Python by ctypes. The only argument is the
path of libgpushare.so.1 (default: the installed one). Without a GPU it runs simulated; with one set
GPUSHARE_DEVICE=sim, as its kernels are names of the profile and bring no code (own_kernel/ does)."""
import ctypes
import sys

lib = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libgpushare.so.1")
lib.gpushare_last_error_message.restype = ctypes.c_char_p
LC, BE, NEVER = 1, 2, 2**63 - 1
i32, u32, i64, f64 = ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_double
ptr, text = ctypes.c_void_p, ctypes.c_char_p


def struct(name, *fields):
    """A struct of the C ABI. What the example leaves zero has no names here, only its size."""
    return type(name, (ctypes.Structure,), {"_fields_": [("struct_size", u32), *fields]})


AppOptions = struct("AppOptions", ("app_class", i32), ("name", text), ("target_ns", i64),
                    ("p99_bound", f64), ("p99_alone_ns", i64), ("solo_ns", i64), ("weight", f64), ("rest", i32 * 2))
KernelOptions = struct("KernelOptions", ("kind", i32), ("name", text), ("rest", i64 * 16))
TaskOptions = struct("TaskOptions", ("kind", i32), ("kernel", ptr), ("block_tasks", i64),
                     ("rest", i64 * 20))
Record = struct("Record", ("verdict", i32), ("ids", i64 * 4), ("submit_ns", i64), ("admit_ns", i64),
                ("times", i64 * 3), ("complete_ns", i64), ("rest", i64 * 9))


def check(status):
    if status != 0:
        raise RuntimeError(lib.gpushare_last_error_message().decode())


def make(function, parent, options=None):
    handle = ptr()
    arguments = [parent, ctypes.byref(options)] if options is not None else [parent]
    check(function(*arguments, ctypes.byref(handle)))
    return handle


def options(kind, **fields):
    return kind(struct_size=ctypes.sizeof(kind), **fields)


runtime = make(lib.gpushare_runtime_create, None)
service = make(lib.gpushare_app_create, runtime,
               options(AppOptions, app_class=LC, name=b"service", p99_bound=1.05, p99_alone_ns=2000000))
training = make(lib.gpushare_app_create, runtime, options(AppOptions, app_class=BE, name=b"training"))
lc, be = (make(lib.gpushare_queue_create, app) for app in (service, training))
model, gradient = (make(lib.gpushare_kernel_register, runtime, options(KernelOptions, name=name))
                   for name in (b"chain1", b"sincos_27us"))
step = options(TaskOptions, kernel=gradient, block_tasks=100000)
check(lib.gpushare_submit_be(be, ctypes.byref(step), None))  # no ticket: detached
ticket, record = ctypes.c_uint64(), options(Record)
check(lib.gpushare_submit_lc(lc, ctypes.byref(options(TaskOptions, kernel=model)), ctypes.byref(ticket)))
check(lib.gpushare_ticket_wait(runtime, ticket, i64(NEVER)))
check(lib.gpushare_ticket_record(runtime, ticket, ctypes.byref(record)))
print(f"query: verdict {record.verdict} in {(record.complete_ns - record.submit_ns) // 1000} us")
check(lib.gpushare_runtime_shutdown(runtime, i64(NEVER)))
