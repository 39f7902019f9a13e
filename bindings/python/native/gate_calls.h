// The module's functions for the gate of an eager loop (eager_gate.h, launch_hook.h).
//
//   gate_open(runtime, queue, queue, stream, outstanding_ns, library, driver, cupti) -> gate
//   gate_operation(gate, key) -> 0, 1: call gate_launched behind it, or -status
//   gate_launched(gate)
//   gate_counts(gate) -> (operations, regions, refusals, on credit, measured, held ns)
//   gate_close(gate) -> status
//
// library, driver and cupti are tuples of the addresses of their functions, in the order of
// LibraryCalls, DriverCalls and CuptiCalls. An empty cupti: the gate is not in front of the
// driver's launches, and Python calls gate_operation. A gate is a capsule; the last reference
// closes it.

#ifndef GPUSHARE_BINDINGS_PYTHON_NATIVE_GATE_CALLS_H_
#define GPUSHARE_BINDINGS_PYTHON_NATIVE_GATE_CALLS_H_

#include "bindings/python/native/arguments.h"

namespace gpushare::python {

PyObject* GateOpen(PyObject*, PyObject* const* given, Py_ssize_t count);
PyObject* GateOperation(PyObject*, PyObject* const* given, Py_ssize_t count);
PyObject* GateLaunched(PyObject*, PyObject* const* given, Py_ssize_t count);
PyObject* GateCounts(PyObject*, PyObject* const* given, Py_ssize_t count);
PyObject* GateClose(PyObject*, PyObject* const* given, Py_ssize_t count);

}  // namespace gpushare::python

#endif  // GPUSHARE_BINDINGS_PYTHON_NATIVE_GATE_CALLS_H_
