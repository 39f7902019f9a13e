#include "benchmarks/kernelet/oracle.h"

#include <gpushare/gpushare_cost_model.h>
#include <gpushare/gpushare_policy.h>

#include <algorithm>
#include <memory>
#include <set>

#include "benchmarks/harness/failure.h"
#include "benchmarks/kernelet/pair_rig.h"

namespace gpushare::kernelet {

namespace {

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
    tickets.push_back(rig.Submit(kernel, rig.TaskOf(kernel, rig.BlocksFor(kernel, 1))));
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

// The speed from which the algorithm, which adds kGapNs to each slice, gets the measured time.
double SpeedOf(double alone_ns, double measured_ns, double slice_blocks) {
  const double slice_ns = measured_ns * slice_blocks - Oracle::kGapNs;
  if (slice_ns <= 0) return 1;
  return std::clamp(alone_ns * slice_blocks / slice_ns, 0.001, 1.0);
}

}  // namespace

Oracle::Oracle(const std::vector<std::string>& kernels, const RigOptions& options) {
  for (const std::string& kernel : kernels) {
    alone_ns_[kernel] = PairRig({kernel}, options).BlockNs({});
  }
  const std::set<Pair> pairs = AskedPairs(kernels, options);
  for (size_t i = 0; i < 2; ++i) MeasureSide(i, pairs, options);
}

void Oracle::MeasureSide(size_t side, const std::set<Pair>& pairs, const RigOptions& options) {
  std::unique_ptr<PairRig> rig;
  std::array<std::string, 2> of_rig;
  for (const Pair& pair : pairs) {  // all ratios of two kernels in a row
    // On a GPU all ratios share a rig. In virtual time a rig of its own makes each measurement
    // independent of those before.
    if (rig == nullptr || pair.kernel != of_rig || options.platform->simulated()) {
      rig.reset();  // on a GPU one at a time
      rig = std::make_unique<PairRig>(
          std::vector<std::string>{pair.kernel[side], pair.kernel[1 - side]}, options);
      of_rig = pair.kernel;
    }
    const double ns = rig->BlockNs({{pair.workers[side], pair.workers[1 - side]}});
    const auto slice_blocks = static_cast<double>(pair.workers[side] * rig->sm_count());
    speeds_[pair][side] = SpeedOf(alone_ns_[pair.kernel[side]], ns, slice_blocks);
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
