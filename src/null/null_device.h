// The null device: every launch is complete before Launch returns.
//
// It measures what the library itself costs (benchmarks), and lets tests of the flow run without
// time passing. Clock: the real steady clock. It keeps the device contract
// (src/core/seams/device.h) as far as a device without work can: places, lanes, claim counters,
// epochs, opaque host functions.
//
// Threads: every call from any thread; completions are polled by one thread at a time.

#ifndef GPUSHARE_SRC_NULL_NULL_DEVICE_H_
#define GPUSHARE_SRC_NULL_NULL_DEVICE_H_

#include <memory>

#include "src/core/seams/device.h"

namespace gpushare::null {

std::unique_ptr<core::Device> MakeNullDevice();

}  // namespace gpushare::null

#endif  // GPUSHARE_SRC_NULL_NULL_DEVICE_H_
