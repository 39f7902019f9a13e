// Arguments of the module's functions: Python objects as numbers and handles (steps.cc).
//
// A function that returns false has set a Python error. Threads: those that have the interpreter's
// lock.

#ifndef GPUSHARE_BINDINGS_PYTHON_NATIVE_ARGUMENTS_H_
#define GPUSHARE_BINDINGS_PYTHON_NATIVE_ARGUMENTS_H_

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

#include <cstdint>

namespace gpushare::python {

template <class Number>
bool Read(PyObject* object, Number& out) {
  out = static_cast<Number>(PyLong_AsLongLong(object));
  return PyErr_Occurred() == nullptr;
}
template <>
inline bool Read<uint64_t>(PyObject* object, uint64_t& out) {
  out = PyLong_AsUnsignedLongLong(object);
  return PyErr_Occurred() == nullptr;
}
template <class Handle>
bool ReadHandle(PyObject* object, Handle*& out) {
  out = static_cast<Handle*>(PyLong_AsVoidPtr(object));
  return PyErr_Occurred() == nullptr;
}
// The address of a function, 0: none.
template <class Function>
bool ReadFunction(PyObject* object, Function& out) {
  out = reinterpret_cast<Function>(PyLong_AsVoidPtr(object));
  return PyErr_Occurred() == nullptr;
}

inline bool HasCount(Py_ssize_t count, Py_ssize_t wanted) {
  if (count == wanted) return true;
  PyErr_Format(PyExc_TypeError, "%zd arguments are given, and there must be %zd.", count, wanted);
  return false;
}

template <class Function>
PyCFunction Method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace gpushare::python

#endif  // GPUSHARE_BINDINGS_PYTHON_NATIVE_ARGUMENTS_H_
