// The interpreter's lock around a wait of a launch, and the signals that end the wait.
//
// A launch comes from a thread with the lock or without it: PyTorch gives the lock away in most
// operations, and a backward pass has threads without it.
//
//   void* const released = ReleaseInterpreter();
//   ...                                              // IsInterrupted...(released), at times
//   if (released != nullptr) RestoreInterpreter(released);
//
// Threads: any.

#ifndef GPUSHARE_BINDINGS_PYTHON_NATIVE_INTERPRETER_H_
#define GPUSHARE_BINDINGS_PYTHON_NATIVE_INTERPRETER_H_

namespace gpushare::python {

// Gives the lock away. nullptr: this thread does not have it, or nobody can tell, and it stays.
void* ReleaseInterpreter();
void RestoreInterpreter(void* released);

// Runs the handlers of signals. True: one raised, and the Python error is set.
bool IsInterruptedInPython(void* released);
// Inside a call of CUDA's driver, where no Python code may run. True: Ctrl-C was pressed, and the
// interpreter raises when the thread is back in it.
bool IsInterruptedInDriver(void* released);

}  // namespace gpushare::python

#endif  // GPUSHARE_BINDINGS_PYTHON_NATIVE_INTERPRETER_H_
