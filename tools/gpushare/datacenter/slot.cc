#include "tools/gpushare/datacenter/slot.h"

#include <algorithm>
#include <cmath>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/base/random.h"
#include "tools/gpushare/base/text.h"
#include "tools/gpushare/colocate/parallel.h"
#include "tools/gpushare/run/run_result.h"
#include "tools/gpushare/run/runner.h"
#include "tools/gpushare/scenario/arrivals.h"

namespace gpushare::tool {

namespace {

// Streams of random numbers from the seed of a slot.
constexpr uint64_t kArrivalStream = 1;
constexpr uint64_t kDeviceStream = 2;
// Below so many points of arrival a slot often has no query; above so many queries, its time is a
// unit error.
constexpr double kQueriesPerSlotMin = 20;
constexpr double kQueriesPerSlotMax = 100'000;
// Of the runs of pairs under all policies. Their latencies are kept in memory, 80 MB, and in
// partial.json, where a latency takes some ten bytes: below kRowsBytesMax, what --resume reads.
constexpr double kTableQueriesMax = 10'000'000;

}  // namespace

SlotRunner::SlotRunner(const Warehouse& warehouse, const DeviceChoice& device, Workloads& workloads,
                       const std::atomic<bool>& stop)
    : warehouse_(warehouse),
      device_(device),
      workloads_(workloads),
      stop_(stop),
      solo_ns_(warehouse.apps.lc.size()),
      be_per_second_(warehouse.apps.be.size()),
      p99_alone_ns_(warehouse.services.size()) {}

void SlotRunner::Measure(size_t policies, unsigned threads, std::atomic<bool>& stop,
                         const std::function<void(const std::string&)>& step) {
  const std::vector<LcApp>& lc = warehouse_.apps.lc;
  const std::vector<BeApp>& be = warehouse_.apps.be;
  RunParallel(lc.size() + be.size(), threads, stop, [&](size_t job) {
    if (job < lc.size()) {
      solo_ns_[job] =
          lc[job].solo_ns > 0 ? lc[job].solo_ns : MeasureSoloNs(device_, workloads_, lc[job]);
      step(lc[job].name + " alone, one query");
    } else {
      be_per_second_[job - lc.size()] = MeasureBe(be[job - lc.size()]);
      step(be[job - lc.size()].name + " alone");
    }
  });
  CheckQueries(policies);
}

double SlotRunner::MeasureBe(const BeApp& app) const {
  RunPlan plan = NewPlan({0, kNoBe, "bare", device_.tier, device_.seed});
  plan.be.push_back({&app, false});
  plan.span_ns = warehouse_.apps.be_alone_ns;
  return BeAloneResult(plan, ExecuteRun(plan)).be[0].work_per_second;
}

void SlotRunner::CheckQueries(size_t policies) const {
  double kept = 0;
  for (size_t i = 0; i < warehouse_.services.size(); ++i) {
    const Service& service = warehouse_.services[i];
    const double queries = static_cast<double>(warehouse_.slot_ns) * service.load /
                           static_cast<double>(SoloNs(static_cast<int32_t>(i)));
    kept += queries * static_cast<double>(warehouse_.table_runs) *
            static_cast<double>(warehouse_.apps.be.size()) * static_cast<double>(policies);
    // The queries of a batch arrive at one time.
    const ArrivalSpec& spec = LcOf(static_cast<int32_t>(i)).arrivals;
    const bool batches = spec.kind == ArrivalKind::kBatches;
    const double arrivals = batches ? queries / spec.batch_size : queries;
    if (arrivals >= kQueriesPerSlotMin && queries <= kQueriesPerSlotMax) continue;
    const std::string in_batches = batches ? Format(" in %.4g batches", arrivals) : "";
    throw InputError(
        Format("The service '%s' has %.4g queries%s in a slot of %s, and it must have at least "
               "%.0f %s and at most %.0f queries; another slot_ns or load helps.",
               service.name.c_str(), queries, in_batches.c_str(),
               DurationText(static_cast<double>(warehouse_.slot_ns)).c_str(), kQueriesPerSlotMin,
               batches ? "batches" : "queries", kQueriesPerSlotMax));
  }
  if (kept <= kTableQueriesMax) return;
  throw InputError(
      Format("The runs of pairs under %zu policies have %.4g queries, and the limit is %.4g; fewer "
             "policies, or a smaller table_runs or slot_ns, help.",
             policies, kept, kTableQueriesMax));
}

int64_t SlotRunner::SoloNs(int32_t service) const {
  return solo_ns_[static_cast<size_t>(ServiceOf(service).lc)];
}

int64_t SlotRunner::LimitNs(int32_t service, int64_t p99_alone_ns) const {
  const LcApp& app = LcOf(service);
  if (app.p99_bound > 0) {
    return std::llround(app.p99_bound * static_cast<double>(p99_alone_ns));
  }
  LcPlan plan;
  plan.app = &app;
  plan.solo_ns = SoloNs(service);
  return TargetOf(plan);
}

RunPlan SlotRunner::NewPlan(const SlotPlan& slot) const {
  RunPlan plan;
  plan.device = device_;
  plan.device.tier = slot.tier;
  plan.device.seed = slot.seed;
  plan.workloads = &workloads_;
  plan.policy = slot.policy;
  plan.fused = &warehouse_.apps.fused;
  plan.stop = &stop_;
  return plan;
}

LcPlan SlotRunner::PlanLc(const SlotPlan& slot) const {
  const Service& service = ServiceOf(slot.service);
  LcPlan plan;
  plan.app = &LcOf(slot.service);
  plan.solo_ns = SoloNs(slot.service);
  plan.load = service.load;
  ArrivalRequest request;
  request.mean_gap_ns = static_cast<double>(plan.solo_ns) / service.load;
  request.queries_max = kQueriesMax;
  request.duration_ns = warehouse_.slot_ns;
  request.seed = MixSeed(slot.seed, kArrivalStream);
  plan.arrivals_ns = MakeArrivals(plan.app->arrivals, request);
  if (slot.be == kNoBe) return plan;
  plan.p99_bound = plan.app->p99_bound;
  plan.p50_bound = plan.app->p50_bound;
  plan.p99_alone_ns = P99AloneNs(slot.service);
  // As in colocate: with a bound, only policies that do not know bounds get the target.
  const bool bounded = plan.p99_bound > 0 || plan.p50_bound > 0;
  if (!bounded || ListNamesPolicy(warehouse_.apps.target_policies, slot.policy)) {
    plan.target_ns = TargetOf(plan);
  }
  plan.reserve = ListNamesPolicy(warehouse_.apps.reservation_policies, slot.policy);
  return plan;
}

SlotRun SlotRunner::Run(const SlotPlan& slot) const {
  RunPlan plan = NewPlan(slot);
  plan.device.seed = MixSeed(slot.seed, kDeviceStream);
  plan.lc.push_back(PlanLc(slot));
  const bool empty = plan.lc[0].arrivals_ns.empty();
  SlotRun out;
  if (empty && slot.be == kNoBe) return out;
  if (slot.be != kNoBe) {
    plan.be.push_back({&warehouse_.apps.be[static_cast<size_t>(slot.be)], plan.lc[0].reserve});
  }
  if (empty) {  // a run ends at its last arrival, and without one it needs a time of its own
    plan.lc.clear();
    plan.span_ns = warehouse_.slot_ns;
  }
  RunOutcome outcome = ExecuteRun(plan);
  if (!empty) out.latencies_ns = std::move(outcome.lc[0].latencies_ns);
  std::sort(out.latencies_ns.begin(), out.latencies_ns.end());
  if (slot.be != kNoBe) {
    out.be_time = outcome.be[0].work_per_second / be_per_second_[static_cast<size_t>(slot.be)];
  }
  return out;
}

}  // namespace gpushare::tool
