// One co-location: an LC app at a load beside one BE app (or alone) for a slot of time, on a fresh
// simulated device under a policy. It is a row of `gpushare colocate` with a seed of its own.
//
// What a slot is compared with is measured once, before all slots: a query of each LC app alone,
// and the work of each BE app alone.
//
// Threads: Measure() its caller's; Run() any, once Measure() is over.

#ifndef GPUSHARE_TOOLS_GPUSHARE_DATACENTER_SLOT_H_
#define GPUSHARE_TOOLS_GPUSHARE_DATACENTER_SLOT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/gpushare/base/library.h"
#include "tools/gpushare/datacenter/warehouse.h"
#include "tools/gpushare/run/run_plan.h"
#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

inline constexpr int32_t kNoBe = -1;

struct SlotPlan {
  int32_t service = 0;
  int32_t be = kNoBe;
  std::string policy;
  std::string tier;
  uint64_t seed = 1;  // of the arrivals and of the device
};

struct SlotRun {
  std::vector<int64_t> latencies_ns;  // ascending; empty: no query arrived in the slot
  double be_time = 0;  // what the BE work takes alone, over the time of the co-location
};

class SlotRunner {
 public:
  // All must outlive the runner.
  SlotRunner(const Warehouse& warehouse, const DeviceChoice& device, Workloads& workloads,
             const std::atomic<bool>& stop);

  // `step` is called after each measurement, from any thread. InputError for slots that have too
  // few or too many queries, and for too many queries of all pairs under `policies` policies.
  void Measure(size_t policies, unsigned threads, std::atomic<bool>& stop,
               const std::function<void(const std::string&)>& step);
  // Sets the p99 alone of each service. Runs before this call tell the library none.
  void StateAlone(std::vector<int64_t> p99_ns) { p99_alone_ns_ = std::move(p99_ns); }

  SlotRun Run(const SlotPlan& slot) const;

  int64_t SoloNs(int32_t service) const;
  int64_t P99AloneNs(int32_t service) const { return p99_alone_ns_[static_cast<size_t>(service)]; }
  // What the p99 of a service must not exceed: its bound over `p99_alone_ns`, else its target.
  int64_t LimitNs(int32_t service, int64_t p99_alone_ns) const;
  // Whether the limit depends on the p99 alone on the same arrivals.
  bool LimitIsRelative(int32_t service) const { return LcOf(service).p99_bound > 0; }

 private:
  const Service& ServiceOf(int32_t service) const {
    return warehouse_.services[static_cast<size_t>(service)];
  }
  const LcApp& LcOf(int32_t service) const {
    return warehouse_.apps.lc[static_cast<size_t>(ServiceOf(service).lc)];
  }
  RunPlan NewPlan(const SlotPlan& slot) const;
  LcPlan PlanLc(const SlotPlan& slot) const;
  double MeasureBe(const BeApp& app) const;
  void CheckQueries(size_t policies) const;

  const Warehouse& warehouse_;
  const DeviceChoice& device_;
  Workloads& workloads_;
  const std::atomic<bool>& stop_;
  std::vector<int64_t> solo_ns_;       // by LC app
  std::vector<double> be_per_second_;  // by BE app
  std::vector<int64_t> p99_alone_ns_;  // by service
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_DATACENTER_SLOT_H_
