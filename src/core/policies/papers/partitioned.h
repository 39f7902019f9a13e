// partitioned: k partitions with a plan that proves deadlines (thesis on predictable GPUs,
// chapter 3), and BE work on the SMs that it leaves.
//
// The plan is data of the snapshot (seams/partitions.h); models/partition made it and proved it.
// This policy does what the proof assumes of a place:
//
//   - a job runs on its partition's SMs alone. A partition of one app takes its jobs as they come;
//     in a shared one a single job is on the device, and the next is the one with the earliest
//     deadline. It runs to its end
//   - a job that has run for its worst case, in a shared partition, is evicted if it can be, and
//     its rest runs while the partition has nothing else. So only its app loses
//   - BE work is on the SMs of no partition. On an idle partition it runs only where the plan
//     charged each job with its eviction, one launch at a time, and leaves when a job comes. What
//     the plan charged is compared with the p99 of the eviction, so a rarer one may be longer
//   - an LC app without a partition is first on the SMs of no partition. Its work that no place
//     holds waits
//   - BE work that LC work waits for runs on the SMs of no partition, and on the whole device where
//     they do not hold it and no job runs
//
// Without a plan it plans as adaptive does.
//
// Invariants: no job waits but for its partition's. No BE launch is made on a partition with a job,
// and none on an idle one with a p99 of eviction above what the plan charged, but for the task that
// LC work waits for.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PAPERS_PARTITIONED_H_
#define GPUSHARE_SRC_CORE_POLICIES_PAPERS_PARTITIONED_H_

#include "src/core/policies/adaptive/adaptive.h"
#include "src/core/seams/policy.h"

namespace gpushare::core {

class PartitionedPolicy final : public Policy {
 public:
  absl::string_view name() const override { return "partitioned"; }
  // A plan leaves LC apps no order but that of deadlines.
  PolicyProperties properties() const override {
    return {.keeps_reservations = false, .lets_lc_yield = false, .uses_partitions = true};
  }
  void MakePlan(const Snapshot& snapshot, Plan& plan) override;

 private:
  AdaptivePolicy without_plan_{Mechanism::kBest};
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PAPERS_PARTITIONED_H_
