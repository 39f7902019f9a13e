// The null device: every launch is complete before Launch returns.
//
// It measures the cost of the library itself, and lets tests of the flow run without time passing.
// It keeps the device contract (src/core/seams/device.h) as far as a device without work can:
// places, lanes, claim counters, epochs, opaque host functions. Its clock is the real steady clock.
// Threads: any for every call; one thread at a time polls completions.

#ifndef GPUSHARE_SRC_NULL_NULL_DEVICE_H_
#define GPUSHARE_SRC_NULL_NULL_DEVICE_H_

#include <memory>

#include "src/core/seams/device.h"

namespace gpushare::null {

std::unique_ptr<core::Device> MakeNullDevice();

}  // namespace gpushare::null

#endif  // GPUSHARE_SRC_NULL_NULL_DEVICE_H_
