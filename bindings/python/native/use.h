// A call that uses the handle of a gpushare._use.Use: the with block of that class, for C.
//
//   Using using_it;
//   auto* handle = using_it.Enter<gpushare_queue>(use, ident);    // nullptr: a Python error is set
//   ...
//   if (!using_it.Leave()) return nullptr;                        // the destructor leaves too
//
// Invariants: the caller holds the interpreter's lock at each call; a close of another thread waits
// until Leave. Threads: any; an object is one thread's.

#ifndef GPUSHARE_BINDINGS_PYTHON_NATIVE_USE_H_
#define GPUSHARE_BINDINGS_PYTHON_NATIVE_USE_H_

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030A0000
#endif
#include <Python.h>

namespace gpushare::python {

// A reference of a Python object, which may be none.
class Owned {
 public:
  explicit Owned(PyObject* object = nullptr) : object_(object) {}
  ~Owned() { Py_XDECREF(object_); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  PyObject* get() const { return object_; }
  void Reset(PyObject* object) {
    PyObject* const before = object_;
    object_ = object;
    Py_XDECREF(before);
  }

 private:
  PyObject* object_;
};

// Makes the names of the attributes, once. False: a Python error is set.
bool PrepareUses();

// The calling thread, as threading.get_ident() says it. A new reference, or nullptr with an error.
PyObject* ThisThread();

class Using {
 public:
  Using() = default;
  ~Using() { Leave(); }
  Using(const Using&) = delete;
  Using& operator=(const Using&) = delete;

  // The handle of `use`, until Leave. nullptr: it is closed, and a Python error is set.
  template <class Handle>
  Handle* Enter(PyObject* use, PyObject* ident) {
    return static_cast<Handle*>(EnterAny(use, ident));
  }
  // Ends the use. The last one of a handle that was closed meanwhile releases it. False: that
  // failed, and a Python error is set.
  bool Leave();

 private:
  void* EnterAny(PyObject* use, PyObject* ident);
  bool Release();

  Owned use_;
  Owned threads_;
  PyObject* ident_ = nullptr;
};

}  // namespace gpushare::python

#endif  // GPUSHARE_BINDINGS_PYTHON_NATIVE_USE_H_
