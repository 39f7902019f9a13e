#include "benchmarks/kernelet/pair_rig.h"

#include <gpushare/gpushare_policy.h>

#include "benchmarks/harness/failure.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/kernelet/slice_queue.h"

namespace gpushare::kernelet {

namespace {

// Of the measured kernel alone: long against a block task. Its neighbour lasts longer than any
// slowdown.
constexpr int64_t kMeasuredNs = 10'000'000;
constexpr int64_t kNeighbourNs = 1'000'000'000;
constexpr int kRealTimeRepeats = 3;
constexpr int64_t kCancelAgainNs = 20'000;

using MakePlan = void (*)(void* user, const gpushare_snapshot* snapshot, gpushare_plan* plan);

// Each app's tasks in slices, two deep.
void PlanFixedSlices(void* user, const gpushare_snapshot* snapshot, gpushare_plan* plan) {
  const auto& slices = *static_cast<const PairRig::Slices*>(user);
  const auto fill = [&](const PendingTask& task) {
    const int32_t per_sm = slices.per_sm[static_cast<size_t>(task.view->app)];
    FillSlices(task, int64_t{per_sm} * snapshot->sm_count, *plan);
  };
  for (uint32_t i = 0; i < snapshot->running_count; ++i) {
    const auto* running =
        GPUSHARE_AT(gpushare_running_view, snapshot->running, snapshot->running_stride, i);
    fill({&running->task, running->part_count});
  }
  for (uint32_t i = 0; i < snapshot->head_count; ++i) {
    fill({GPUSHARE_AT(gpushare_head_view, snapshot->heads, snapshot->head_stride, i), 0});
  }
}

void PlanNothing(void* /*user*/, const gpushare_snapshot* /*snapshot*/, gpushare_plan* /*plan*/) {}

// Returns when no plan reads the `user` of the policy before.
void SetPolicy(const Runtime& runtime, const char* name, MakePlan make_plan, void* user) {
  PolicyTable table;
  table.version = GPUSHARE_POLICY_VERSION;
  table.name = name;
  table.make_plan = make_plan;
  table.user = user;
  benchmarks::Require(runtime.SetPolicy(table));
}

void HoldAll(const Runtime& runtime) { SetPolicy(runtime, "hold", PlanNothing, nullptr); }

}  // namespace

PairRig::PairRig(const std::vector<std::string>& kernels, const RigOptions& options)
    : kernels_(kernels),
      repeats_(options.platform->simulated() ? 1 : kRealTimeRepeats),
      rig_(kernels, HoldAll, options) {}

double PairRig::BlockNs(Slices slices) {
  const TaskOptions task = rig_.TaskOf(0, rig_.BlocksFor(0, kMeasuredNs));
  const bool beside = kernels_.size() > 1;
  if (beside) StartNeighbour();
  slices_ = slices;  // no plan reads it now: all is held
  SetPolicy(rig_.runtime(), "fixed", PlanFixedSlices, &slices_);
  std::vector<double> block_ns;
  for (int i = 0; i < repeats_; ++i) {
    const Ticket ticket = rig_.Submit(0, task);
    benchmarks::Require(ticket.Wait());
    const CompletionRecord record = benchmarks::Take(ticket.Record());
    if (record.verdict != GPUSHARE_VERDICT_OK || record.block_tasks != task.block_tasks) {
      benchmarks::Fail("A measured task of " + kernels_[0] + " ran " +
                       std::to_string(record.block_tasks) + " of " +
                       std::to_string(task.block_tasks) + " block tasks.");
    }
    block_ns.push_back(static_cast<double>(record.end_ns - record.start_ns) /
                       static_cast<double>(record.block_tasks));
  }
  if (beside && benchmarks::Take(neighbour_.IsComplete())) {
    benchmarks::Fail(kernels_[1] + " ended before " + kernels_[0] + " beside it.");
  }
  HoldAll(rig_.runtime());
  if (beside) StopNeighbour();
  return benchmarks::Median(block_ns);
}

void PairRig::StartNeighbour() {
  neighbour_ = rig_.Submit(1, rig_.TaskOf(1, rig_.BlocksFor(1, kNeighbourNs * repeats_)));
}

// A slice cannot leave the device. When it has ended, the rest of its task can be cancelled.
void PairRig::StopNeighbour() {
  while (!neighbour_.Cancel().ok() && !benchmarks::Take(neighbour_.IsComplete())) {
    rig_.WaitUntil(rig_.runtime().NowNs() + kCancelAgainNs);
  }
  benchmarks::Require(rig_.runtime().Drain());
}

}  // namespace gpushare::kernelet
