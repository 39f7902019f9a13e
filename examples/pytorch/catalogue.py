"""libgpushare_catalogue by ctypes (catalogue.h): a load driver, workloads of the kernel catalogue, bare launches."""

import ctypes

from gpushare import abi

i32, u32, i64, u64, f64 = ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64, ctypes.c_double
ptr, text = ctypes.c_void_p, ctypes.c_char_p
task_pointer = ctypes.POINTER(abi.gpushare_task_options)

PLACES, REASONS = 64, 128


class ExampleField(ctypes.Structure):
    _fields_ = [('owner', text), ('name', text), ('offset', u64), ('size', u64)]


class LoadOptions(ctypes.Structure):
    _fields_ = [('runtime', ptr), ('lc_queue', ptr), ('be_queue', ptr), ('lc_task', task_pointer),
                ('be_task', task_pointer), ('arrivals_ns', ctypes.POINTER(i64)), ('latencies_ns', ctypes.POINTER(i64)),
                ('span_ns', i64), ('query_count', i32), ('warm_up_queries', i32), ('be_depth', i32),
                ('virtual_time', i32)]


class LoadResult(ctypes.Structure):
    _fields_ = [('span_ns', i64), ('be_block_tasks', f64), ('be_tasks', i64), ('be_evictions', i64),
                ('lc_queries', i64), ('wrong_verdicts', i64), ('lc_places', i64 * PLACES), ('be_places', i64 * PLACES),
                ('lc_reasons', i64 * REASONS), ('be_reasons', i64 * REASONS), ('be_holds', i64 * REASONS)]


STRUCTS = {'gpushare_example_load_options': LoadOptions, 'gpushare_example_load_result': LoadResult}

FUNCTIONS = {
    'load_new': [ctypes.POINTER(LoadOptions), ctypes.POINTER(ptr)],
    'load_run': [ptr, ctypes.POINTER(LoadResult)],
    'workload_new': [text, f64, u32, i32, ctypes.POINTER(ptr)],
    'workload_fill': [ptr, ctypes.POINTER(abi.gpushare_kernel_options), task_pointer],
    'workload_clear': [ptr],
    'workload_verify': [ptr, f64, ctypes.POINTER(i64), ctypes.POINTER(i64)],
    'graph_new': [ptr, ctypes.POINTER(ptr)],
    'graph_run': [ptr, ctypes.POINTER(i64), ctypes.POINTER(i64), i32, ctypes.POINTER(i64)],
}


class Catalogue:
    """The loaded library. Its functions are called by their names without gpushare_example_."""

    def __init__(self, path='libgpushare_catalogue.so'):
        self.library = ctypes.CDLL(path)
        for name, arguments in FUNCTIONS.items():
            function = getattr(self.library, 'gpushare_example_' + name, None)
            if function is None:
                continue  # a build without CUDA has no workloads and no graphs
            function.argtypes, function.restype = arguments, i32
        self.library.gpushare_example_load_free.argtypes = [ptr]
        self.library.gpushare_example_load_free.restype = None
        self.library.gpushare_example_error.argtypes = []
        self.library.gpushare_example_error.restype = text
        self.library.gpushare_example_layout.argtypes = [u32]
        self.library.gpushare_example_layout.restype = ctypes.POINTER(ExampleField)
        self.check_layouts()

    def check_layouts(self):
        """Checks every field, offset and size of this library's structs against C."""
        left = {(owner, name) for owner, kind in STRUCTS.items()
                for name in [None] + [field[0] for field in kind._fields_]}
        index = 0
        while row := self.library.gpushare_example_layout(index):
            field = row.contents
            owner, name = field.owner.decode(), field.name.decode() if field.name else None
            kind = STRUCTS[owner]
            ours = ((0, ctypes.sizeof(kind)) if name is None else
                    (getattr(kind, name).offset, getattr(kind, name).size))
            if ours != (field.offset, field.size):
                raise RuntimeError(f'{owner}.{name} lies at {ours[0]} with {ours[1]} bytes here, and at '
                                   f'{field.offset} with {field.size} bytes in C.')
            left.discard((owner, name))
            index += 1
        if left:
            raise RuntimeError(f'C does not know {sorted(left, key=str)[0]}.')

    def has_cuda(self):
        return hasattr(self.library, 'gpushare_example_workload_new')

    def call(self, name, *arguments):
        """Calls a function. A failure raises RuntimeError with the library's sentence."""
        if getattr(self.library, 'gpushare_example_' + name)(*arguments) != 0:
            raise RuntimeError(self.library.gpushare_example_error().decode())

    def make(self, name, *arguments):
        handle = ptr()
        self.call(name, *arguments, ctypes.byref(handle))
        return handle


_leaked = []  # kept until the process ends: tasks of a failed load may still use it


def run_load(catalogue, runtime, lc=None, be=None, lc_task=None, be_task=None, arrivals_ns=(), span_ns=0,
             warm_up_queries=10, be_depth=4, virtual_time=False):
    """One window of load (catalogue.h) by gpushare.App objects: the result and the latencies in ns."""
    count = len(arrivals_ns)
    arrivals = (i64 * max(1, count))(*arrivals_ns)
    latencies = (i64 * max(1, count))()
    options = LoadOptions(
        runtime=runtime.handle, lc_queue=lc.queue.handle if lc else None, be_queue=be.queue.handle if be else None,
        lc_task=ctypes.pointer(lc_task) if lc else None, be_task=ctypes.pointer(be_task) if be else None,
        arrivals_ns=arrivals, latencies_ns=latencies, span_ns=span_ns, query_count=count,
        warm_up_queries=warm_up_queries if lc else 0, be_depth=be_depth if be else 0,
        virtual_time=1 if virtual_time else 0)
    result = LoadResult()
    load = catalogue.make('load_new', ctypes.byref(options))
    try:
        catalogue.call('load_run', load, ctypes.byref(result))
    except RuntimeError:
        # Tasks may still run, so everything that they use stays until the process ends.
        _leaked.append((options, arrivals, latencies, lc_task, be_task))
        raise
    catalogue.library.gpushare_example_load_free(load)
    return result, list(latencies)[:count]
