// Eviction latency; see eviction_model.h.

#include "src/models/durations/eviction_model.h"

#include <algorithm>
#include <cmath>

#include "src/core/base/limits.h"
#include "src/core/base/tuning.h"
#include "src/core/seams/graph_cut.h"

namespace gpushare::models {
namespace {

// hardware.md: 267 us block tasks leave after 233 us (p50), 2.7 ms ones after 2,450 us.
constexpr double kMeanShare = 0.9;
// The same rows' p99 of 262 and 2,560 us: half the distance is 0.03 of the block task.
constexpr double kErrorShare = 0.03;
// The write itself varies by so much: 27 us block tasks have a p99 of 40 us.
constexpr double kWriteErrorNs = 3000;
// For a kernel of which nothing is known: the order of magnitude of measured block tasks.
constexpr double kUnknownBlockTaskNs = 100000;
// With fewer evictions the prior keeps a part of the weight.
constexpr int64_t kTrustedSamples = 8;
constexpr double kAnnouncedChange = 0.10;

// A graph leaves when its running segment and those behind it on the device have ended: at a random
// time half a segment less than all of them on average, and all of them at the p99.
EvictionState GraphEvictionPrior(const core::DeviceProfile& device, const core::KernelDesc& graph) {
  const core::GraphCut& cut = graph.graph()->cut;
  const int64_t segment_ns = cut.longest_ns > 0 ? cut.longest_ns : core::SegmentNsOf(graph);
  EvictionState prior;
  if (const core::SegmentBlocking& blocking = cut.blocking; blocking.known()) {
    const double write_ns = static_cast<double>(device.eviction_write_latency_ns);
    const double longest_ns = static_cast<double>(blocking.longest_ns());
    const double mean_ns = blocking.mean_ns();
    prior.mean_ns = write_ns + mean_ns;
    prior.error_ns = kWriteErrorNs + (longest_ns - mean_ns) / 2;
    return prior;
  }
  prior.mean_ns = static_cast<double>(device.eviction_write_latency_ns) +
                  (core::kSegmentsOutstanding - 0.5) * static_cast<double>(segment_ns);
  prior.error_ns = kWriteErrorNs + 0.25 * static_cast<double>(segment_ns);
  return prior;
}

}  // namespace

EvictionState EvictionPrior(const core::DeviceProfile& device, const core::KernelDesc& kernel) {
  if (kernel.kind() == core::TaskKind::kGraph) return GraphEvictionPrior(device, kernel);
  // The block task of workers, which are what is evicted, differs from that of the grid.
  const double block_task = static_cast<double>(kernel.simulation.block_task_ns) *
                            (1 + kernel.simulation.worker_overhead);
  const double yield = static_cast<double>(kernel.yield_interval_ns);
  double interval = kUnknownBlockTaskNs;
  if (block_task > 0 && yield > 0) {
    interval = std::min(block_task, yield);
  } else if (block_task > 0 || yield > 0) {
    interval = std::max(block_task, yield);
  }
  EvictionState prior;
  prior.mean_ns = static_cast<double>(device.eviction_write_latency_ns) + kMeanShare * interval;
  prior.error_ns =
      kWriteErrorNs + (kErrorShare + kernel.simulation.block_task_spread / 2) * interval;
  return prior;
}

core::Prediction EvictionModel::Predict() const {
  const double limit = static_cast<double>(core::kMaxDurationNs);
  core::Prediction prediction;
  prediction.duration_ns = static_cast<int64_t>(std::min(state_.mean_ns, limit));
  prediction.error_ns = static_cast<int64_t>(std::min(state_.error_ns, limit));
  prediction.trained = state_.trained;
  return prediction;
}

// Replaces the oldest of a full window. The samples between its place and the new one's move by
// one.
void EvictionModel::Keep(float sample) {
  float& oldest = window_[static_cast<size_t>(seen_ % kWindow)];
  float* const begin = sorted_.data();
  float* end = begin + std::min<int64_t>(seen_, kWindow);
  if (seen_ >= kWindow) {
    float* const gone = std::lower_bound(begin, end, oldest);
    std::copy(gone + 1, end, gone);
    --end;
  }
  float* const at = std::upper_bound(begin, end, sample);
  std::copy_backward(at, end, end + 1);
  *at = sample;
  oldest = sample;
  ++seen_;
}

bool EvictionModel::Observe(double latency_ns) {
  Keep(static_cast<float>(std::max(0.0, latency_ns)));
  const size_t count = static_cast<size_t>(std::min<int64_t>(seen_, kWindow));
  const std::array<float, kWindow>& sorted = sorted_;
  double sum = 0;
  double squares = 0;
  for (size_t i = 0; i < count; ++i) sum += sorted[i];
  const double average = sum / static_cast<double>(count);
  for (size_t i = 0; i < count; ++i) {
    squares += (sorted[i] - average) * (sorted[i] - average);
  }
  const double deviation = std::sqrt(squares / static_cast<double>(count));
  const size_t rank = static_cast<size_t>(std::ceil(0.99 * static_cast<double>(count))) - 1;
  // The largest of fewer than a hundred samples understates the p99, which the deviation bounds
  // from below. No worker stays longer than its block task, so neither bound passes what the record
  // says or what was seen, whichever is later: a few early leavers must not make a kernel look
  // slow.
  const double latest = std::max<double>(prior_.mean_ns + 2 * prior_.error_ns, sorted[rank]);
  // One eviction that took very long, beyond the p99, may pull the average past both.
  const double mean = std::min(average, latest);
  const double tail = std::min(std::max((sorted[rank] - mean) / 2, deviation), (latest - mean) / 2);
  const double trust =
      std::min(1.0, static_cast<double>(count) / static_cast<double>(kTrustedSamples));
  state_.mean_ns = prior_.mean_ns + trust * (mean - prior_.mean_ns);
  state_.error_ns = prior_.error_ns + trust * (tail - prior_.error_ns);
  state_.trained = prior_.trained || trust == 1.0;

  const double bound = state_.mean_ns + 2 * state_.error_ns;
  if (announced_ns_ <= 0) announced_ns_ = prior_.mean_ns + 2 * prior_.error_ns;
  if (std::abs(bound - announced_ns_) <= kAnnouncedChange * announced_ns_) return false;
  announced_ns_ = bound;
  return true;
}

void EvictionModel::Restore(const EvictionState& state) {
  prior_ = state;
  state_ = state;
  announced_ns_ = 0;
  seen_ = 0;
}

}  // namespace gpushare::models
