// The question of which arrangement to use: what of a snapshot the choice depends on.
//
// It is small and coarse, so that most plans ask one that was asked before: loads are rounded,
// shifts rounded up. Threads: the planner's.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_QUESTION_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_QUESTION_H_

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "src/core/base/limits.h"
#include "src/core/policies/adaptive/arrangement/arrangement.h"
#include "src/core/policies/adaptive/arrangement/shift.h"
#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "src/core/policies/parts/be_quota.h"
#include "src/core/promise/promise.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// An inflation that no bound allows.
inline constexpr double kUnboundedInflation = 1 / kTie;

// One LC app in the question.
struct LcTerm {
  bool silent = false;  // it has never sent a query: no arrangement is judged by it
  double load = 0;
  PlannedPromise promise;  // its solo duration and target tail are rounded up
  // With a target: its highest load of late, rounded. What its side must carry, and where the p99
  // is stated the load at which the side must keep the target: a lull is not the app's load.
  double peak_load = 0;
  double slowdown_max = kUnboundedInflation;  // on a side that may be chosen (lag.h), rounded down
  bool operator==(const LcTerm&) const = default;
};

// One BE kernel that has a head or runs.
struct BeTerm {
  static constexpr double kUnbounded = kUnboundedInflation;
  int32_t kernel = -1;
  bool fits = false;  // every LC app allows the shift by it (shift.h)
  double share = 0;   // of the idle periods in which it runs on the whole device; 1 if it fits
  bool evictable = false;
  int64_t shift_ns = 0;  // of a p99 by it, rounded up; 0 unless it fits
  int64_t stays_ns = 0;  // evicted, rounded up; 0 if nothing evicts it
  double weight = 1;
  // Throughput that its quota or a reservation leaves it, or fewer workers an SM.
  double most = kUnbounded;
  bool confined = false;   // it has one place, never the LC side (be_quota.h)
  int64_t segment_ns = 0;  // of a graph in segments; else 0
  bool operator==(const BeTerm&) const = default;
};

// What is asked beside the terms of apps and kernels.
struct QuestionFrame {
  uint64_t pairs_version = 0;
  int32_t favoured = kNoSplit;  // FavouredSplit
  int32_t tried_split = kNoSplit;
  double load_margin = 0;   // the LC load may be that much higher; rounded up
  int32_t splits = 0;       // 0: no partitions
  int32_t first_split = 0;  // the first whose LC side holds the reservations
  uint32_t offered = ~0U;   // splits that may be chosen, a bit each
  // BE apps whose tasks run side by side on the whole device, because quotas leave SMs to others;
  // else 1. A side of a split has one lane: there they take turns.
  int32_t beside = 1;
  bool trials_open = false;
  int32_t lc_count = 0;
  int32_t be_count = 0;
  bool operator==(const QuestionFrame&) const = default;
};

struct Question : QuestionFrame {
  std::array<LcTerm, kMaxApps> lc;
  std::array<BeTerm, kMaxHeads + kMaxRunning> be;  // ascending kernel index
  bool operator==(const Question& other) const;
  void CopyFrom(const Question& other);  // only what counts
  bool Offers(int32_t split) const { return (offered >> split & 1) != 0; }
};

// Loads in steps, so that a small change asks the same question.
double RoundLoad(double load);
// How much higher than measured the load of all LC apps may be, rounded up.
double LoadMargin(const Snapshot& snapshot);
LcTerm MakeLcTerm(const LcAppView& app);
// The arrangement that wins near a tie: the one in force. While no BE work is on the device a
// change costs nothing, and the whole device wins, where LC is fastest.
int32_t FavouredSplit(const Snapshot& snapshot);

// Builds the question of one plan. Allocates nothing.
class QuestionBuilder {
 public:
  // Valid until the next call. `offered`: as in Question.
  const Question& Ask(const Snapshot& snapshot, uint32_t offered, Shifts& shifts);
  const Question& question() const { return question_; }

 private:
  // What a kernel's term is made of. Two tasks of a kernel with the same source add the same. The
  // order of the fields keeps the compiler from copying two of them at once. A wide copy of what
  // was just written in parts waits for these writes: it took a tenth of the time of a plan.
  struct TermSource {
    int64_t eviction_ns = 0;
    double weight = 0;
    int64_t uncuttable_ns = 0;
    double speed = 1;  // with the workers that it may have
    int32_t app = -1;  // where a quota or a reservation may bound it
    bool evictable = false;
    bool operator==(const TermSource&) const = default;
  };
  struct KernelScratch {
    BeTerm term;
    TermSource last;
  };

  using KernelBits = std::array<uint64_t, kMaxKernels / kWordBits>;
  struct TermContext {
    const Snapshot& snapshot;
    const BeQuotas& quotas;
    Shifts& shifts;
    bool quiet;  // no LC app has a load
  };
  static constexpr size_t WordsOf(int32_t kernels) {
    return (static_cast<size_t>(kernels) + kWordBits - 1) / kWordBits;
  }

  void AddBeTerms(const Snapshot& snapshot, Shifts& shifts);
  void AddTask(const TermContext& context, const HeadView& task, Delay delay, KernelBits& present);
  // Filled in place: a copy of what was just written in parts waits for these writes.
  static void FillTerm(const TermContext& context, const HeadView& task, const TermSource& source,
                       BeTerm& term);
  // Of the kernels that are present, a bit each.
  void TakeTerms(absl::Span<const uint64_t> present);

  Question question_;
  std::array<KernelScratch, kMaxKernels> by_kernel_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_QUESTION_H_
