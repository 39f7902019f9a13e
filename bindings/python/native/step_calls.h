// The calls of a step: submit, wait, both in one, and what a ticket needs. gpushare/_native.py says
// what each takes and gives; gpushare/_by_ctypes.py does the same without this extension.
//
// Invariants: no Python object is touched without the interpreter's lock, which is released for
// each call of the library; a handle is used between Enter and Leave only (use.h). Threads: any.

#ifndef GPUSHARE_BINDINGS_PYTHON_NATIVE_STEP_CALLS_H_
#define GPUSHARE_BINDINGS_PYTHON_NATIVE_STEP_CALLS_H_

#include "bindings/python/native/use.h"

namespace gpushare::python {

// Of METH_FASTCALL. nullptr: a Python error is set.
PyObject* BindLibrary(PyObject*, PyObject* const* given, Py_ssize_t count);
PyObject* Run(PyObject*, PyObject* const* given, Py_ssize_t count);
PyObject* Submit(PyObject*, PyObject* const* given, Py_ssize_t count);
PyObject* Wait(PyObject*, PyObject* const* given, Py_ssize_t count);
PyObject* Record(PyObject*, PyObject* const* given, Py_ssize_t count);
PyObject* Poll(PyObject*, PyObject* const* given, Py_ssize_t count);
PyObject* Drop(PyObject*, PyObject* const* given, Py_ssize_t count);
PyObject* Mark(PyObject*, PyObject* const* given, Py_ssize_t count);

}  // namespace gpushare::python

#endif  // GPUSHARE_BINDINGS_PYTHON_NATIVE_STEP_CALLS_H_
