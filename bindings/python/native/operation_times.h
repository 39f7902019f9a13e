// What each operation of an eager loop is expected to take on the GPU (eager_gate.h).
//
//   Of(key) == 0           nothing is known: the gate measures its next launch alone
//   Seed(key, ns)          what that took
//   RanAtLeast(key, ns)    that showed only so much: it claims twice as much where it runs next
//   Scale(keys, factor)    operations that ran one after the other took so much longer
//
// A key names a kernel with its grid, or a copy with its size (launch_hook.h). Invariants: fixed
// size; two keys that meet in a slot share its time, which follows their mean. Threads: the
// caller's lock.

#ifndef GPUSHARE_BINDINGS_PYTHON_NATIVE_OPERATION_TIMES_H_
#define GPUSHARE_BINDINGS_PYTHON_NATIVE_OPERATION_TIMES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace gpushare::python {

// A training step has a few hundred different kernels and grids: hardly two of them meet.
constexpr size_t kOperationTimes = 16'384;
// Below this launches bound a loop, whatever its operations take.
constexpr float kShortestOperationNs = 500;
constexpr float kLongestOperationNs = 1e9F;
// Weight of a new measurement, and the most by which one may differ: a clock or a neighbour errs.
constexpr float kOperationWeight = 0.25F;
constexpr float kOperationFactorMax = 4;

class OperationTimes {
 public:
  static uint16_t SlotOf(uint64_t key) {
    key *= 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio: neighbouring keys scatter
    return static_cast<uint16_t>(key >> 50);
  }

  // 0: unknown.
  int64_t Of(uint16_t slot) const {
    return std::max<int64_t>(0, static_cast<int64_t>(times_ns_[slot]));
  }
  // Of an unknown one; 0: nothing of it was seen.
  int64_t Claim(uint16_t slot) const {
    return std::max<int64_t>(0, -static_cast<int64_t>(times_ns_[slot]));
  }
  void RanAtLeast(uint16_t slot, int64_t ran_ns) {
    if (times_ns_[slot] > 0) return;
    const float claim_ns = std::min(2 * static_cast<float>(ran_ns), kLongestOperationNs);
    times_ns_[slot] = std::min(times_ns_[slot], -claim_ns);
  }

  void Seed(uint16_t slot, int64_t took_ns) {
    times_ns_[slot] =
        std::clamp(static_cast<float>(took_ns), kShortestOperationNs, kLongestOperationNs);
  }

  template <class Slots>
  void Scale(const Slots& slots, float factor) {
    factor = std::clamp(factor, 1 / kOperationFactorMax, kOperationFactorMax);
    const float step = 1 + kOperationWeight * (factor - 1);
    for (const uint16_t slot : slots) {
      if (times_ns_[slot] <= 0) continue;  // unknown: its measurement was given up
      times_ns_[slot] =
          std::clamp(times_ns_[slot] * step, kShortestOperationNs, kLongestOperationNs);
    }
  }

 private:
  static_assert(kOperationTimes == size_t{1} << (64 - 50), "SlotOf takes the upper bits");
  std::array<float, kOperationTimes> times_ns_{};  // below 0: what an unknown one claims
};

}  // namespace gpushare::python

#endif  // GPUSHARE_BINDINGS_PYTHON_NATIVE_OPERATION_TIMES_H_
