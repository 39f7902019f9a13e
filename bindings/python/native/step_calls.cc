// The calls of a step (step_calls.h).

#include "bindings/python/native/step_calls.h"

#include <gpushare/gpushare.h>

#include <algorithm>
#include <cstdint>

#include "bindings/python/native/arguments.h"

namespace gpushare::python {
namespace {

// The functions of the library, which the package loads.
struct Library {
  decltype(&gpushare_run_lc) run_lc = nullptr;
  decltype(&gpushare_now_ns) now_ns = nullptr;
  decltype(&gpushare_ticket_wait) ticket_wait = nullptr;
  decltype(&gpushare_ticket_release) ticket_release = nullptr;
  decltype(&gpushare_ticket_record) ticket_record = nullptr;
  decltype(&gpushare_ticket_poll) ticket_poll = nullptr;
  decltype(&gpushare_submit_lc) submit_lc = nullptr;
  decltype(&gpushare_submit_be) submit_be = nullptr;
  decltype(&gpushare_token_stream_mark) mark = nullptr;
};
Library library;

constexpr Py_ssize_t kEventsMax = 8;  // of one task (gpushare.h)

// A wait in slices, so that Ctrl-C ends it: Python handles a signal only between two calls. Each
// slice is a use of the runtime's handle, so the close of a runtime ends the waits of other threads
// within a slice.
struct Slices {
  int64_t timeout_ns = GPUSHARE_NEVER;
  int64_t slice_ns = 0;
  int64_t deadline_ns = -1;  // known from the first slice on
  int64_t until_ns = 0;      // the end of the slice

  // Without the interpreter's lock.
  void Next(gpushare_runtime* runtime) {
    int64_t time_ns = 0;
    if (library.now_ns(runtime, &time_ns) != GPUSHARE_OK) time_ns = 0;
    if (deadline_ns < 0) {
      deadline_ns = timeout_ns >= GPUSHARE_NEVER - time_ns ? GPUSHARE_NEVER : time_ns + timeout_ns;
    }
    until_ns = slice_ns >= deadline_ns - time_ns ? deadline_ns : time_ns + slice_ns;
  }
  bool IsLast() const { return until_ns >= deadline_ns; }
};

// How a task ended, or the status of the call that did not learn it.
struct Ending {
  gpushare_status status = GPUSHARE_OK;
  gpushare_completion_record record = {};
};

PyObject* RecordBytes(const Ending& ending) {
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(&ending.record),
                                   static_cast<Py_ssize_t>(sizeof(ending.record)));
}

// (verdict, record), or the status.
PyObject* EndingOf(const Ending& ending) {
  if (ending.status != GPUSHARE_OK) return PyLong_FromLong(ending.status);
  const Owned verdict(PyLong_FromLong(ending.record.verdict));
  const Owned record(RecordBytes(ending));
  if (verdict.get() == nullptr || record.get() == nullptr) return nullptr;
  return PyTuple_Pack(2, verdict.get(), record.get());
}

void ReadRecord(gpushare_runtime* runtime, gpushare_ticket ticket, Ending& ending) {
  ending.record.struct_size = sizeof(ending.record);
  ending.status = library.ticket_record(runtime, ticket, &ending.record);
}

// Waits until the task is complete or the time is over, slice by slice. False: a Python error.
bool WaitFor(PyObject* use, PyObject* ident, gpushare_ticket ticket, Slices& slices,
             Ending& ending) {
  for (;;) {
    Using using_runtime;
    auto* const runtime = using_runtime.Enter<gpushare_runtime>(use, ident);
    if (runtime == nullptr) return false;
    bool complete = false;
    Py_BEGIN_ALLOW_THREADS;
    slices.Next(runtime);
    ending.status = library.ticket_wait(runtime, ticket, slices.until_ns);
    complete = ending.status == GPUSHARE_OK;
    // Here, while a close of the runtime waits for this use.
    if (complete) ReadRecord(runtime, ticket, ending);
    Py_END_ALLOW_THREADS;
    if (!using_runtime.Leave()) return false;
    if (complete || ending.status != GPUSHARE_DEADLINE_EXCEEDED || slices.IsLast()) return true;
    if (PyErr_CheckSignals() != 0) return false;
  }
}

// The packed arguments of the task's kernel, which the library copies.
bool ReadTaskArguments(PyObject* object, gpushare_task_options& options) {
  char* bytes = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(object, &bytes, &size) != 0) return false;
  if (size > 0) {
    options.arguments = bytes;
    options.arguments_size_bytes = static_cast<uint64_t>(size);
  }
  return true;
}

// What one call of Run is given, and what it uses meanwhile.
struct RunCall {
  explicit RunCall(PyObject* const* arguments) : given(arguments) {}

  PyObject* const* given;
  Owned ident{ThisThread()};
  gpushare_runtime* runtime = nullptr;  // lives as long as the queue is used
  gpushare_task_options options = GPUSHARE_TASK_OPTIONS_INIT;
  Slices slices;
  gpushare_ticket ticket = {0};
  gpushare_verdict verdict = GPUSHARE_VERDICT_PENDING;
  Ending ending;

  bool Read() {
    return ReadTaskArguments(given[4], options) && python::Read(given[5], options.query.value) &&
           python::Read(given[6], options.arrival_ns) &&
           python::Read(given[7], options.next_within_ns) &&
           python::Read(given[8], slices.timeout_ns) && python::Read(given[9], slices.slice_ns) &&
           ReadAddress(given[12], runtime);
  }

  // Submits, and waits for one slice. False: a Python error.
  bool First() {
    Using using_queue, using_kernel;
    auto* const queue = using_queue.Enter<gpushare_queue>(given[1], ident.get());
    if (queue == nullptr) return false;
    options.kernel = using_kernel.Enter<gpushare_kernel>(given[2], ident.get());
    if (options.kernel == nullptr) return false;
    Py_BEGIN_ALLOW_THREADS;
    slices.Next(runtime);
    ending.status = library.run_lc(queue, &options, slices.until_ns, &verdict, &ticket);
    if (ending.status == GPUSHARE_OK && ticket.value != 0) ReadRecord(runtime, ticket, ending);
    Py_END_ALLOW_THREADS;
    // Before the kernel is left: who finds it unused looks here next (torch/_in_flight.py).
    if (!IsWell() && !Note()) return false;
    return using_kernel.Leave() && using_queue.Leave();
  }

  bool IsWell() const { return ending.status == GPUSHARE_OK && verdict == GPUSHARE_VERDICT_OK; }

  // Notes that the task may go on: left[name] = object().
  bool Note() {
    if (given[10] == Py_None) return true;
    const Owned mark(PyObject_CallObject(reinterpret_cast<PyObject*>(&PyBaseObject_Type), nullptr));
    return mark.get() != nullptr && PyObject_SetItem(given[10], given[11], mark.get()) == 0;
  }

  bool Wait() {
    if (!First()) return false;
    if (ticket.value == 0) return true;
    // Otherwise Python handles a signal before the caller has the ticket, and nobody releases it.
    if (PyErr_CheckSignals() != 0) return false;
    const bool goes_on = ending.status == GPUSHARE_DEADLINE_EXCEEDED && !slices.IsLast();
    return !goes_on || WaitFor(given[0], ident.get(), ticket, slices, ending);
  }

  // Gives the ticket back, which the caller never gets. The error that is set stays.
  void Abandon() {
    if (ticket.value == 0) return;
    PyObject *kind = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&kind, &value, &trace);
    Release();
    PyErr_Restore(kind, value, trace);
  }

  void Release() {
    Using using_runtime;
    auto* const open = using_runtime.Enter<gpushare_runtime>(given[0], ident.get());
    if (open == nullptr) return PyErr_Clear();  // it is closed, and the ticket ended with it
    Py_BEGIN_ALLOW_THREADS;
    library.ticket_release(open, ticket);
    Py_END_ALLOW_THREADS;
  }

  // None, or (status, ticket, verdict, record).
  PyObject* Result() {
    const bool complete = ending.status == GPUSHARE_OK;
    if (complete && ticket.value != 0) verdict = ending.record.verdict;
    if (IsWell()) {
      Abandon();
      Py_RETURN_NONE;
    }
    const Owned record(complete ? RecordBytes(ending) : Py_BuildValue(""));
    if (record.get() == nullptr) return nullptr;
    return Py_BuildValue("iKiO", ending.status, static_cast<unsigned long long>(ticket.value),
                         verdict, record.get());
  }
};

}  // namespace

// (addresses of the functions in the order of Library ..., sizeof(gpushare_completion_record))
PyObject* BindLibrary(PyObject*, PyObject* const* given, Py_ssize_t count) {
  Library found;
  uint64_t record_size_bytes = 0;
  if (!HasCount(count, 10) || !PrepareUses() || !ReadAddress(given[0], found.run_lc) ||
      !ReadAddress(given[1], found.now_ns) || !ReadAddress(given[2], found.ticket_wait) ||
      !ReadAddress(given[3], found.ticket_release) || !ReadAddress(given[4], found.ticket_record) ||
      !ReadAddress(given[5], found.ticket_poll) || !ReadAddress(given[6], found.submit_lc) ||
      !ReadAddress(given[7], found.submit_be) || !ReadAddress(given[8], found.mark) ||
      !Read(given[9], record_size_bytes)) {
    return nullptr;
  }
  if (record_size_bytes != sizeof(gpushare_completion_record)) {
    PyErr_SetString(PyExc_ImportError, "The extension is of another version of the package.");
    return nullptr;
  }
  library = found;
  Py_RETURN_NONE;
}

// (runtime, queue, kernel: uses, calls: a use or None, arguments, query, arrival_ns,
//  next_within_ns, timeout_ns, slice_ns, left: a dict or None, name,
//  the runtime's handle)
PyObject* Run(PyObject*, PyObject* const* given, Py_ssize_t count) {
  if (!HasCount(count, 13)) return nullptr;
  RunCall call(given);
  Using using_calls;
  if (given[3] != Py_None && using_calls.Enter<void>(given[3], call.ident.get()) == nullptr) {
    return nullptr;
  }
  if (!call.Read()) return nullptr;
  PyObject* const result = call.Wait() ? call.Result() : nullptr;
  if (result == nullptr) call.Abandon();
  if (using_calls.Leave()) return result;
  Py_XDECREF(result);
  return nullptr;
}

// (queue, kernel: uses, best_effort, arguments, query, arrival_ns, next_within_ns, block_tasks,
//  events: a tuple of addresses)
PyObject* Submit(PyObject*, PyObject* const* given, Py_ssize_t count) {
  gpushare_task_options options = GPUSHARE_TASK_OPTIONS_INIT;
  int best_effort = 0;
  if (!HasCount(count, 9) || !Read(given[2], best_effort) ||
      !ReadTaskArguments(given[3], options) || !Read(given[4], options.query.value) ||
      !Read(given[5], options.arrival_ns) || !Read(given[6], options.next_within_ns) ||
      !Read(given[7], options.block_tasks)) {
    return nullptr;
  }
  void* events[kEventsMax];
  const Py_ssize_t event_count = std::min(PyTuple_Size(given[8]), kEventsMax);
  for (Py_ssize_t place = 0; place < event_count; ++place) {
    events[place] = PyLong_AsVoidPtr(PyTuple_GetItem(given[8], place));
  }
  if (PyErr_Occurred() != nullptr) return nullptr;
  if (event_count > 0) {
    options.wait_events = events;
    options.wait_event_count = static_cast<uint32_t>(event_count);
  }
  const Owned ident(ThisThread());
  Using using_queue, using_kernel;
  auto* const queue = using_queue.Enter<gpushare_queue>(given[0], ident.get());
  if (queue == nullptr) return nullptr;
  options.kernel = using_kernel.Enter<gpushare_kernel>(given[1], ident.get());
  if (options.kernel == nullptr) return nullptr;
  gpushare_status status = GPUSHARE_OK;
  gpushare_ticket ticket = {0};
  Py_BEGIN_ALLOW_THREADS;
  status = (best_effort != 0 ? library.submit_be : library.submit_lc)(queue, &options, &ticket);
  Py_END_ALLOW_THREADS;
  if (!using_kernel.Leave() || !using_queue.Leave()) return nullptr;
  if (status != GPUSHARE_OK) return PyLong_FromLong(-status);
  return PyLong_FromUnsignedLongLong(ticket.value);
}

// (runtime: a use, ticket, timeout_ns, slice_ns)
PyObject* Wait(PyObject*, PyObject* const* given, Py_ssize_t count) {
  gpushare_ticket ticket = {0};
  Slices slices;
  if (!HasCount(count, 4) || !Read(given[1], ticket.value) || !Read(given[2], slices.timeout_ns) ||
      !Read(given[3], slices.slice_ns)) {
    return nullptr;
  }
  const Owned ident(ThisThread());
  Ending ending;
  if (!WaitFor(given[0], ident.get(), ticket, slices, ending)) return nullptr;
  return EndingOf(ending);
}

namespace {

// Calls the library with the handle of a runtime: given[0], and the ticket given[1]. False: a
// Python error.
template <class Call>
bool WithRuntime(PyObject* const* given, Call call) {
  gpushare_ticket ticket = {0};
  if (!Read(given[1], ticket.value)) return false;
  const Owned ident(ThisThread());
  Using using_runtime;
  auto* const runtime = using_runtime.Enter<gpushare_runtime>(given[0], ident.get());
  if (runtime == nullptr) return false;
  Py_BEGIN_ALLOW_THREADS;
  call(runtime, ticket);
  Py_END_ALLOW_THREADS;
  return using_runtime.Leave();
}

}  // namespace

// (runtime: a use, ticket)
PyObject* Record(PyObject*, PyObject* const* given, Py_ssize_t count) {
  Ending ending;
  const auto read = [&](auto* runtime, auto ticket) { ReadRecord(runtime, ticket, ending); };
  return HasCount(count, 2) && WithRuntime(given, read) ? EndingOf(ending) : nullptr;
}

// (runtime: a use, ticket)
PyObject* Poll(PyObject*, PyObject* const* given, Py_ssize_t count) {
  gpushare_status status = GPUSHARE_OK;
  gpushare_bool complete = 0;
  const auto poll = [&](auto* runtime, auto ticket) {
    status = library.ticket_poll(runtime, ticket, &complete);
  };
  if (!HasCount(count, 2) || !WithRuntime(given, poll)) return nullptr;
  return PyLong_FromLong(status == GPUSHARE_OK ? complete : -status);
}

// (runtime: a use, ticket)
PyObject* Drop(PyObject*, PyObject* const* given, Py_ssize_t count) {
  const auto release = [](auto* runtime, auto ticket) { library.ticket_release(runtime, ticket); };
  if (!HasCount(count, 2) || !WithRuntime(given, release)) return nullptr;
  Py_RETURN_NONE;
}

// (runtime: a use, ticket, streams: a tuple of their values)
PyObject* Mark(PyObject*, PyObject* const* given, Py_ssize_t count) {
  if (!HasCount(count, 3)) return nullptr;
  const Py_ssize_t stream_count = PyTuple_Size(given[2]);
  if (stream_count < 0) return nullptr;
  auto* const streams = static_cast<gpushare_token_stream*>(
      PyMem_Malloc(sizeof(gpushare_token_stream) * static_cast<size_t>(stream_count)));
  if (streams == nullptr) return PyErr_NoMemory();
  bool is_read = true;
  for (Py_ssize_t place = 0; place < stream_count && is_read; ++place) {
    is_read = Read(PyTuple_GetItem(given[2], place), streams[place].value);
  }
  gpushare_status status = GPUSHARE_OK;
  const auto mark = [&](auto* runtime, auto ticket) {
    status = library.mark(runtime, streams, static_cast<uint32_t>(stream_count), ticket);
  };
  const bool is_marked = is_read && WithRuntime(given, mark);
  PyMem_Free(streams);
  return is_marked ? PyLong_FromLong(status) : nullptr;
}

}  // namespace gpushare::python
