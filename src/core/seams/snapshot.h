// The snapshot: all that a policy may know, as plain data, and the plan that it answers with.
//
// The plan stage fills a Snapshot from the scheduler's tables into buffers that are allocated once;
// a policy is a pure function from it to a Plan. Arrays are bounded by limits.h. Times are
// nanoseconds on the device's clock; speeds are relative to the kernel alone on the whole device.

#ifndef GPUSHARE_SRC_CORE_SEAMS_SNAPSHOT_H_
#define GPUSHARE_SRC_CORE_SEAMS_SNAPSHOT_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "absl/types/span.h"
#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/limits.h"
#include "src/core/base/types.h"
#include "src/core/promise/promise.h"
#include "src/core/seams/cost_model.h"
#include "src/core/seams/partitions.h"

namespace gpushare::core {

// --- the device ---------------------------------------------------------------------------------

struct PlaceView {
  int32_t sms = 0;
  uint64_t overlaps = 0;  // places (bit per index) that share an SM with this one, itself included
  // A launch may go there now. A place that a plan names and that is not ready is asked for.
  bool ready = true;
};

// One way to cut the device in two: a view of two places. Ascending lc_sms.
struct SplitView {
  PlaceIndex lc_place = kNoPlace;
  PlaceIndex be_place = kNoPlace;
  int32_t lc_sms = 0;
  int32_t be_sms = 0;
};

struct CopyState {
  int32_t be_active = 0;  // BE copies in flight in this direction
  int32_t lc_active = 0;
  int32_t be_limit = 1;  // N_tr (Baymax eq. 5)
  bool lc_uses = false;  // an LC app copied in this direction before
};

// --- apps and queries ---------------------------------------------------------------------------

struct LcAppView {
  AppId app;
  Promise promise;
  int64_t solo_ns = 0;    // predicted duration of one query alone
  double load = 0;        // share of time that its queries would take alone (smoothed)
  double load_error = 0;  // its standard deviation; large while little has been seen
  // With a target: factor on the p99 that the load gives (queue_tail.h), as measured, and its
  // highest load of late; else 0.
  double target_tail = 0;
  double peak_load = 0;
  // Longest delay that every busy period of this app may begin with, as an eviction is: the least
  // slack of its promise. kNever when it states none.
  int64_t blocking_budget_ns = kNever;
  // Longest launch that nothing evicts: a query meets half of it on average, so it may be up to
  // twice as long (vacation.h). At least blocking_budget_ns, whatever stands here.
  int64_t uncuttable_budget_ns = 0;
  int64_t LongestUncuttable() const { return std::max(blocking_budget_ns, uncuttable_budget_ns); }
  // A longer one may begin now and then: for so long a one the idle time of late has saved
  // (evidence/vacation_account.h).
  int64_t saved_vacation_ns = 0;
  // Decay rate eta of its latencies' tail, 1 / ns, where its p99 bound is what limits BE work; 0:
  // unknown, or another bound does.
  double tail_rate = 0;
  // Half of the queries that wait longer than this for BE work miss that bound, or more
  // (latency_tail.h); kNever: unknown.
  int64_t late_delay_ns = kNever;
  // In a lull, by the last few queries (evidence/recent_arrivals.h): a delay that makes hardly any
  // query late. 0: there is none.
  int64_t lull_delay_ns = 0;
  // The app works in steps (evidence/steps.h), and its next query is expected until then, because a
  // step said so or earlier ones showed it: what delays it by more than a part of the blocking
  // budget should not start. 0: none is expected.
  TimeNs expected_by_ns = 0;
  // Of its queries behind a silence, the share that BE work may make late beyond that budget. 0: it
  // shows no steps, or another promise than its bound is what limits BE work.
  double first_late_max = 0;
  // Tail account (evidence/tail_account.h), in queries: credit, and what a blocking of one
  // nanosecond is likely to delay. BE work that blocks longer than a budget may start on credit for
  // it.
  double tail_credit = 0;
  double tail_need_per_ns = 0;  // 0: no account
  // Beside the queue that it would have alone (evidence/shadow.h): how much later it ends what it
  // has if it gets the whole device now, and the p99 there; 0: unknown.
  int64_t lag_ns = 0;
  int64_t shadow_p99_ns = 0;
  // How long its oldest active query has been the oldest: what the shadow counts as its service so
  // far. 0: no active query.
  int64_t service_age_ns = 0;
  int32_t reserved_capsms = 0;
  bool packed = false;   // its reservation is placed on whole SMs
  int32_t priority = 0;  // among LC apps; higher goes first
  // Begun or submitted and not done, without those that only wait for tickets: a query that none of
  // its tasks can serve now is no load.
  int32_t active_queries = 0;
  int32_t tasks_in_flight = 0;  // launched, not completed
  TimeNs idle_since_ns = 0;     // when active_queries last became 0
  KernelId main_kernel;         // the kernel that most of its time goes to; 0 before its first
  int64_t main_kernel_ns = 0;   // a launch of it alone on the whole device, predicted; 0: unknown
  // That kernel's pieces, where it is a graph that can be cut at kernel nodes; else empty.
  absl::Span<const GraphPiece> pieces;
  // Factor on its speed while BE copies run, by LinkUse.
  std::array<float, kLinkUses> speed_beside_copies = {1, 1, 1, 1};
};

struct BeAppView {
  AppId app;
  int32_t quota_capsms = 0;  // 0: no quota
  double weight = 1;         // share among BE apps
  double fair_weight = 1;    // of its weight, what quotas let count (state/fair_weight.h)
  // By resource (ResourceOf), its start tag in start-time fair queueing: predicted time of its work
  // that is done or on the device, over its fair weight. An app without work for a resource follows
  // the largest tag of a launch.
  std::array<double, kSharedResources> attained_ns{};
  std::array<TimeNs, kSharedResources> served_ns{};  // when it last had a task on the device
  double used_capsms = 0;
  bool packed = false;  // its quota is placed on whole SMs
};

// Active queries of all LC apps in order of arrival. Those that only wait for tickets are left out,
// and the later ones of an app that has more than fit (kMaxActiveQueries).
struct QueryView {
  QueryId query;
  int32_t lc_app = -1;  // index into lc_apps
  TimeNs arrival_ns = 0;
  TimeNs deadline_ns = kNever;  // arrival + target
  int64_t solo_ns = 0;          // T_self: predicted duration of all its tasks
  int64_t issued_ns = 0;  // predicted duration of its tasks that are on the device (part of T_q)
  int64_t done_ns = 0;    // processing time of its completed tasks
  // Baymax eq. 3-4 as corrected: target - elapsed - T_q - own remaining - earlier queries'
  // remaining, without counting an issued kernel twice. kNever without a target.
  int64_t headroom_ns = kNever;
  // The same without the refill of eq. 4: headroom_ns of its first plan, less the predicted
  // duration of BE work launched since, pageable copies aside. kNever without a target, and for a
  // policy that does not ask for it (PolicyProperties::serial_headrooms).
  int64_t serial_headroom_ns = kNever;
};

// --- tasks --------------------------------------------------------------------------------------

// The head of one queue (kReady), or the rest of an evicted task. A plan reads the fields up to
// `eviction_p99_ns` of most heads; they share cache lines.
struct HeadView {
  TicketId task;
  AppClass app_class = AppClass::kBestEffort;
  TaskKind kind = TaskKind::kKernel;
  bool evictable = false;
  bool confinable = false;
  bool runs_alone = false;  // BE: its duration is to be measured (evidence/solo_runs.h)
  // BE: LC work waits for it, or for a task behind it, through other tasks or not. No bound of an
  // LC app may hold it while no query is active: it would hold that LC work for ever.
  bool awaited_by_lc = false;
  int32_t app = -1;  // index into lc_apps or be_apps
  QueueId queue;
  int32_t kernel_index = -1;           // row of `pairs`; -1 without a kernel
  const KernelDesc* kernel = nullptr;  // immutable; null for memcpy and opaque work
  TimeNs ready_ns = 0;
  Prediction remaining;  // of what is left, alone on the whole device
  // What its eviction adds to an LC query, predicted; kNever when not evictable.
  int64_t eviction_ns = 0;
  int64_t eviction_p99_ns = 0;  // after which it has left; kNever when not evictable
  int32_t overlap_index = -1;   // row of `co_schedules`; -1: no workers, or the table is full
  int32_t ready_count = 1;  // tasks of this queue that may be launched in a row, this one included
  // Whether the evictions are predictions: an unknown kernel counts as leaving at once.
  bool eviction_known = false;
  bool resumed = false;   // it was on the device before
  bool followed = false;  // BE: its queue has a next task, which waits for nothing but this one
  bool pinned = false;
  CopyDirection direction = CopyDirection::kNone;
  uint64_t sequence = 0;  // order of submission
  QueryId query;
  int64_t blocks_left = 0;  // block tasks not yet done; bytes for a copy
  // One block task, alone on the whole device: the whole prediction over all block tasks. 0: the
  // task has none, or nothing is predicted.
  double block_ns = 0;
  // The whole task, alone on the whole device, where `remaining` is its rest. 0: unknown.
  int64_t whole_ns = 0;
  // BE, a graph that can run in segments: what it gains beside queries, a share of LC's time
  // (evidence/segment_gain.h); else 0.
  double segment_gain = 0;
  // The same on a split, as measured, and how much that counts beside a prediction, 0 to 1.
  double split_gain = 0;
  double split_gain_known = 0;

  bool operator==(const HeadView&) const = default;
};

// The heads of a snapshot, as a span of views. The views stand where the flow keeps them from one
// plan to the next (flow/planning/head_views.h), in no order; the list has the order.
class HeadList {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = HeadView;
    using difference_type = std::ptrdiff_t;
    using pointer = const HeadView*;
    using reference = const HeadView&;
    Iterator() = default;
    explicit Iterator(const HeadView* const* at) : at_(at) {}
    reference operator*() const { return **at_; }
    pointer operator->() const { return *at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    bool operator==(const Iterator&) const = default;

   private:
    const HeadView* const* at_ = nullptr;
  };

  HeadList() = default;
  explicit HeadList(absl::Span<const HeadView* const> views) : views_(views) {}
  size_t size() const { return views_.size(); }
  bool empty() const { return views_.empty(); }
  const HeadView& operator[](size_t index) const { return *views_[index]; }
  Iterator begin() const { return Iterator(views_.data()); }
  Iterator end() const { return Iterator(views_.data() + views_.size()); }
  // Of a head of this list.
  size_t IndexOf(const HeadView& head) const {
    return static_cast<size_t>(std::find(views_.begin(), views_.end(), &head) - views_.begin());
  }

 private:
  absl::Span<const HeadView* const> views_;
};

struct PartView {
  PlaceIndex place = kNoPlace;
  LaneIndex lane = kNoLane;
  int32_t workers = 0;
  bool evicting = false;
  Form form = Form::kOriginal;
  TimeNs launched_ns = 0;
};

// A task with at least one launch on the device.
struct RunningView {
  HeadView task;  // remaining is measured from now
  BoundedList<PartView, kMaxPartsPerTask> parts;
  uint64_t places = 0;  // bit per place with a live part that is not being evicted
  // A part has ended by itself: the others execute the last block tasks, and none is left to claim.
  bool draining = false;
};

// Measured or predicted speeds of LC app a beside BE kernel k on split s. Speeds relative to alone
// on the whole device.
struct PairOption {
  float lc_speed = 0;          // LC on the split's LC side, BE side busy with k
  float lc_speed_alone = 0;    // same, BE side empty
  float be_speed_be_side = 0;  // k on the BE side, LC side busy with a
  float be_speed_lc_side = 0;  // k on the LC side when no query is active
};

struct PairTable {
  // options[(app * kernels + kernel_index) * splits + split]
  absl::Span<const PairOption> options;
  // By option. Above 0: nobody measured the app beside the kernel there; lc_speed is a pessimistic
  // guess, and a trial may find this. Empty: every pair is known.
  absl::Span<const float> hoped;
  int32_t kernels = 0;
  int32_t splits = 0;
  uint64_t version = 0;  // changes when any option changed
  const PairOption& at(int32_t app, int32_t kernel, int32_t split) const {
    return options[static_cast<size_t>((app * kernels + kernel) * splits + split)];
  }
  float HopedAt(int32_t app, int32_t kernel, int32_t split) const {
    return hoped.empty() ? 0
                         : hoped[static_cast<size_t>((app * kernels + kernel) * splits + split)];
  }
};

// A registered fused kernel with its predicted duration over the load ratio.
struct FusedView {
  const FusedKernelDesc* kernel = nullptr;
  FusedCurveView curve;
};

// Two kernels whose workers share every SM, at one choice of workers. Speeds relative to alone on
// the whole device with all workers; 0: unknown, or the workers do not fit.
struct CoScheduleOption {
  std::array<int32_t, 2> workers_per_sm = {};
  std::array<float, 2> speed = {};
  float speed_error = 0;  // one standard deviation of the relative error of a speed
  float profit = 0;       // CP: 1 - 1 / (speed[0] + speed[1]) (Kernelet eq. 1)
};

// A quarter, half and three quarters of the SM for the second kernel.
inline constexpr int32_t kCoScheduleRatios = 3;

// What slices of an option's two kernels did beside each other: speeds with the gaps between
// slices, their ramps and their tails, which workers do not have (flow/learn/slices.h).
struct SlicedPair {
  std::array<float, 2> speed = {};
  std::array<int32_t, 2> runs = {};  // slices that it is of
};

struct CoScheduleTable {
  // options[(row * (row + 1) / 2 + column) * kCoScheduleRatios + ratio], row >= column. The row's
  // kernel is the first of the option.
  absl::Span<const CoScheduleOption> options;
  absl::Span<const KernelDesc* const> rows;  // the kernel of each row
  absl::Span<const SlicedPair> sliced;       // by option; empty: nothing was seen
  int32_t kernels = 0;
  uint64_t version = 0;  // changes when any option changed, or one was added

  static constexpr size_t IndexOf(int32_t row, int32_t column) {
    return (static_cast<size_t>(row) * static_cast<size_t>(row + 1) / 2 +
            static_cast<size_t>(column)) *
           kCoScheduleRatios;
  }
  // Of two rows in any order; empty where there is none.
  absl::Span<const CoScheduleOption> Of(int32_t a, int32_t b) const {
    const int32_t row = std::max(a, b);
    const int32_t column = std::min(a, b);
    if (column < 0 || row >= kernels) return {};
    return options.subspan(IndexOf(row, column), kCoScheduleRatios);
  }
  absl::Span<const SlicedPair> SlicedOf(int32_t a, int32_t b) const {
    if (sliced.empty() || Of(a, b).empty()) return {};
    return sliced.subspan(IndexOf(std::max(a, b), std::min(a, b)), kCoScheduleRatios);
  }
};

inline constexpr int32_t kNoSplit = -1;  // else an index into Snapshot::splits

// How graphs in segments run while queries are active, where both ways are compared.
enum class SegmentsRun : uint8_t { kNone = 0, kBesideQueries, kOnSplit };

// Which arrangement runs. A plan states it (Plan::arrangement) with the routes that it publishes,
// and the next snapshot repeats it (Snapshot::in_force). A policy that uses no splits leaves the
// defaults.
struct ArrangementInForce {
  static constexpr int32_t kNoTrial = -1;

  // LC is routed to this split's LC side; kNoSplit: to the whole device.
  int32_t split = kNoSplit;
  // The split is on trial beside this BE kernel, which nobody measured there (a row of `pairs`);
  // kNoTrial: it is not. The evidence ends a trial too (evidence/pair_trial.h).
  int32_t trial_kernel = kNoTrial;
  // kNone: no graph runs in segments, or the policy does not compare the two ways.
  SegmentsRun segments = SegmentsRun::kNone;
  // LC kernels on the whole device take BE kernels along in fused launches. What is on the device
  // does not tell: the last kernel of a query may go alone.
  bool fused = false;

  // The split that is on trial; kNoSplit: none.
  int32_t TriedSplit() const { return trial_kernel == kNoTrial ? kNoSplit : split; }
  bool operator==(const ArrangementInForce&) const = default;
};

struct Snapshot {
  TimeNs now_ns = 0;
  uint64_t plan_sequence = 0;
  int32_t sm_count = 0;
  double capsms_free = 0;  // unreserved and unused
  int64_t queued_ns = 0;   // T_q: predicted time of launched work; of segments, of their eviction
  // Time from the end of the last LC query until BE returns. A closed-loop client that submits its
  // next query at once then pays for no eviction.
  int64_t return_hysteresis_ns = 2000;
  // Of the device's profile: the part of an eviction that does not depend on the work.
  int64_t eviction_write_ns = 4000;
  int64_t cut_node_ns = 12'400;  // of the same: what a node cut out of a graph costs its query
  bool quiesced = false;         // the application asked for quiet: launch nothing
  // The duty of BE work on the whole device (evidence/be_duty.h): it pauses until then, and again
  // at that time.
  TimeNs be_paused_until_ns = 0;
  TimeNs be_pauses_at_ns = kNever;
  bool partitions_available = false;
  bool eviction_available = false;
  absl::Span<const PlaceView> places;  // [0] is the whole device
  absl::Span<const SplitView> splits;
  std::array<CopyState, 4> copies;  // by CopyDirection
  absl::Span<const LcAppView> lc_apps;
  absl::Span<const BeAppView> be_apps;
  absl::Span<const QueryView> queries;
  bool queries_left_out = false;          // an app has more queries than are shown
  HeadList heads;                         // LC first, by priority; then in order of submission
  absl::Span<const RunningView> running;  // BE; LC work in flight is counted in lc_apps
  PairTable pairs;
  ArrangementInForce in_force;  // what the last plan stated
  // A split may be used beside kernels that nobody measured there: the one on trial, else any.
  bool trials_open = false;
  absl::Span<const FusedView> fused;  // in the order of registration
  uint64_t fused_version = 0;         // changes when any of them changed, or one was added
  CoScheduleTable co_schedules;
  // The plan of partitions that is in force (gpushare_plan_partitions); null: none.
  const PartitionsView* partitions = nullptr;
};

// --- the plan -----------------------------------------------------------------------------------

// Which kind of lane a launch goes to; the launch stage picks the concrete lane.
enum class LaneClass : uint8_t {
  kPlain = 0,  // ordinary priority: the baseline 'default streams'
  kLc = 1,     // highest priority, never evicted
  kBe = 2,     // lowest priority, has an eviction word
  kCopy = 3,
};

struct PlannedLaunch {
  TicketId task;      // a head, or a running task that gets one more part
  int32_t count = 1;  // tasks of its queue in a row (heads with ready_count >= count)
  Form form = Form::kOriginal;
  PlaceIndex place = kWholeDevice;
  LaneClass lane_class = LaneClass::kPlain;
  int32_t workers = 0;     // kWorkers: 0 means all that the place holds
  int64_t blocks_max = 0;  // 0: all; else a slice of at most so many block tasks (bytes for copies)
  TicketId fused_with;     // kFused: the other task
  KernelId fused_kernel;   // kFused: which of the pair's fused kernels; 0: the first registered
  Reason reason = Reason::kNone;
};

// Evicts the parts of `task` on `place`, all but workers_to_keep workers.
struct PlannedEviction {
  TicketId task;
  PlaceIndex place = kWholeDevice;
  int32_t workers_to_keep = 0;
  Reason reason = Reason::kNone;
};

struct PlannedHold {
  TicketId task;
  Reason reason = Reason::kNone;
  int64_t value_ns = 0;  // what the reason compares with limit_ns
  int64_t limit_ns = 0;
};

// Where an LC app's next task goes, published for the fast path. Evictable BE launches on places
// that overlap it are evicted, and held while LC work is in flight, if evict_overlapping.
struct LcRoute {
  PlaceIndex place = kWholeDevice;
  LaneClass lane_class = LaneClass::kLc;
  bool fast_path = true;  // submitters may launch by themselves
  // Graphs that have pieces are submitted in pieces (node_cut.h), which no fast path launches.
  bool cuts_graphs = false;
  bool evict_overlapping = false;
  // Nothing stays on the SMs after such an eviction, and a grid may wait until they are empty
  // (LaunchRequest::waits_for_empty_sms).
  bool waits_for_empty_sms = false;
};

// What a plan chose between: the choice and the next best one with what the policy compared. For
// the event log only.
enum class ChoiceKind : uint8_t {
  kNone = 0,
  kLayout = 1,      // SMs for LC; values: predicted BE throughput, millionths
  kCoSchedule = 2,  // kernels, as PairOf; values: CP, millionths
  kOverlap = 3,     // the BE task beside an LC kernel; values: T_gain in ns
};

// What a choice does to the LC app that it brings closest to a limit: by how much BE work moves the
// latency that its promise limits, and how far a plan may move it.
struct LatencyShift {
  static constexpr int64_t kUnknown = -1;  // no LC app states a limit, or the policy does not say
  int64_t shift_ns = kUnknown;
  int64_t limit_ns = kUnknown;
};

inline int64_t Millionths(double value) { return static_cast<int64_t>(value * 1e6); }

struct PlannedChoice {
  static constexpr int64_t kNoRunnerUp = -1;

  ChoiceKind kind = ChoiceKind::kNone;
  std::array<TicketId, 2> tasks;  // that it is about; 0: the device
  int64_t chosen = 0;
  int64_t runner_up = kNoRunnerUp;
  int64_t value = 0;
  int64_t runner_up_value = 0;
  LatencyShift shift = {};
  LatencyShift runner_up_shift = {};

  static constexpr int64_t PairOf(KernelId one, KernelId other) {
    return static_cast<int64_t>(one.value) << 32 | other.value;
  }
  bool SameAs(const PlannedChoice& other) const {
    return kind == other.kind && tasks == other.tasks && chosen == other.chosen &&
           runner_up == other.runner_up;
  }
};

struct Plan {
  // Places that the plan's arrangement has, a bit each: those that are not made yet are asked for.
  // Until they are ready, an LC launch or route that names one goes to the whole device, and a BE
  // launch is held.
  uint64_t places_wanted = 0;
  // A list that is full takes no more (TryAdd): the rest waits for the next plan.
  BoundedList<PlannedLaunch, kMaxPlannedActions> launches;
  BoundedList<PlannedEviction, kMaxPlannedActions> evictions;
  BoundedList<PlannedHold, kMaxHeads> holds;  // one a head
  std::array<LcRoute, kMaxApps> routes;       // by index into lc_apps
  // Ask for another plan at this time even if nothing happens (hysteresis), kNever: no.
  TimeNs replan_at_ns = kNever;
  ArrangementInForce arrangement;  // in force from this plan on
  // How long a segment of a BE graph on the whole device may be from this plan on, ns: a query may
  // wait for two of them (Device::LimitSegments). 0: the graph's own; kNever: the whole graph.
  int64_t longest_segment_ns = 0;
  PlannedChoice choice;
  // Entries of a policy from outside that were malformed, and are not in the lists.
  int64_t dropped = 0;

  void Clear() {
    places_wanted = 0;
    launches.Clear();
    evictions.Clear();
    holds.Clear();
    routes.fill(LcRoute());
    replan_at_ns = kNever;
    arrangement = ArrangementInForce();
    longest_segment_ns = 0;
    choice = PlannedChoice();
    dropped = 0;
  }
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_SNAPSHOT_H_
