#include "benchmarks/kernelet/oracle.h"

#include <gpushare/gpushare_cost_model.h>
#include <gpushare/gpushare_policy.h>

#include <algorithm>
#include <set>

#include "benchmarks/harness/failure.h"

namespace gpushare::kernelet {

namespace {

// Of the measured kernel alone: long against a block task. Its neighbour lasts longer than any
// slowdown.
constexpr int64_t kMeasuredNs = 10'000'000;
constexpr int64_t kNeighbourNs = 1'000'000'000;

using Pairs = std::set<Oracle::Pair>;

Oracle::Pair PairOf(const gpushare_co_resident_side& first,
                    const gpushare_co_resident_side& second) {
  return {{first.kernel_name, second.kernel_name}, {first.workers_per_sm, second.workers_per_sm}};
}

// The pairs that the library asks a cost model for, where kernels are submitted in this order.
void AddAskedPairs(const std::vector<std::string>& kernels, const RigOptions& options,
                   Pairs& asked) {
  CostModelTable table;
  table.version = GPUSHARE_COST_MODEL_VERSION;
  table.name = "asked";
  table.user = &asked;
  table.predict_co_resident = [](void* user, const gpushare_co_resident_side* first,
                                 const gpushare_co_resident_side* second,
                                 gpushare_co_resident_prediction* /*prediction*/) {
    static_cast<Pairs*>(user)->insert(PairOf(*first, *second));
    return gpushare_bool{0};
  };
  const auto ask = [&](const Runtime& runtime) {
    benchmarks::Require(runtime.SetCostModel(table));
  };
  Rig rig(kernels, ask, options);
  std::vector<Ticket> tickets;
  // A pass of the flow adds one kernel's row.
  for (size_t kernel = 0; kernel < kernels.size(); ++kernel) {
    tickets.push_back(rig.Submit(kernel, rig.BlocksFor(kernel, 1)));
    benchmarks::Require(tickets.back().Wait());
  }
}

// In either order: which kernel of a pair comes first decides what workers are asked for.
Pairs AskedPairs(std::vector<std::string> kernels, const RigOptions& options) {
  Pairs asked;
  AddAskedPairs(kernels, options, asked);
  std::reverse(kernels.begin(), kernels.end());
  AddAskedPairs(kernels, options, asked);
  return asked;
}

// Each app's tasks in slices of so many blocks an SM, one after another; 0: whole.
struct FixedSlices {
  std::array<int32_t, 2> per_sm = {};
};

void PlanFixedSlices(void* user, const gpushare_snapshot* snapshot, gpushare_plan* plan) {
  const FixedSlices& slices = *static_cast<const FixedSlices*>(user);
  for (uint32_t i = 0; i < snapshot->head_count; ++i) {
    const auto* head = GPUSHARE_AT(gpushare_head_view, snapshot->heads, snapshot->head_stride, i);
    const int32_t per_sm = slices.per_sm[static_cast<size_t>(head->app)];
    gpushare_planned_launch launch = {};
    launch.task = head->task;
    launch.form = per_sm > 0 ? GPUSHARE_FORM_SLICE : GPUSHARE_FORM_ORIGINAL;
    launch.blocks_max = int64_t{per_sm} * snapshot->sm_count;
    plan->launches[plan->launch_count++] = launch;
  }
}

// Time of one block task of the first kernel, over all SMs, while it runs for kMeasuredNs of its
// time alone. Alone: `kernels` has one.
double BlockNs(const std::vector<std::string>& kernels, FixedSlices slices,
               const RigOptions& options) {
  PolicyTable table;
  table.version = GPUSHARE_POLICY_VERSION;
  table.name = "fixed";
  table.make_plan = PlanFixedSlices;
  table.user = &slices;
  Rig rig(
      kernels, [&](const Runtime& runtime) { benchmarks::Require(runtime.SetPolicy(table)); },
      options);
  Ticket neighbour;
  if (kernels.size() > 1) neighbour = rig.Submit(1, rig.BlocksFor(1, kNeighbourNs));
  Ticket measured = rig.Submit(0, rig.BlocksFor(0, kMeasuredNs));
  benchmarks::Require(measured.Wait());
  const CompletionRecord record = benchmarks::Take(measured.Record());
  if (kernels.size() > 1 && benchmarks::Take(neighbour.IsComplete())) {
    benchmarks::Fail(kernels[1] + " ended before " + kernels[0] + " beside it.");
  }
  return static_cast<double>(record.end_ns - record.start_ns) /
         static_cast<double>(record.block_tasks);
}

// The speed from which the algorithm, which adds kGapNs to each slice, gets the measured time.
double SpeedOf(double alone_ns, double measured_ns, double slice_blocks) {
  const double slice_ns = measured_ns * slice_blocks - Oracle::kGapNs;
  if (slice_ns <= 0) return 1;
  return std::clamp(alone_ns * slice_blocks / slice_ns, 0.001, 1.0);
}

}  // namespace

Oracle::Oracle(const std::vector<std::string>& kernels, const RigOptions& options) {
  std::map<std::string, double> alone_ns;
  for (const std::string& kernel : kernels) alone_ns[kernel] = BlockNs({kernel}, {}, options);
  const Rig any(
      {}, [](const Runtime& /*runtime*/) {}, options);
  const auto sms = static_cast<double>(any.sm_count());
  for (const Pair& pair : AskedPairs(kernels, options)) {
    std::array<double, 2>& speed = speeds_[pair];
    for (size_t i = 0; i < 2; ++i) {
      const size_t other = 1 - i;
      const double ns = BlockNs({pair.kernel[i], pair.kernel[other]},
                                {{pair.workers[i], pair.workers[other]}}, options);
      speed[i] = SpeedOf(alone_ns[pair.kernel[i]], ns, pair.workers[i] * sms);
    }
  }
}

Scheduler Oracle::Opt() const {
  CostModelTable table;
  table.version = GPUSHARE_COST_MODEL_VERSION;
  table.name = "oracle";
  table.user = const_cast<Oracle*>(this);
  table.predict_co_resident = [](void* user, const gpushare_co_resident_side* first,
                                 const gpushare_co_resident_side* second,
                                 gpushare_co_resident_prediction* prediction) {
    const auto& oracle = *static_cast<const Oracle*>(user);
    const auto found = oracle.speeds_.find(PairOf(*first, *second));
    if (found == oracle.speeds_.end()) {
      ++oracle.unknown_;
      return gpushare_bool{0};
    }
    std::copy(found->second.begin(), found->second.end(), prediction->speed);
    // The policy asks for speeds only; a finish time must be in its range.
    for (gpushare_prediction& finish : prediction->finish) finish.duration_ns = 1;
    return gpushare_bool{1};
  };
  return [table](const Runtime& runtime) {
    benchmarks::Require(runtime.SetCostModel(table));
    benchmarks::Require(runtime.SetPolicy("kernelet"));
  };
}

}  // namespace gpushare::kernelet
