// The module steps, in the file gpushare/_steps.abi3.so: the calls of a step for Python, where
// ctypes costs more than the call.
//
//   bind(...), run(...), submit(...), wait(...), record(...), poll(...), drop(...), mark(...)
//       in step_calls.h
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
// Threads: any, with the interpreter's lock.

#include <cstdint>

#include "bindings/python/native/arguments.h"
#include "bindings/python/native/gate_calls.h"
#include "bindings/python/native/memory_pool.h"
#include "bindings/python/native/step_calls.h"
#include "bindings/python/native/use.h"

namespace {

namespace python = gpushare::python;
using python::HasCount;
using python::Method;
using python::Read;
using python::ReadAddress;

// (limit_bytes, cudaMalloc, cudaFree, cudaGetLastError)
PyObject* PoolOpen(PyObject*, PyObject* const* given, Py_ssize_t count) {
  int64_t limit_bytes = 0;
  python::CudaCalls calls;
  if (!HasCount(count, 4) || !Read(given[0], limit_bytes) || !ReadAddress(given[1], calls.malloc) ||
      !ReadAddress(given[2], calls.free) || !ReadAddress(given[3], calls.get_last_error)) {
    return nullptr;
  }
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

PyMethodDef methods[] = {{"bind", Method(&python::BindLibrary), METH_FASTCALL, nullptr},
                         {"run", Method(&python::Run), METH_FASTCALL, nullptr},
                         {"submit", Method(&python::Submit), METH_FASTCALL, nullptr},
                         {"wait", Method(&python::Wait), METH_FASTCALL, nullptr},
                         {"record", Method(&python::Record), METH_FASTCALL, nullptr},
                         {"poll", Method(&python::Poll), METH_FASTCALL, nullptr},
                         {"drop", Method(&python::Drop), METH_FASTCALL, nullptr},
                         {"mark", Method(&python::Mark), METH_FASTCALL, nullptr},
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
