// Copies from samples; see train_copies.h.

#include "src/models/training/train_copies.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "src/models/durations/copy_contention.h"
#include "src/models/profile/profile_limits.h"
#include "src/models/samples/row_times.h"
#include "src/models/training/row_counters.h"

namespace gpushare::models {

bool IsSingleCopy(const SampleRow& row) {
  return row.what == SampleKind::kCopy && !row.both_ways && !row.ns.empty();
}

core::TaskFeatures CopyFeaturesOf(const SampleRow& row) {
  core::TaskFeatures features;
  features.kind = core::TaskKind::kMemcpy;
  features.bytes = row.bytes;
  features.pinned = row.pinned;
  features.direction =
      row.to_device ? core::CopyDirection::kHostToDevice : core::CopyDirection::kDeviceToHost;
  return features;
}

CopyModel TrainCopies(const Samples& samples, const core::DeviceProfile& device,
                      absl::FunctionRef<bool(const SampleRow& row)> trains) {
  CopyModel model;
  for (const SampleRow& row : samples.rows) {
    if (!IsSingleCopy(row) || !trains(row)) continue;
    for (const double ns : row.ns) model.Observe(device, CopyFeaturesOf(row), ns);
  }
  return model;
}

void FitCopySlowdowns(const Samples& samples, core::DeviceProfile& device) {
  CopyContention model;
  std::array<bool, 2> known = {};  // from and to the device
  for (const SampleRow& row : samples.rows) {
    const bool counts = row.what == SampleKind::kBesideCopy && row.pinned && !row.both_ways;
    const core::KernelCounters counters =
        counts ? CountersOf(samples, row.kernel) : core::KernelCounters();
    const double kept = MedianRatio(row.alone_ns, row.ns);
    if (!counters.present() || !(kept > 0)) continue;
    const ContendedCopy copy{row.to_device, true, static_cast<double>(row.bytes)};
    model.ObserveKernelBesideCopy(copy, counters.dram, kept);
    known[row.to_device ? 1 : 0] = true;
  }
  // At a share of 1 the slowdown itself is what is lost.
  const auto slowdown = [&model](bool to_device) {
    return 1 / model.KernelBesideCopyKept({to_device, true, 0}, 1) - 1;
  };
  if (known[1]) device.copy_in_slowdown = std::min(slowdown(true), kCopySlowdownMax);
  if (known[0]) device.copy_out_slowdown = std::min(slowdown(false), kCopySlowdownMax);
}

void TrainCopies(const Samples& samples, const core::DeviceProfile& device, Learned& learned) {
  const CopyModel model = TrainCopies(samples, device, [](const SampleRow&) { return true; });
  for (LearnedCopies& trained : model.Save()) {
    const auto known = std::find_if(
        learned.copies.begin(), learned.copies.end(), [&trained](const LearnedCopies& one) {
          return one.direction == trained.direction && one.pinned == trained.pinned;
        });
    if (known != learned.copies.end()) {
      *known = std::move(trained);
    } else {
      learned.copies.push_back(std::move(trained));
    }
  }
}

}  // namespace gpushare::models
