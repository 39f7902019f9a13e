// Puts a gate in front of the CUDA driver's launches on its stream.
//
//   HookGate(cupti, gate) -> a driver call on the gate's stream: gate.Launch(key), the call,
//   UnhookGate(gate)         gate.Launched()
//
// CUPTI calls a function of its subscriber at the begin and at the end of each driver call that is
// enabled. Enabled are kernels, graphs, copies and fills: whatever enqueues them, PyTorch, cuBLAS,
// cuDNN or Triton, in a forward or a backward pass. A call on another stream costs a comparison for
// each gate. CUPTI has one subscriber in a process: the first gate subscribes and the last one
// unsubscribes, so that a profiler that uses CUPTI has it in between.
//
// Invariant: UnhookGate returns when no thread is in the gate any more, which a Close of the gate
// sees to. Threads: any, without the interpreter's lock, which CUPTI's callbacks may need.

#ifndef GPUSHARE_BINDINGS_PYTHON_NATIVE_LAUNCH_HOOK_H_
#define GPUSHARE_BINDINGS_PYTHON_NATIVE_LAUNCH_HOOK_H_

#include <cstdint>

#include "bindings/python/native/eager_gate.h"

namespace gpushare::python {

// As cupti_callbacks.h has it: who subscribed, the domain, the call, CUpti_CallbackData.
using CuptiCallback = void (*)(void* user, int domain, uint32_t call, const void* data);

// Functions of CUPTI. The status 0 is success.
struct CuptiCalls {
  int (*subscribe)(void** out_subscriber, CuptiCallback callback, void* user) = nullptr;
  int (*enable_callback)(uint32_t enable, void* subscriber, int domain, uint32_t call) = nullptr;
  int (*unsubscribe)(void* subscriber) = nullptr;
};

constexpr int kHookedMax = 16;
constexpr int kTooManyHooked = -1;

// 0, a status of CUPTI, or kTooManyHooked. The gate must live until UnhookGate.
int HookGate(const CuptiCalls& cupti, EagerGate* gate);
void UnhookGate(EagerGate* gate);

}  // namespace gpushare::python

#endif  // GPUSHARE_BINDINGS_PYTHON_NATIVE_LAUNCH_HOOK_H_
