// The simulated device: a GPU in virtual or in real time, made from a DeviceProfile and the
// kernels' simulation records.
//
// Where in the flow: behind core::Device, in place of the GPU. Virtual time advances only in
// AdvanceTo; in real time each call brings the engine to the time at which it was made.
// Invariants: equal options and equal calls give equal completions. Every accepted launch is
// reported exactly once unless a fault prevents it. Every block task of a counter runs exactly
// once. Launch, Evict and PollCompletions allocate nothing.
// Threads: any for every call. One mutex inside; NowNs, and looks that find nothing new, take none.

#ifndef GPUSHARE_SRC_SIM_SIM_DEVICE_H_
#define GPUSHARE_SRC_SIM_SIM_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "src/core/base/clock.h"
#include "src/core/seams/device.h"
#include "src/sim/sim_options.h"

namespace gpushare::sim {

// `clock`: what a device in real time follows; null: the steady clock. Errors: INVALID_ARGUMENT if
// the profile has sizes, rates or latencies that no GPU can have.
absl::StatusOr<std::unique_ptr<core::Device>> MakeSimDevice(
    const SimOptions& options, std::unique_ptr<const core::Clock> clock = nullptr);

}  // namespace gpushare::sim

#endif  // GPUSHARE_SRC_SIM_SIM_DEVICE_H_
