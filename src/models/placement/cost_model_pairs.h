// Pairs by the cost model: an LC kind as the launches of one query, a BE kind as one kernel.
//
// Two ways to share the GPU are predicted, and the one with the larger BE rate within the limit
// counts, as adaptive would choose it:
//   whole   BE has what the queries leave, 1 - load, and leaves for each busy period. The p99 moves
//           by the eviction (PredictBlocking), or where the kernel is not evictable by the residual
//           of a launch (core/queueing/vacation.h).
//   split   LC on m SMs at SpeedOn x SpeedBeside, which raises its load; BE on the others while a
//           query is there, and on all between queries.
//
// What it assumes: random arrivals of queries of one length (core/queueing/queue_tail.h), BE work
// that never ends, one LC app a GPU, and errors of one query's launches that go together. Overlap
// inside an SM is left out, which only adds BE. docs/placement.md says how far that goes.
//
// Threads: those of the cost model.

#ifndef GPUSHARE_SRC_MODELS_PLACEMENT_COST_MODEL_PAIRS_H_
#define GPUSHARE_SRC_MODELS_PLACEMENT_COST_MODEL_PAIRS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/fixed_array.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/core/seams/cost_model.h"
#include "src/core/seams/snapshot.h"
#include "src/models/placement/pair_table.h"

namespace gpushare::models::placement {

// Loads from here on are not predicted: the table of P99OverService ends there, and a queue that is
// stable with any margin does too.
inline constexpr double kPredictedLoadMax = 63.0 / 64;
// Entries of a query.
inline constexpr size_t kLaunchesMax = 64;

struct Launches {
  const core::KernelDesc* kernel = nullptr;
  int64_t block_tasks = 0;
  int32_t count = 1;
};

struct LcKind {
  std::string name;
  std::vector<Launches> query;
};

struct BeKind {
  std::string name;
  const core::KernelDesc* kernel = nullptr;
  int64_t block_tasks = 0;
};

class CostModelPairs : public PairSource {
 public:
  // All that is given outlives it. It allocates only for a query of more than kLaunchesMax
  // launches.
  CostModelPairs(const core::Durations& durations, const core::Neighbours& neighbours,
                 absl::Span<const core::SplitView> splits, absl::Span<const LcKind> lc,
                 absl::Span<const BeKind> be)
      : durations_(durations), neighbours_(neighbours), splits_(splits), lc_(lc), be_(be) {}
  std::optional<PairPrediction> Beside(absl::string_view lc_kind, double load,
                                       absl::string_view be_kind, double p99_limit) const override;

 private:
  // Of each entry of a query, alone on the whole device.
  using Times = absl::FixedArray<double, kLaunchesMax>;
  struct Solo {
    double ns = 0;
    double error = 0;  // relative
    const core::KernelDesc* longest = nullptr;
  };
  // Of BE work that leaves or ends before a query starts.
  struct Delay {
    double shift_ns = 0;
    double error_ns = 0;
    double lost_ns = 0;  // BE work for each busy period
  };
  Solo Alone(const LcKind& lc, Times& times_ns) const;
  Delay DelayOf(const BeKind& be, double load, double solo_ns) const;
  PairPrediction Whole(const Solo& solo, double load, const Delay& delay) const;
  std::optional<PairPrediction> Split(const LcKind& lc, const Times& times_ns, const BeKind& be,
                                      const Solo& solo, double load, const Delay& delay,
                                      const core::SplitView& split) const;

  const core::Durations& durations_;
  const core::Neighbours& neighbours_;
  const absl::Span<const core::SplitView> splits_;
  const absl::Span<const LcKind> lc_;
  const absl::Span<const BeKind> be_;
};

}  // namespace gpushare::models::placement

#endif  // GPUSHARE_SRC_MODELS_PLACEMENT_COST_MODEL_PAIRS_H_
