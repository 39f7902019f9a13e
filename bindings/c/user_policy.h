// A policy of the application's own, behind the core's policy seam.
//
// Where in the flow: the plan stage. It copies the snapshot into plain C views, calls the table's
// make_plan, and accepts only entries in range: places, forms and lanes that exist, bounded counts.
// The launch stage checks whether a named task may be launched, as for every policy. Buffers are
// made once: a plan allocates nothing. Threads: the planning thread only.

#ifndef GPUSHARE_BINDINGS_C_USER_POLICY_H_
#define GPUSHARE_BINDINGS_C_USER_POLICY_H_

#include <gpushare/gpushare_policy.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "bindings/c/log.h"
#include "bindings/c/policy_views.h"
#include "bindings/c/user_data.h"
#include "src/core/seams/policy.h"

namespace gpushare::abi {

class UserPolicy final : public core::Policy {
 public:
  // `table` must be checked already. `log` must outlive the policy.
  UserPolicy(const gpushare_policy_table& table, const Log& log);

  // From here on the policy destroys `user` when it goes.
  void Arm() { user_.Arm(); }
  absl::string_view name() const override { return user_.name(); }
  // Passes on what make_plan throws; the flow then plans without it.
  void MakePlan(const core::Snapshot& snapshot, core::Plan& plan) override;

 private:
  void Prepare();
  // Entries that are malformed are dropped and counted.
  void TakeOver(const core::Snapshot& snapshot, core::Plan& plan) const;
  void TakeLaunches(int32_t last_place, core::Plan& plan) const;
  void TakeEvictions(int32_t last_place, core::Plan& plan) const;
  void TakeHolds(core::Plan& plan) const;
  void TakeRoutes(size_t lc_apps, int32_t last_place, core::Plan& plan) const;
  void TakeArrangement(const core::Snapshot& snapshot, core::Plan& plan) const;
  void TakeChoice(core::Plan& plan) const;

  gpushare_policy_table table_;
  UserData user_;

  PolicyViews views_;
  gpushare_plan plan_ = {};
  std::array<gpushare_planned_launch, GPUSHARE_PLAN_ACTIONS_MAX> launches_ = {};
  std::array<gpushare_planned_eviction, GPUSHARE_PLAN_ACTIONS_MAX> evictions_ = {};
  std::array<gpushare_planned_hold, GPUSHARE_PLAN_ACTIONS_MAX> holds_ = {};
  std::array<gpushare_lc_route, core::kMaxApps> routes_;
  std::array<gpushare_bool, core::kMaxApps> waits_for_empty_sms_;
};

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_USER_POLICY_H_
