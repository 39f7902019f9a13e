// The uses of handles (use.h). An entry of Use._threads is one call, as in gpushare/_use.py.

#include "bindings/python/native/use.h"

namespace gpushare::python {
namespace {

PyObject* threads_name = nullptr;
PyObject* handle_name = nullptr;
PyObject* releases_name = nullptr;

bool Name(const char* text, PyObject*& out) {
  if (out == nullptr) out = PyUnicode_InternFromString(text);
  return out != nullptr;
}

// Removes one entry of a thread. An error of the comparison is impossible: the list has integers.
void RemoveEntry(PyObject* threads, PyObject* ident) {
  const unsigned long own = PyLong_AsUnsignedLong(ident);
  for (Py_ssize_t place = PyList_Size(threads) - 1; place >= 0; --place) {
    PyObject* const entry = PyList_GetItem(threads, place);
    if (entry == ident || PyLong_AsUnsignedLong(entry) == own) {
      PyList_SetSlice(threads, place, place + 1, nullptr);
      return;
    }
  }
}

}  // namespace

bool PrepareUses() {
  return Name("_threads", threads_name) && Name("handle", handle_name) &&
         Name("_releases", releases_name);
}

PyObject* ThisThread() { return PyLong_FromUnsignedLong(PyThread_get_thread_ident()); }

void* Using::EnterAny(PyObject* use, PyObject* ident) {
  if (ident == nullptr) return nullptr;
  threads_.Reset(PyObject_GetAttr(use, threads_name));
  if (threads_.get() == nullptr || PyList_Append(threads_.get(), ident) != 0) {
    threads_.Reset(nullptr);
    return nullptr;
  }
  Py_INCREF(use);
  use_.Reset(use);
  ident_ = ident;
  // Read after the entry: a close takes the handle away before it looks for calls.
  const Owned handle(PyObject_GetAttr(use, handle_name));
  if (handle.get() == nullptr) return nullptr;
  if (handle.get() != Py_None) return PyLong_AsVoidPtr(handle.get());
  if (!Leave()) return nullptr;
  const Owned error(PyObject_CallMethod(use, "closed_error", nullptr));
  if (error.get() != nullptr) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
  }
  return nullptr;
}

bool Using::Leave() {
  if (use_.get() == nullptr) return true;
  RemoveEntry(threads_.get(), ident_);
  const bool released = PyList_Size(threads_.get()) > 0 || Release();
  use_.Reset(nullptr);
  threads_.Reset(nullptr);
  return released;
}

// An error of the release replaces one that is set, as that of an __exit__ does.
bool Using::Release() {
  PyObject *kind = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&kind, &value, &trace);
  const Owned releases(PyObject_GetAttr(use_.get(), releases_name));
  bool released = releases.get() != nullptr;
  if (released && PyList_Size(releases.get()) > 0) {
    released = Owned(PyObject_CallMethod(use_.get(), "_release", nullptr)).get() != nullptr;
  }
  if (released) {
    PyErr_Restore(kind, value, trace);
    return true;
  }
  Py_XDECREF(kind);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return false;
}

}  // namespace gpushare::python
