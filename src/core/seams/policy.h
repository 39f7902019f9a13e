// The policy seam: a pure function from a snapshot to a plan.
//
// A policy keeps no state that changes its answers, reads no clock and calls no device. It may
// memoise results of the snapshot's own tables. The scheduler thread calls it.

#ifndef GPUSHARE_SRC_CORE_SEAMS_POLICY_H_
#define GPUSHARE_SRC_CORE_SEAMS_POLICY_H_

#include "absl/strings/string_view.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

struct PolicyProperties {
  // Measured durations train the cost model. False for the reference policy, whose runs leave out
  // the library's own costs.
  bool learns = true;
  // It keeps reservations and quotas, or reads them in the snapshot. Where it cannot keep any, the
  // call that makes one is refused.
  bool keeps_reservations = true;
  // It reads QueryView::serial_headroom_ns, which is kept for such a policy alone.
  bool serial_headrooms = false;
  // LC apps that yield do so under it (flow/planning/yields.h). False for baselines, under which
  // everything is launched as it comes.
  bool lets_lc_yield = true;
  // It carries a plan of partitions out (Snapshot::partitions).
  bool uses_partitions = false;
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual absl::string_view name() const = 0;
  virtual PolicyProperties properties() const { return {}; }
  // `plan` is cleared. Must not allocate.
  virtual void MakePlan(const Snapshot& snapshot, Plan& plan) = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_POLICY_H_
