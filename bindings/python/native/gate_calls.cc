// The module's functions for the gate of an eager loop. See gate_calls.h.

#include "bindings/python/native/gate_calls.h"

#include <memory>
#include <utility>

#include "bindings/python/native/eager_gate.h"
#include "bindings/python/native/interpreter.h"
#include "bindings/python/native/launch_hook.h"

namespace gpushare::python {
namespace {

constexpr char kCapsule[] = "gpushare.eager_gate";

struct OpenGate {
  std::unique_ptr<EagerGate> gate;
  bool hooked = false;

  // Nobody is in the gate any more when it is gone.
  gpushare_status Close() {
    gpushare_status status = GPUSHARE_OK;
    const bool unhooks = std::exchange(hooked, false);
    Py_BEGIN_ALLOW_THREADS;
    status = gate->Close();
    if (unhooks) UnhookGate(gate.get());
    Py_END_ALLOW_THREADS;
    return status;
  }
};

HostCalls Host(bool hooked) {
  HostCalls host = SystemCalls();
  host.release = &ReleaseInterpreter;
  host.restore = &RestoreInterpreter;
  host.interrupted = hooked ? &IsInterruptedInDriver : &IsInterruptedInPython;
  return host;
}

// Reads a tuple of addresses; an empty one leaves all functions null.
template <class... Function>
bool ReadTable(PyObject* tuple, Function&... functions) {
  const Py_ssize_t size = PyTuple_Size(tuple);
  if (size <= 0) return size == 0;
  if (!HasCount(size, sizeof...(Function))) return false;
  Py_ssize_t at = 0;
  return (ReadAddress(PyTuple_GetItem(tuple, at++), functions) && ...);
}

bool ReadLibrary(PyObject* tuple, LibraryCalls& out) {
  return ReadTable(tuple, out.region_begin, out.region_end, out.region_room, out.ticket_wait,
                   out.ticket_release);
}

bool ReadDriver(PyObject* tuple, DriverCalls& out) {
  return ReadTable(tuple, out.event_create, out.event_destroy, out.event_record, out.event_query,
                   out.stream_wait_event, out.stream_is_capturing, out.exchange_capture_mode);
}

bool ReadCupti(PyObject* tuple, CuptiCalls& out) {
  return ReadTable(tuple, out.subscribe, out.enable_callback, out.unsubscribe);
}

OpenGate* Find(PyObject* const* given, Py_ssize_t count, Py_ssize_t wanted) {
  if (!HasCount(count, wanted)) return nullptr;
  return static_cast<OpenGate*>(PyCapsule_GetPointer(given[0], kCapsule));
}

void Drop(PyObject* capsule) {
  auto* const open = static_cast<OpenGate*>(PyCapsule_GetPointer(capsule, kCapsule));
  open->Close();
  delete open;
}

}  // namespace

PyObject* GateOpen(PyObject*, PyObject* const* given, Py_ssize_t count) {
  EagerOptions options;
  LibraryCalls library;
  DriverCalls driver;
  CuptiCalls cupti;
  if (!HasCount(count, 8) || !ReadAddress(given[0], options.runtime) ||
      !ReadAddress(given[1], options.queues[0]) || !ReadAddress(given[2], options.queues[1]) ||
      !ReadAddress(given[3], options.stream) || !Read(given[4], options.outstanding_ns) ||
      !ReadLibrary(given[5], library) || !ReadDriver(given[6], driver) ||
      !ReadCupti(given[7], cupti)) {
    return nullptr;
  }
  const bool hooks = cupti.subscribe != nullptr;
  auto open = std::make_unique<OpenGate>();
  open->gate = std::make_unique<EagerGate>(options, library, driver, Host(hooks));
  bool opened = false;
  int status = 0;
  Py_BEGIN_ALLOW_THREADS;
  opened = open->gate->Open();
  if (opened && hooks) status = HookGate(cupti, open->gate.get());
  Py_END_ALLOW_THREADS;
  open->hooked = opened && hooks && status == 0;
  if (!opened || status != 0) {
    open->Close();
    return !opened
               ? PyErr_Format(PyExc_RuntimeError, "The CUDA driver makes no events.")
               : PyErr_Format(PyExc_RuntimeError,
                              status == kTooManyHooked ? "16 gates are open."
                                                       : "CUPTI refuses the gate with status %d.",
                              status);
  }
  PyObject* const capsule = PyCapsule_New(open.get(), kCapsule, &Drop);
  if (capsule == nullptr) {
    open->Close();
    return nullptr;
  }
  static_cast<void>(open.release());
  return capsule;
}

PyObject* GateOperation(PyObject*, PyObject* const* given, Py_ssize_t count) {
  OpenGate* const open = Find(given, count, 2);
  uint64_t key = 0;
  if (open == nullptr || !Read(given[1], key)) return nullptr;
  const gpushare_status status = open->gate->Launch(key);
  if (PyErr_Occurred() != nullptr) return nullptr;  // of a signal's handler
  return PyLong_FromLong(status != GPUSHARE_OK ? -status : open->gate->WantsLaunched() ? 1 : 0);
}

PyObject* GateLaunched(PyObject*, PyObject* const* given, Py_ssize_t count) {
  OpenGate* const open = Find(given, count, 1);
  if (open == nullptr) return nullptr;
  open->gate->Launched();
  Py_RETURN_NONE;
}

PyObject* GateCounts(PyObject*, PyObject* const* given, Py_ssize_t count) {
  const OpenGate* const open = Find(given, count, 1);
  if (open == nullptr) return nullptr;
  const EagerCounts& counts = open->gate->counts();
  return Py_BuildValue("LLLLLL", static_cast<long long>(counts.operations.load()),
                       static_cast<long long>(counts.regions.load()),
                       static_cast<long long>(counts.refusals.load()),
                       static_cast<long long>(counts.on_credit.load()),
                       static_cast<long long>(counts.measured.load()),
                       static_cast<long long>(counts.held_ns.load()));
}

PyObject* GateClose(PyObject*, PyObject* const* given, Py_ssize_t count) {
  OpenGate* const open = Find(given, count, 1);
  if (open == nullptr) return nullptr;
  return PyLong_FromLong(open->Close());
}

}  // namespace gpushare::python
