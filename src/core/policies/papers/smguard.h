// smguard: CapSM quotas for BE, reservations for LC, partial eviction on shortage (SMGuard 4 and
// 5).
//
// Algorithm 1 for each task: a BE task gets min(quota, what remains) CapSMs, in workers; an LC
// app's reservation is ensured by evicting R_gap CapSMs of BE workers, and the remaining workers
// execute the rest of the block tasks. Spread (the paper): a CapSM is anywhere on the device, so a
// quota bounds resident workers; a worker that has its SM for itself may run faster than 1/M of it.
// A packed quota: the app's work has the largest BE side within it. A packed reservation: its LC
// app is sized by it, on the smallest LC side that holds all reservations, and BE work has the BE
// side. smguard:packed: all BE apps have the BE side of the largest split within their quotas, and
// LC keeps the other side for itself. BE apps take their turns by weight (fair_share.h).
//
// A reservation keeps its CapSMs free at all times. Under smguard:active, as in the paper, it holds
// while its app has a query: BE work has them in between and gives R_gap back when the query comes.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PAPERS_SMGUARD_H_
#define GPUSHARE_SRC_CORE_POLICIES_PAPERS_SMGUARD_H_

#include <cstdint>

#include "src/core/seams/policy.h"

namespace gpushare::core {

enum class Reservations : uint8_t { kAlways, kWhileActive };

class SmguardPolicy final : public Policy {
 public:
  SmguardPolicy(bool packed, Reservations reservations)
      : packed_(packed), reservations_(reservations) {}
  absl::string_view name() const override;
  void MakePlan(const Snapshot& snapshot, Plan& plan) override;

 private:
  void PublishLcRoutes(const Snapshot& snapshot, int32_t split, Plan& plan) const;

  bool packed_;
  Reservations reservations_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PAPERS_SMGUARD_H_
