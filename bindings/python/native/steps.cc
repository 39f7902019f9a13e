// The module steps, in the file gpushare/_steps.abi3.so: the calls of a step for Python, where
// ctypes costs more than the call.
//
//   bind(run_lc, now_ns, ticket_wait, ticket_release)   addresses in the loaded library
//   run(...) -> None, or (status, verdict, ticket)
//   wait(...) -> status
//   pool_open(limit_bytes, cudaMalloc, cudaFree, cudaGetLastError) -> (pool, alloc, free)
//   pool_state(pool) -> (used_bytes, refusals)
//   pool_close(pool)
//   gate_open, gate_operation, gate_launched, gate_counts, gate_close   gate_calls.h
//
// The functions of CUDA and alloc and free are addresses (memory_pool.h).
//
// It adds nothing to the C ABI: gpushare/_native.py says which calls go through it, and the package
// does the same by ctypes where it is missing. It is not linked to libgpushare, because the package
// decides at run time which file that is. CPython's limited API of 3.10: one file for all versions.
// Invariants: no Python object is touched without the interpreter's lock, which is released for the
// call; the caller holds the handles (gpushare/_use.py). Threads: any.

#include "bindings/python/native/arguments.h"
// (Python.h stands first.)
#include <gpushare/gpushare.h>

#include <cstdint>

#include "bindings/python/native/gate_calls.h"
#include "bindings/python/native/memory_pool.h"

namespace {

namespace python = gpushare::python;
using python::HasCount;
using python::Method;
using python::Read;
using python::ReadHandle;

decltype(&gpushare_run_lc) run_lc = nullptr;
decltype(&gpushare_now_ns) now_ns = nullptr;
decltype(&gpushare_ticket_wait) ticket_wait = nullptr;
decltype(&gpushare_ticket_release) ticket_release = nullptr;

// The end of a slice of a wait (gpushare/_waits.py).
int64_t SliceEnd(gpushare_runtime* runtime, int64_t deadline_ns, int64_t slice_ns) {
  int64_t time_ns = 0;
  if (now_ns(runtime, &time_ns) != GPUSHARE_OK || slice_ns >= deadline_ns - time_ns) {
    return deadline_ns;
  }
  return time_ns + slice_ns;
}

// (runtime, queue, kernel, arguments, query, arrival_ns, next_within_ns, deadline_ns, slice_ns)
PyObject* Run(PyObject*, PyObject* const* given, Py_ssize_t count) {
  gpushare_task_options options = GPUSHARE_TASK_OPTIONS_INIT;
  gpushare_runtime* runtime = nullptr;
  gpushare_queue* queue = nullptr;
  int64_t deadline_ns = 0;
  int64_t slice_ns = 0;
  char* bytes = nullptr;
  Py_ssize_t size = 0;
  if (!HasCount(count, 9) || !ReadHandle(given[0], runtime) || !ReadHandle(given[1], queue) ||
      !ReadHandle(given[2], options.kernel) || PyBytes_AsStringAndSize(given[3], &bytes, &size) ||
      !Read(given[4], options.query.value) || !Read(given[5], options.arrival_ns) ||
      !Read(given[6], options.next_within_ns) || !Read(given[7], deadline_ns) ||
      !Read(given[8], slice_ns)) {
    return nullptr;
  }
  if (size > 0) {
    options.arguments = bytes;
    options.arguments_size_bytes = static_cast<uint64_t>(size);
  }
  gpushare_status status = GPUSHARE_OK;
  gpushare_verdict verdict = GPUSHARE_VERDICT_PENDING;
  gpushare_ticket ticket = {0};
  Py_BEGIN_ALLOW_THREADS;
  const int64_t until_ns = SliceEnd(runtime, deadline_ns, slice_ns);
  status = run_lc(queue, &options, until_ns, &verdict, &ticket);
  Py_END_ALLOW_THREADS;
  // Otherwise Python handles a signal before the caller has the ticket, and nobody releases it.
  if (PyErr_CheckSignals() != 0) {
    if (ticket.value != 0) ticket_release(runtime, ticket);
    return nullptr;
  }
  if (status == GPUSHARE_OK && verdict == GPUSHARE_VERDICT_OK) Py_RETURN_NONE;
  return Py_BuildValue("iiK", status, verdict, static_cast<unsigned long long>(ticket.value));
}

// (runtime, ticket, deadline_ns, slice_ns)
PyObject* Wait(PyObject*, PyObject* const* given, Py_ssize_t count) {
  gpushare_runtime* runtime = nullptr;
  gpushare_ticket ticket = {0};
  int64_t deadline_ns = 0;
  int64_t slice_ns = 0;
  if (!HasCount(count, 4) || !ReadHandle(given[0], runtime) || !Read(given[1], ticket.value) ||
      !Read(given[2], deadline_ns) || !Read(given[3], slice_ns)) {
    return nullptr;
  }
  gpushare_status status = GPUSHARE_OK;
  Py_BEGIN_ALLOW_THREADS;
  status = ticket_wait(runtime, ticket, SliceEnd(runtime, deadline_ns, slice_ns));
  Py_END_ALLOW_THREADS;
  return PyLong_FromLong(status);
}

PyObject* Bind(PyObject*, PyObject* const* given, Py_ssize_t count) {
  if (!HasCount(count, 4)) return nullptr;
  run_lc = reinterpret_cast<decltype(run_lc)>(PyLong_AsVoidPtr(given[0]));
  now_ns = reinterpret_cast<decltype(now_ns)>(PyLong_AsVoidPtr(given[1]));
  ticket_wait = reinterpret_cast<decltype(ticket_wait)>(PyLong_AsVoidPtr(given[2]));
  ticket_release = reinterpret_cast<decltype(ticket_release)>(PyLong_AsVoidPtr(given[3]));
  if (PyErr_Occurred() != nullptr) return nullptr;
  Py_RETURN_NONE;
}

// (limit_bytes, cudaMalloc, cudaFree, cudaGetLastError)
PyObject* PoolOpen(PyObject*, PyObject* const* given, Py_ssize_t count) {
  int64_t limit_bytes = 0;
  if (!HasCount(count, 4) || !Read(given[0], limit_bytes)) return nullptr;
  python::CudaCalls calls;
  calls.malloc = reinterpret_cast<decltype(calls.malloc)>(PyLong_AsVoidPtr(given[1]));
  calls.free = reinterpret_cast<decltype(calls.free)>(PyLong_AsVoidPtr(given[2]));
  calls.get_last_error =
      reinterpret_cast<decltype(calls.get_last_error)>(PyLong_AsVoidPtr(given[3]));
  if (PyErr_Occurred() != nullptr) return nullptr;
  const int pool = python::OpenPool(limit_bytes, calls);
  if (pool < 0) {
    return PyErr_Format(PyExc_RuntimeError, "%d pools are open or still have memory.",
                        python::kPoolsMax);
  }
  return Py_BuildValue("iKK", pool, reinterpret_cast<unsigned long long>(python::PoolAlloc(pool)),
                       reinterpret_cast<unsigned long long>(python::PoolFree(pool)));
}

// False: there is no such pool, and a Python error is set.
bool ReadPool(PyObject* const* given, Py_ssize_t count, int& pool) {
  if (!HasCount(count, 1) || !Read(given[0], pool)) return false;
  if (pool >= 0 && pool < python::kPoolsMax) return true;
  PyErr_Format(PyExc_ValueError, "There is no pool %d.", pool);
  return false;
}

PyObject* PoolState(PyObject*, PyObject* const* given, Py_ssize_t count) {
  int pool = 0;
  if (!ReadPool(given, count, pool)) return nullptr;
  return Py_BuildValue("LL", static_cast<long long>(python::PoolUsedBytes(pool)),
                       static_cast<long long>(python::PoolRefusals(pool)));
}

PyObject* PoolClose(PyObject*, PyObject* const* given, Py_ssize_t count) {
  int pool = 0;
  if (!ReadPool(given, count, pool)) return nullptr;
  python::ClosePool(pool);
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"bind", Method(&Bind), METH_FASTCALL, nullptr},
                         {"run", Method(&Run), METH_FASTCALL, nullptr},
                         {"wait", Method(&Wait), METH_FASTCALL, nullptr},
                         {"pool_open", Method(&PoolOpen), METH_FASTCALL, nullptr},
                         {"pool_state", Method(&PoolState), METH_FASTCALL, nullptr},
                         {"pool_close", Method(&PoolClose), METH_FASTCALL, nullptr},
                         {"gate_open", Method(&python::GateOpen), METH_FASTCALL, nullptr},
                         {"gate_operation", Method(&python::GateOperation), METH_FASTCALL, nullptr},
                         {"gate_launched", Method(&python::GateLaunched), METH_FASTCALL, nullptr},
                         {"gate_counts", Method(&python::GateCounts), METH_FASTCALL, nullptr},
                         {"gate_close", Method(&python::GateClose), METH_FASTCALL, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "steps", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_steps(void) { return PyModule_Create(&module); }
