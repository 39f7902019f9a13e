// The interpreter's lock around a wait of a launch. See interpreter.h.

#include "bindings/python/native/interpreter.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "bindings/python/native/use.h"

namespace gpushare::python {
namespace {

using ThreadStateCall = PyThreadState* (*)();

// Both names are exported, and neither is in the limited API. PyGILState_Check is no help: it says
// 1 once a subinterpreter was made, whoever has the lock.
ThreadStateCall In(void* object) {
  constexpr std::array kNames = {"PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet"};
  for (const char* const name : kNames) {
    if (void* const found = dlsym(object, name); found != nullptr) {
      return reinterpret_cast<ThreadStateCall>(found);
    }
  }
  return nullptr;
}

// First in the file that has this interpreter: a program may load it with RTLD_LOCAL. The program
// itself is not found by its file's name, but in the default scope.
ThreadStateCall FindThreadState() {
  Dl_info info = {};
  void* object = nullptr;
  if (dladdr(reinterpret_cast<void*>(&PyEval_SaveThread), &info) != 0) {
    object = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }
  const ThreadStateCall found = object != nullptr ? In(object) : nullptr;
  return found != nullptr ? found : In(RTLD_DEFAULT);
}

// From 3.12 on the state is that of the calling thread. Before, it is that of the thread which has
// the lock.
bool IsStateOfThread() {
  int major = 0;
  int minor = 0;
  return std::sscanf(Py_GetVersion(), "%d.%d", &major, &minor) == 2 && minor >= 12;
}

enum class Lock { kUnknown, kElsewhere, kHere };

Lock WhereLockIs() {
  static const ThreadStateCall current = FindThreadState();
  static const bool of_thread = IsStateOfThread();
  if (current == nullptr) return Lock::kUnknown;
  PyThreadState* const state = current();
  if (state == nullptr) return Lock::kElsewhere;
  if (of_thread || state == PyGILState_GetThisThreadState()) return Lock::kHere;
  // A subinterpreter's state on this thread looks like another thread's.
  return Lock::kUnknown;
}

// Python handles signals on its main thread, which is almost always the process's.
bool IsMainThread() { return syscall(SYS_gettid) == getpid(); }

// The signal stays for the interpreter, which raises KeyboardInterrupt.
bool TakeInterrupt() {
  if (PyOS_InterruptOccurred() == 0) return false;
  PyErr_SetInterrupt();
  return true;
}

}  // namespace

void* ReleaseInterpreter() { return WhereLockIs() == Lock::kHere ? PyEval_SaveThread() : nullptr; }

void RestoreInterpreter(void* released) {
  PyEval_RestoreThread(static_cast<PyThreadState*>(released));
}

bool IsInterruptedInPython(void* released) {
  if (released == nullptr) return false;
  RestoreInterpreter(released);
  const bool raised = PyErr_CheckSignals() != 0;
  PyEval_SaveThread();
  return raised;
}

bool IsInterruptedInDriver(void* released) {
  if (!IsMainThread()) return false;
  if (released != nullptr) {
    RestoreInterpreter(released);
    const bool interrupted = TakeInterrupt();
    PyEval_SaveThread();
    return interrupted;
  }
  // PyTorch gave the lock away. Where nobody can tell, the next look may.
  if (Py_IsInitialized() == 0 || WhereLockIs() != Lock::kElsewhere) return false;
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool interrupted = TakeInterrupt();
  PyGILState_Release(state);
  return interrupted;
}

}  // namespace gpushare::python
