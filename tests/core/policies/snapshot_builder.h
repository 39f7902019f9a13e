// Hand-built snapshots for the tests of the planners, and a readable form of a plan.
//
// The device is an H200: 132 SMs, place 0 whole, splits in ascending LC size whose SMs are
// [0, lc_sms) for LC and the rest for BE, so that LC sides overlap each other and smaller BE sides
// lie in larger ones.

#ifndef GPUSHARE_TESTS_CORE_POLICIES_SNAPSHOT_BUILDER_H_
#define GPUSHARE_TESTS_CORE_POLICIES_SNAPSHOT_BUILDER_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/core/seams/policy.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core::testing {

constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000'000;

struct BePart {
  PlaceIndex place = kWholeDevice;
  Form form = Form::kWorkers;
  bool evicting = false;
  int32_t workers = 0;
};

class SnapshotBuilder {
 public:
  explicit SnapshotBuilder(const std::vector<int32_t>& lc_sms = {68, 84, 92, 108, 124});

  // Places of the split with so many SMs for LC.
  PlaceIndex LcPlace(int32_t lc_sms) const;
  PlaceIndex BePlace(int32_t lc_sms) const;
  int32_t Split(int32_t lc_sms) const;

  // Return indexes; the objects may be changed through the members below until Get.
  int32_t AddLcApp(double load, int64_t solo_ns, int64_t p99_alone_ns, double p99_bound);
  int32_t AddLcAppWithTarget(double load, int64_t solo_ns, int64_t target_ns);
  int32_t AddBeApp(int64_t attained_ns = 0, double weight = 1);
  // A BE kernel with workers; eviction_ns kNever: not evictable.
  int32_t AddKernel(int64_t eviction_ns);
  KernelCounters& Counters(int32_t kernel) {
    return kernels_[static_cast<size_t>(kernel)].counters;
  }
  SimulationRecord& Simulation(int32_t kernel) {
    return kernels_[static_cast<size_t>(kernel)].simulation;
  }
  SliceRecord& Slices(int32_t kernel) { return kernels_[static_cast<size_t>(kernel)].slices; }
  void KeepL1(int32_t kernel) { kernels_[static_cast<size_t>(kernel)].resources.keeps_l1 = true; }
  int32_t AddQuery(int32_t lc_app, int64_t headroom_ns);

  // A fused kernel of two kernels, with the curve that the opportune load ratio and the duration
  // over the TC part's there give. Measured, without an error.
  FusedView& Fuse(int32_t tensor, int32_t cuda, double opportune_load_ratio,
                  double opportune_duration_ratio);
  // A row of the co-schedule table; the head's overlap_index is the caller's to set.
  int32_t AddOverlapRow(int32_t kernel);
  CoScheduleOption& CoSchedule(int32_t row, int32_t column, int32_t ratio);
  SlicedPair& Sliced(int32_t row, int32_t column, int32_t ratio);

  HeadView& AddLcHead(int32_t lc_app, int32_t ready_count = 1);
  HeadView& AddLcKernelHead(int32_t query, int32_t kernel, int64_t duration_ns,
                            int32_t ready_count = 1);
  HeadView& AddBeHead(int32_t be_app, int32_t kernel, int64_t duration_ns);
  HeadView& AddBeTask(int32_t be_app, TaskKind kind, int64_t duration_ns);  // without a kernel
  HeadView& AddBeCopy(int32_t be_app, CopyDirection direction, int64_t bytes, int64_t duration_ns);
  RunningView& AddRunningBe(int32_t be_app, int32_t kernel, int64_t duration_ns,
                            const std::vector<BePart>& parts);
  // A BE graph: as a head, and on the device.
  HeadView& AddBeGraph(int32_t be_app, int32_t kernel, int64_t duration_ns);
  RunningView& AddRunningGraph(int32_t be_app, int32_t kernel, int64_t duration_ns,
                               const BePart& part);
  RunningView& AddRunningLc(int32_t lc_app, PlaceIndex place);

  // What `app` and `kernel` do to each other on the split; every other pair is in proportion to SMs
  // and undisturbed.
  PairOption& Pair(int32_t app, int32_t kernel, int32_t lc_sms);

  // A task without a `block_ns` gets that of its remaining time and block tasks.
  const Snapshot& Get();
  const HeadView& head(size_t index) const { return heads[index]; }

  Snapshot snapshot;
  std::vector<PlaceView> places;
  std::vector<SplitView> splits;
  std::vector<LcAppView> lc_apps;
  std::vector<BeAppView> be_apps;
  std::vector<QueryView> queries;
  std::deque<HeadView> heads;
  std::deque<RunningView> running;
  std::vector<FusedView> fused;

 private:
  struct PairAt {
    int32_t app;
    int32_t kernel;
    int32_t split;
    PairOption option;
  };
  HeadView MakeBeTask(int32_t be_app, int32_t kernel, int64_t duration_ns);
  PairOption DefaultPair(int32_t split) const;

  std::deque<KernelDesc> kernels_;
  std::deque<FusedKernelDesc> fused_kernels_;
  std::vector<const KernelDesc*> rows_;
  std::vector<CoScheduleOption> co_schedules_;
  std::vector<SlicedPair> sliced_;
  std::vector<int64_t> eviction_ns_;
  std::deque<PairAt> pairs_;
  std::vector<PairOption> options_;
  std::vector<const HeadView*> head_list_;
  std::vector<RunningView> running_list_;
  uint64_t next_task_ = 1;
  uint32_t next_queue_ = 1;
};

// One line an action, in order.
std::string Describe(const Plan& plan);

// A plan of a fresh policy.
Plan PlanOf(const char* policy, SnapshotBuilder& builder);
std::unique_ptr<Policy> NewPolicy(const char* name);

// The first launch of a task, by itself or as the other part, on a place (kNoPlace: on any); null
// when there is none.
const PlannedLaunch* FindLaunch(const Plan& plan, const HeadView& task,
                                PlaceIndex place = kNoPlace);
const PlannedHold* FindHold(const Plan& plan, const HeadView& task);
const PlannedEviction* FindEviction(const Plan& plan, const HeadView& task, PlaceIndex place);

// What a test expects of a launch. A field without a value may be anything.
struct LaunchIs {
  std::optional<Form> form = std::nullopt;
  std::optional<PlaceIndex> place = std::nullopt;
  std::optional<LaneClass> lane_class = std::nullopt;
  std::optional<int32_t> count = std::nullopt;
  std::optional<int32_t> workers = std::nullopt;
  std::optional<int64_t> blocks_max = std::nullopt;
  std::optional<KernelId> fused_kernel = std::nullopt;
  std::optional<Reason> reason = std::nullopt;
};

// Whether the plan has the action that Find gives, and it is as expected. Failures show the plan.
::testing::AssertionResult IsLaunched(const Plan& plan, const HeadView& task,
                                      const LaunchIs& expected, PlaceIndex place = kNoPlace);
::testing::AssertionResult IsHeld(const Plan& plan, const HeadView& task, Reason reason,
                                  std::optional<int64_t> value_ns = std::nullopt,
                                  std::optional<int64_t> limit_ns = std::nullopt);
::testing::AssertionResult IsEvicted(const Plan& plan, const HeadView& task, PlaceIndex place,
                                     Reason reason,
                                     std::optional<int32_t> workers_to_keep = std::nullopt);

}  // namespace gpushare::core::testing

#endif  // GPUSHARE_TESTS_CORE_POLICIES_SNAPSHOT_BUILDER_H_
