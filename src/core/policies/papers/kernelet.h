// kernelet: BE kernels in pairs, slice by slice (Kernelet 4.2 and 4.3).
//
// Each plan finds the best co-schedule of all pending kernels (co_schedule.h) and queues slices of
// its two kernels, two deep on their lanes: one runs, one waits. The same kernels give the same
// co-schedule, so it goes on until a kernel ends or another arrives. Where no pair gains, two
// kernels take turns in longer slices. Work that cannot be sliced has the device for itself. LC
// queries come first: no slice starts while one is active, and beside LC apps a kernel has one
// slice on the device.
//
// kernelet:base is the paper's BASE: whole kernels in order, two of them issued at a time, so that
// the hardware overlaps their ends.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PAPERS_KERNELET_H_
#define GPUSHARE_SRC_CORE_POLICIES_PAPERS_KERNELET_H_

#include "src/core/seams/policy.h"

namespace gpushare::core {

class KerneletPolicy final : public Policy {
 public:
  explicit KerneletPolicy(bool base) : base_(base) {}
  absl::string_view name() const override { return base_ ? "kernelet:base" : "kernelet"; }
  PolicyProperties properties() const override { return {.keeps_reservations = false}; }
  void MakePlan(const Snapshot& snapshot, Plan& plan) override;

 private:
  const bool base_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PAPERS_KERNELET_H_
