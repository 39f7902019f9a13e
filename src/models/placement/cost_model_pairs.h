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

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/core/seams/cost_model.h"
#include "src/models/placement/pair_table.h"

namespace gpushare::models::placement {

// Loads from here on are not predicted: the table of P99OverService ends there, and a queue that is
// stable with any margin does too.
inline constexpr double kPredictedLoadMax = 63.0 / 64;

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

// The SMs of the device, and how many LC may have on a split.
struct SmCounts {
  int32_t device = 0;
  std::vector<int32_t> of_lc;
};

class CostModelPairs : public PairSource {
 public:
  // The model and the kernels outlive it.
  CostModelPairs(const core::Durations& durations, const core::Neighbours& neighbours, SmCounts sms,
                 std::vector<LcKind> lc, std::vector<BeKind> be);
  std::optional<PairPrediction> Beside(absl::string_view lc_kind, double load,
                                       absl::string_view be_kind, double p99_limit) const override;

 private:
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
  Solo Alone(const LcKind& lc) const;
  Delay DelayOf(const BeKind& be, double load, double solo_ns) const;
  PairPrediction Whole(const Solo& solo, double load, const Delay& delay) const;
  std::optional<PairPrediction> Split(const LcKind& lc, const BeKind& be, const Solo& solo,
                                      double load, const Delay& delay, int32_t sms) const;

  const core::Durations& durations_;
  const core::Neighbours& neighbours_;
  const SmCounts sms_;
  const std::vector<LcKind> lc_;
  const std::vector<BeKind> be_;
};

}  // namespace gpushare::models::placement

#endif  // GPUSHARE_SRC_MODELS_PLACEMENT_COST_MODEL_PAIRS_H_
