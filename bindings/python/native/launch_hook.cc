// Gates in front of the CUDA driver's launches. See launch_hook.h.
//
// The package is built without CUDA's headers, so what it reads of them stands here. CUPTI keeps
// both the numbers of calls (cupti_driver_cbid.h) and the arguments (generated_cuda_meta.h): a
// changed call gets a number of its own. tests/python/native/cupti_layout_test.cc compares them
// where the headers are.

#include "bindings/python/native/launch_hook.h"

#include <sched.h>

#include <array>
#include <atomic>
#include <bit>
#include <mutex>

#include "bindings/python/native/driver_arguments.h"

namespace gpushare::python {
namespace {

struct Hooked {
  std::atomic<void*> stream = nullptr;
  std::atomic<EagerGate*> gate = nullptr;
  std::atomic<int> users = 0;  // threads between the look and the end of the call to the gate
  bool taken = false;          // until the last of them has left; guarded by hook_mutex
};

std::array<Hooked, kHookedMax> hooked;
std::mutex hook_mutex;  // guards the rest, and changes of `hooked`
int hooked_count = 0;
void* subscriber = nullptr;
CuptiCalls calls;

struct Operation {
  void* stream = nullptr;
  uint64_t key = 0;
};

uint64_t Mix(uint64_t hash, uint64_t value) { return (hash ^ value) * 0x100000001b3; }  // FNV-1a

template <class Shape>
uint64_t KeyOf(const void* function, const Shape& shape) {
  uint64_t key = Mix(0xcbf29ce484222325, reinterpret_cast<uintptr_t>(function));
  for (const unsigned size : shape.grid) key = Mix(key, size);
  for (const unsigned size : shape.block) key = Mix(key, size);
  return Mix(key, shape.shared_bytes);
}

// Copies of about the same size take about the same time.
uint64_t KeyOf(uint32_t call, uint64_t bytes) {
  return Mix(Mix(0xcbf29ce484222325, call), static_cast<uint64_t>(std::bit_width(bytes)));
}

template <class Arguments>
const Arguments& As(const void* arguments) {
  return *static_cast<const Arguments*>(arguments);
}

Operation OperationOf(uint32_t call, DriverCall kind, const void* arguments) {
  switch (kind) {
    case DriverCall::kKernel: {
      const auto& given = As<LaunchArguments>(arguments);
      return {given.shape.stream, KeyOf(given.function, given.shape)};
    }
    case DriverCall::kKernelEx: {
      const auto& given = As<LaunchExArguments>(arguments);
      return {given.config->stream, KeyOf(given.function, *given.config)};
    }
    case DriverCall::kGraph: {
      const auto& given = As<GraphArguments>(arguments);
      return {given.stream, Mix(call, reinterpret_cast<uintptr_t>(given.graph))};
    }
    case DriverCall::kCopy: {
      const auto& given = As<CopyArguments>(arguments);
      return {given.stream, KeyOf(call, given.size_bytes)};
    }
    case DriverCall::kShapedCopy:
      return {As<ShapedCopyArguments>(arguments).stream, KeyOf(call, 0)};
    case DriverCall::kFill: {
      const auto& given = As<FillArguments>(arguments);
      return {given.stream, KeyOf(call, given.count)};
    }
    case DriverCall::kFill2d: {
      const auto& given = As<Fill2dArguments>(arguments);
      return {given.stream, KeyOf(call, given.width * given.height)};
    }
  }
  return {};
}

void CallGate(Hooked& entry, const Operation& operation, bool begins) {
  entry.users.fetch_add(1);
  // Both are read behind the count: an UnhookGate that clears the gate then waits for this thread.
  if (EagerGate* const gate = entry.gate.load(); gate != nullptr) {
    if (begins) {
      gate->Launch(operation.key);
    } else if (gate->WantsLaunched()) {
      gate->Launched();
    }
  }
  entry.users.fetch_sub(1);
}

void OnDriverCall(void*, int domain, uint32_t call, const void* data) {
  const auto& about = As<CallbackData>(data);
  if (domain != kDriverDomain || about.arguments == nullptr) return;
  for (const HookedCall& known : kHookedCalls) {
    if (known.call != call) continue;
    const Operation operation = OperationOf(call, known.kind, about.arguments);
    for (Hooked& entry : hooked) {
      if (operation.stream == nullptr || entry.stream.load() != operation.stream) continue;
      return CallGate(entry, operation, about.site == kEnter);
    }
    return;
  }
}

int Subscribe(const CuptiCalls& cupti) {
  if (const int status = cupti.subscribe(&subscriber, &OnDriverCall, nullptr); status != 0) {
    return status;
  }
  calls = cupti;
  for (const HookedCall& known : kHookedCalls) {
    const int status = calls.enable_callback(1, subscriber, kDriverDomain, known.call);
    if (status == 0 || !known.required) continue;
    calls.unsubscribe(subscriber);
    return status;
  }
  return 0;
}

// No launch finds the gate any more. nullptr: none did.
Hooked* Hide(const EagerGate* gate) {
  const std::lock_guard<std::mutex> lock(hook_mutex);
  for (Hooked& entry : hooked) {
    if (entry.gate.load() != gate) continue;
    entry.stream.store(nullptr);
    entry.gate.store(nullptr);
    return &entry;
  }
  return nullptr;
}

}  // namespace

int HookGate(const CuptiCalls& cupti, EagerGate* gate) {
  const std::lock_guard<std::mutex> lock(hook_mutex);
  if (hooked_count == kHookedMax) return kTooManyHooked;
  if (hooked_count == 0) {
    if (const int status = Subscribe(cupti); status != 0) return status;
  }
  ++hooked_count;
  for (Hooked& entry : hooked) {
    if (entry.taken) continue;
    entry.taken = true;
    entry.gate.store(gate);
    entry.stream.store(gate->stream());
    break;
  }
  return 0;
}

void UnhookGate(EagerGate* gate) {
  Hooked* const entry = Hide(gate);
  if (entry == nullptr) return;
  // Without the mutex: a thread on its way out may wait for the interpreter's lock, and the thread
  // that has that one may want to hook a gate.
  while (entry->users.load() > 0) sched_yield();
  const std::lock_guard<std::mutex> lock(hook_mutex);
  entry->taken = false;
  if (--hooked_count == 0) calls.unsubscribe(subscriber);
}

}  // namespace gpushare::python
