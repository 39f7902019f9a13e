// Reads the arguments of a METH_FASTCALL function. False: an argument is wrong, and a Python error
// is set.
//
// Threads: any, with the interpreter's lock.

#ifndef GPUSHARE_BINDINGS_PYTHON_NATIVE_ARGUMENTS_H_
#define GPUSHARE_BINDINGS_PYTHON_NATIVE_ARGUMENTS_H_

#include <cstdint>

#include "bindings/python/native/use.h"

namespace gpushare::python {

template <class Number>
bool Read(PyObject* object, Number& out) {
  out = static_cast<Number>(PyLong_AsLongLong(object));
  return out != static_cast<Number>(-1) || PyErr_Occurred() == nullptr;
}
template <>
inline bool Read<uint64_t>(PyObject* object, uint64_t& out) {
  out = PyLong_AsUnsignedLongLong(object);
  return out != UINT64_MAX || PyErr_Occurred() == nullptr;
}

// The address of a function, or of an object that the caller holds. 0: none.
template <class Pointed>
bool ReadAddress(PyObject* object, Pointed*& out) {
  out = reinterpret_cast<Pointed*>(PyLong_AsVoidPtr(object));
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
