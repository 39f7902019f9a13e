// The measured speed of one kernel beside another in the other partition.
//
// The roofline of scaling.h is the prior. It knows no clusters, no L2 slices and no launch latency
// beside a busy neighbour, which cost an LC graph some per cent (docs/hardware.md). A pair is
// trusted after a few samples and then followed slowly. Invariants: at most kMaxPairs pairs are
// kept, and observing one of them allocates nothing. Threads: the scheduler's only.

#ifndef GPUSHARE_SRC_MODELS_PAIRS_PAIR_MODEL_H_
#define GPUSHARE_SRC_MODELS_PAIRS_PAIR_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "src/core/base/types.h"
#include "src/core/seams/kernel.h"

namespace gpushare::models {

inline constexpr size_t kMaxPairs = 2048;
inline constexpr int64_t kPairSamplesTrusted = 4;  // a mean of fewer is not used

// A mean that is exact at first and forgets later.
struct FollowedMean {
  int64_t samples = 0;
  double mean = 0;
  double announced = 0;

  bool trusted() const;
  // Returns whether the mean, once trusted, is more than `step` away from what was last announced.
  bool Observe(double value, double step);
};

// The speed of a kernel beside copies, by core::LinkUse.
using CopySpeeds = std::array<FollowedMean, core::kLinkUses>;

// The speed of a pair. Several samples in a row that are all far above the mean, or all far below,
// begin it anew. A profile of another GPU can be wrong by 30 %, which a mean over 64 samples
// follows too slowly.
struct FollowedSpeed : FollowedMean {
  int32_t far = 0;  // samples in a row; below 0: below the mean
  double far_sum = 0;
  bool met = false;  // it has samples of this run

  enum class Change : uint8_t { kNone, kMean, kBegunAnew };
  Change Observe(double value, double step);
};

// `kernel` on `sms` SMs while `neighbour` runs on the others.
struct PairKey {
  uint32_t kernel = 0;
  uint32_t neighbour = 0;
  int32_t sms = 0;

  bool operator==(const PairKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const PairKey& key) {
    return H::combine(std::move(state), key.kernel, key.neighbour, key.sms);
  }
};

class PairModel {
 public:
  // All memory at once, in the map's constructor: a reserve that finds no memory leaves a map that
  // cannot be destroyed. An eighth of the buckets stays empty, and their number is 2^n - 1.
  PairModel() : speeds_(2 * kMaxPairs - 1) {}

  // Factor on the speed of the kernel; 0 if it is not known.
  double SpeedOf(const PairKey& key) const;
  // Returns whether predictions have changed enough to plan anew.
  bool ObserveSpeed(const PairKey& key, double factor);

  // A sample that agrees with the pair's speed, without a value of its own: the far samples before
  // it were something else.
  void Confirm(const PairKey& key);

  // A pair that a trial did not measure counts as trusted at `factor`. One that is trusted stays.
  void GiveUp(const PairKey& key, double factor);

  // The kernel's identifier is that of another kernel from now on.
  void Forget(uint32_t kernel) {
    absl::erase_if(speeds_, [kernel](const auto& pair) {
      return pair.first.kernel == kernel || pair.first.neighbour == kernel;
    });
  }

  // What is known, and what was forgotten (no samples).
  const absl::flat_hash_map<PairKey, FollowedSpeed>& speeds() const { return speeds_; }
  void Restore(const PairKey& key, const FollowedMean& state);

 private:
  void ForgetUnmet(const PairKey& like);

  absl::flat_hash_map<PairKey, FollowedSpeed> speeds_;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_PAIRS_PAIR_MODEL_H_
