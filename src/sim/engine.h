// The engine of the simulated device: its tables, its events in time, and the rules that apply to
// them.
//
// The rules are in separate files:
//   queues.cc           lanes, hardware queues, eviction words, when a launch becomes ready
//   block_scheduler.cc  which waiting launch gets which room on the SMs
//   fused.cc            fused launches: two parts that share blocks
//   block_tasks.cc      how block tasks are claimed, finished and left unfinished
//   graphs.cc           chains of nodes: graphs, library calls, opaque work
//   speeds.cc           how fast everything resident runs, and when it ends
//   engine.cc           events, completions, the clock
// Invariants: those of sim_device.h. A block task is unclaimed, interrupted, in flight in one
// residency, or done; at every event these counts add up to the task's block tasks.
// Threads: single-threaded; sim_device.cc calls it under its mutex.

#ifndef GPUSHARE_SRC_SIM_ENGINE_H_
#define GPUSHARE_SRC_SIM_ENGINE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/core/base/limits.h"
#include "src/core/base/random.h"
#include "src/core/seams/device.h"
#include "src/sim/faults.h"
#include "src/sim/physics/fused_pace.h"
#include "src/sim/physics/link.h"
#include "src/sim/prepared_kernel.h"
#include "src/sim/sim_options.h"
#include "src/sim/sm_state.h"
#include "src/sim/table.h"

namespace gpushare::sim {

enum class LaunchPhase : uint8_t {
  kFree = 0,
  kQueued,    // behind other launches on its lane or hardware queue
  kIssued,    // on its way to the device; becomes ready at a known time
  kResident,  // ready: the block scheduler has it, or the link for copies
  kOver,      // ended; the host has not seen it yet
};

enum class ChainState : uint8_t {
  kNone = 0,
  kPending,  // the next node waits for its SMs
  kNode,     // one node runs
  kGap,      // between two nodes: its SMs are free
  kRun,      // nothing else uses its SMs: the rest of the chain is one event
};

struct Launch {
  LaunchPhase phase = LaunchPhase::kFree;
  uint32_t generation = 0;  // of the slot; a timer of an earlier generation is ignored
  core::LaunchId id;
  core::Form form = core::Form::kOriginal;
  core::LaneIndex lane = core::kNoLane;
  int32_t priority = 0;
  uint64_t sequence = 0;  // order in which grids (for chains: nodes) became ready
  const Place* place = nullptr;
  const PreparedKernel* kernel = nullptr;
  core::TimeNs issued_until_ns = 0;
  int32_t after = -1;  // slot of another lane's launch that must end first, and its generation
  uint32_t after_generation = 0;
  core::TimeNs start_ns = core::kNever;
  core::TimeNs end_ns = 0;
  core::Outcome outcome = core::Outcome::kFinished;
  int32_t error_code = 0;
  int32_t next_in_queue = -1;
  bool pending = false;   // in the block scheduler's list
  bool visible = false;   // in the ring of completions, or reported
  bool given_up = false;  // its lane was abandoned: it is not reported

  // Faults, drawn at launch.
  bool hung = false;
  bool fails = false;
  bool dropped = false;
  bool duplicated = false;
  double slowness = 1;

  // For block tasks: original grids, slices, workers, fused pairs.
  bool workers = false;  // claims block tasks itself and reads the eviction word
  uint64_t epoch = 0;
  bool evicted = false;
  int32_t pool = -1;
  int64_t workers_wanted = 0;
  int64_t workers_resident = 0;
  int32_t residencies = 0;
  int32_t workers_per_sm = 1;
  BlockNeeds needs;
  double sm_ns_per_task = 0;
  double in_flight_progress = 0;
  double yield_share = 0;  // yield interval over block-task time; 0 without yield points
  int64_t tasks_done = 0;

  // For fused pairs. The block scheduler places the first part; the second part shares its blocks.
  int32_t partner = -1;  // slot of the other part, until one of them ends
  bool is_second_part = false;
  core::LaneIndex stream_lane = core::kNoLane;  // the lane that orders both parts: the first part's
  int32_t per_block = 1;                        // workers of this part in a fused block
  PartPace fused_pace;                          // 1 in other launches
  int64_t fused_left = 0;                       // fused blocks that are not yet placed
  bool fused_started = false;

  // For chains.
  ChainState chain = ChainState::kNone;
  NodeRun own_node;  // for opaque work and library calls with their own bound
  bool has_own_node = false;
  int64_t node = 0;
  int64_t blocks_left = 0;   // blocks of the node that start when its present ones end
  int64_t node_end = 0;      // the launch ends before this node; an eviction lowers it
  bool in_segments = false;  // kSegments: starts at its counter's segment, may be evicted
  int32_t segment_first = 0;
  int64_t longest_segment_ns = 0;
  bool longer_segments = false;  // they follow Engine::longest_segment_ns_
  bool ran_longer = false;       // some of them were longer than the graph's own
  size_t length_since = 0;       // the segment from which on they have the present length
  size_t begun_until = 0;        // segments of an earlier length are on the device up to this one
  double own_slowness = 1;       // without the cuts
  double left_ns = 0;            // time left of the node or of the run, alone on the whole device
  double node_done_ns = 0;       // of the node, by launches before this one
  double node_stretch = 1;       // how much longer it takes on the SMs that it was given
  bool leaves_node = false;      // evicted: it ends at a block task of the node
  double rate = 0;
  core::TimeNs synced_ns = 0;
  core::TimeNs due_ns = core::kNever;

  // Current demands on the hardware.
  core::ResourceDemand demand;
  double memory_parallelism = 0;
  double place_speed = 1;    // speed on its place relative to the whole device
  double device_factor = 1;  // factor on its speed by DRAM and L2
  double speed = 0;          // scratch of speeds.cc, like the two below
  double weight = 0;
  int32_t memory_client = -1;  // scratch of speeds.cc
  double tasks_per_sm_ns = 0;  // block tasks that an SM ends when nothing slows it

  core::CopyRequest copy;
};

// The blocks of one launch in one cell.
struct Residency {
  int32_t launch = -1;
  int32_t cell = -1;
  int32_t next_in_cell = -1;
  int64_t workers = 0;
  bool draining = false;       // claims no more; due when its last block ends
  int64_t claimed = 0;         // taken from the pool so far
  double work_done = 0;        // in block tasks, with the finished share of resumed ones
  double phase = 0;            // -0.5 to 0.5: shifts its claims against those of other cells
  double rate = 0;             // block tasks per ns
  double occupancy_speed = 1;  // scratch of speeds.cc; for a fused block divided by its pace
  double tail_slowness = 1;    // at least 1; stretches the last block tasks of a task
  int64_t done_at_end = 0;     // block tasks of `claimed` that end in this residency
  int64_t interrupted_at_end = 0;
  double interrupted_left = 0;
  double drain_target = 0;  // work_done at which its blocks leave
  int64_t keep = -1;        // partial eviction: workers that stay; -1 when none is under way
  double busy_sms = 0;
  // The room in the cell that its blocks hold. Of fused blocks, the part that leaves last returns
  // it.
  BlockNeeds needs;
  int64_t held_blocks = 0;
  int32_t peer = -1;  // residency of the other part of the same fused blocks
  core::TimeNs synced_ns = 0;
  core::TimeNs due_ns = core::kNever;
};

// The unfinished block tasks of a counter, or of a grid without one.
struct Pool {
  int64_t unclaimed = 0;
  int64_t interrupted = 0;      // stopped at a yield point
  double interrupted_left = 0;  // unfinished work of the interrupted ones, in block tasks
  int64_t taken = 0;            // claimed since the counter was reset
  double node_done_ns = 0;      // of a graph: done of the node that begins the next segment
  bool zeroed = false;          // a launch has reset the counter
  bool active = false;          // in active_pools_
  int32_t residencies = 0;
  double claims = 0;  // scratch of speeds.cc
  double rate = 0;
  core::TimeNs due_ns = core::kNever;

  int64_t available() const { return unclaimed + interrupted; }
};

struct Lane {
  core::PlaceIndex place = core::kWholeDevice;
  int32_t priority = 0;
  bool made = false;  // false: the index is free
  bool evictable = false;
  bool abandoned = false;
  bool replaced = false;
  bool has_segments = false;  // a launch in segments is not reported yet
  int32_t queue = 0;
  int32_t running = -1;  // the launch on the SMs; the next launch waits for it
  int32_t newest = -1;   // slot of the newest launch, and its generation
  uint32_t newest_generation = 0;
  bool had_predecessor = false;
  bool has_word = false;
  uint64_t word = 0;
  int64_t keep = 0;
  core::TimeNs last_write_ns = 0;
  bool has_written = false;  // the host's word, which arrives in device memory later
  uint64_t written = 0;
  int64_t written_keep = 0;
  bool blocked_word = false;  // fault: a write waits until the lane's launch has ended
  uint64_t blocked_epoch = 0;
  int64_t blocked_keep = 0;
};

class Engine {
 public:
  explicit Engine(const SimOptions& options);

  const core::DeviceCapabilities& capabilities() const { return capabilities_; }
  core::TimeNs NowNs() const { return now_ns_.load(std::memory_order_acquire); }

  absl::Status Prepare(const core::KernelDesc& kernel);
  void Release(core::KernelId kernel);  // no launch has it
  void PrepareFused(core::FusedKernelDesc& fused);
  absl::Status AddPlace(core::PlaceIndex place, const core::PlaceSpec& spec);
  absl::Status RemovePlace(core::PlaceIndex place);
  absl::StatusOr<core::LaneIndex> AddLane(const core::LaneSpec& spec);
  void Abandon(core::LaneIndex lane);
  absl::Status Replace(core::LaneIndex lane, const core::LaneSpec& spec);
  // Validates a request without changing anything.
  absl::Status Check(const core::LaunchRequest& request) const;
  absl::Status Submit(const core::LaunchRequest& request);
  absl::Status Evict(core::LaneIndex lane, uint64_t epoch, int32_t keep);
  void LimitSegments(int64_t longest_ns);
  int64_t ClaimsOf(int32_t counter) const;
  size_t Poll(absl::Span<core::DeviceCompletion> out);
  core::TimeNs NextEventNs() const;
  // When a completion may be visible next, before anything else is launched or evicted: now, if one
  // is. Often later than the next event, because those inside a chain end nothing.
  core::TimeNs NextLookNs() const;
  void AdvanceTo(core::TimeNs time);
  int64_t BusySmNs() const { return static_cast<int64_t>(busy_sm_ns_); }

 private:
  enum class TimerKind : uint8_t { kReady, kWord, kGapEnd, kVisible, kDeviceLost };
  struct Timer {
    core::TimeNs time_ns = 0;
    uint64_t sequence = 0;
    TimerKind kind = TimerKind::kReady;
    int32_t index = -1;
    uint64_t epoch = 0;
    int64_t keep = 0;
  };
  struct HardwareQueue {
    int32_t head = -1;  // a launch slot, or -2 - index of a waiting write
    int32_t tail = -1;
  };
  struct WaitingWrite {
    int32_t lane = -1;  // -1 if the entry is free
    uint64_t epoch = 0;
    int64_t keep = 0;
    int32_t next = -1;
  };

  absl::StatusOr<Lane> MakeLane(const core::LaneSpec& spec);

  // queues.cc
  absl::Status CheckKernelForm(const core::LaunchRequest& request) const;
  absl::Status CheckFused(const core::LaunchRequest& request) const;
  absl::Status CheckCounter(int32_t counter, bool reset, int64_t block_count) const;
  const PreparedKernel* Find(const core::KernelDesc* kernel) const;
  void Fill(int32_t slot, const core::LaunchRequest& request);
  void FillTasks(int32_t slot, const core::LaunchRequest& request);
  void FillChain(Launch& launch, const core::LaunchRequest& request);
  void FillSegments(Launch& launch, const core::LaunchRequest& request);
  void StartCopy(int32_t slot);
  // Call when a copy starts or ends: it may change the speed of kernels.
  void NoteCopies();
  double CopyFactor(const Launch& launch) const;
  void NoteOrder(int32_t slot, const core::LaunchRequest& request);
  bool IsBehind(const Launch& launch) const;
  void DispatchBehind();
  void DrawLaunchFaults(Launch& launch);
  void Enqueue(int32_t queue, int32_t command);
  void Dispatch(int32_t queue);
  int32_t& NextOf(int32_t command);
  int64_t SliceGapNs(const Launch& launch) const;
  void Issue(int32_t slot);
  void Ready(int32_t slot);
  void ApplyEvictionWord(Launch& launch) const;
  void WriteWord(core::LaneIndex lane, uint64_t epoch, int64_t keep);
  void WordArrives(core::LaneIndex lane, uint64_t epoch, int64_t keep);
  void WriteEarlyEviction(const Launch& launch);
  bool MustLeave(const Launch& launch) const;
  int32_t QueueOf(core::PlaceIndex place, int32_t ordinal) const;
  bool HasPlace(core::PlaceIndex place) const {
    return place >= 0 && place < core::kMaxPlaces && places_[place] != nullptr;
  }
  bool HasLane(core::LaneIndex lane) const {
    return lane >= 0 && lane < static_cast<int32_t>(lanes_.size()) && lanes_[lane].made;
  }
  // Whether a launch of the lane is not reported, or its stream may never end.
  bool IsInUse(core::LaneIndex lane) const;

  // block_scheduler.cc
  void MakePending(int32_t slot);
  void RemovePending(int32_t slot);
  void PlacePending();
  int32_t OwnResidency(int32_t slot, const Cell& cell) const;
  int64_t RoomFor(int32_t slot, const Cell& cell) const;
  bool PlaceTasks(int32_t slot);
  void AddBlocks(int32_t slot, int64_t want, int64_t room, int64_t room_sms);
  void Hold(const Launch& launch);
  void StopRefillOfHeldCells();
  bool Overtakes(const Launch& launch, const Cell& cell) const;
  Residency& AddResidency(int32_t slot, int32_t cell, const BlockNeeds& needs, int64_t blocks,
                          int64_t workers);
  void RemoveResidency(int32_t index);

  // fused.cc
  void FillFused(int32_t slot, const core::LaunchRequest& request);
  struct FusedShape {
    BlockNeeds needs;
    int32_t blocks_per_sm = 1;
  };
  FusedShape ShapeOf(const core::FusedKernelDesc& fused, const PreparedKernel& tensor,
                     const PreparedKernel& cuda) const;
  void ShapeFused(Launch& first, Launch& second, const core::LaunchRequest& request);
  void FusedIsReady(int32_t slot);
  bool PlaceFused(int32_t slot);
  void StartFusedBlocks(int32_t slot, int32_t cell, int64_t blocks);
  bool CanStart(const Launch& launch) const;

  // block_tasks.cc
  double TakeFromPool(Pool& pool, int64_t tasks);
  void StartTasks(int32_t slot, Residency& residency, int64_t workers);
  void GrowResidency(Residency& residency, int64_t blocks);
  void SettleClaims(int32_t pool);
  bool ClaimsFrom(const Residency& residency, int32_t pool) const;
  static int64_t NewClaims(const Residency& residency, const Launch& launch);
  void Claim(Residency& residency, Pool& pool, int64_t claims);
  void StopClaiming(Residency& residency);
  void LeaveAtYieldPoint(Residency& residency);
  void EvictLaunch(int32_t slot, int64_t keep);
  void PoolIsEmpty(int32_t pool);
  void ResidencyIsDue(int32_t index);
  void EndIfDone(int32_t slot);
  void SyncResidency(Residency& residency);

  // graphs.cc
  bool PlaceNode(int32_t slot);
  CellSet CellsLeftTo(const Launch& launch) const;
  int64_t RoomIn(const CellSet& cells, const Launch& launch, const BlockNeeds& needs) const;
  bool HasRoom(const Launch& launch, const Cell& cell, const BlockNeeds& needs) const;
  void NextTurn(int32_t slot);
  void TakeCells(int32_t slot, const BlockNeeds& needs, const CellSet& cells, int64_t sms);
  void StartRun(int32_t slot);
  void BreakRuns(const Place& place, int32_t except);
  void BreakRun(int32_t slot);
  void ChainIsDue(int32_t slot);
  void EndChain(int32_t slot);
  core::TimeNs EarliestEndOf(const Launch& launch) const;
  double PositionOf(const Launch& launch) const;
  double EndPositionOf(const Launch& launch) const;
  void EvictSegments(int32_t slot);
  bool IsInEvictableNode(const Launch& launch) const;
  void LeaveNode(int32_t slot);
  void FollowLimit(int32_t slot, int64_t longest_before_ns);
  int64_t LongestOf(const Launch& launch) const {
    return launch.longer_segments ? longest_segment_ns_ : 0;
  }
  bool RunsLonger(const Launch& launch) const {
    return launch.kernel->StepsOf(LongestOf(launch)) < launch.kernel->segments.size();
  }
  void SetPace(Launch& launch) const;
  int64_t SegmentsClaimed(const Launch& launch) const;
  void GapIsOver(int32_t slot);
  void FreeCells(int32_t slot);
  void SyncChain(Launch& launch);
  const NodeRun& CurrentNode(const Launch& launch) const;
  int64_t NodeCount(const Launch& launch) const;
  bool IsAlone(int32_t slot) const;

  // speeds.cc
  void SetSpeeds();
  void SetCellFactors();
  void SetLaunchSpeeds();
  void SetMemoryFactors();
  void SetDueTimes();
  double OccupancySpeed(const Residency& residency, const Launch& launch, const Cell& cell) const;
  double PaceOf(const Residency& residency) const;
  bool AreCounted(const Cell& cell) const;
  double FactorOf(const Cell& cell) const;
  core::ResourceDemand PipesOf(const Residency& residency, bool counted) const;

  // engine.cc
  void AddTimer(core::TimeNs time, TimerKind kind, int32_t index, uint64_t epoch = 0,
                int64_t keep = 0);
  void ReserveTimers();
  void FireTimers();
  void FireDue();
  void Update();
  void MoveClock(core::TimeNs time);
  void EndLaunch(int32_t slot, core::Outcome outcome, int32_t error_code);
  void FreeLane(int32_t slot);
  void LoseDevice();
  int32_t AllocateSlot();
  void FreeSlot(int32_t slot);

  core::DeviceCapabilities capabilities_;
  FaultInjector faults_;
  core::Random random_;
  int64_t longest_segment_ns_ = 0;  // LimitSegments
  std::atomic<core::TimeNs> now_ns_{0};
  core::TimeNs now_ = 0;
  double busy_sm_ns_ = 0;
  double busy_sms_ = 0;
  bool device_lost_ = false;
  bool clock_jumped_ = false;
  bool dirty_ = false;  // a launch became resident, pending or free since the last Update
  uint64_t next_sequence_ = 1;
  uint64_t next_timer_ = 1;

  SmState sms_;
  Link link_;
  std::vector<std::unique_ptr<PreparedKernel>> kernels_;  // ascending by id, then name
  // By id of the fused kernel. A fixed array, so that a failed registration leaves no memory
  // behind.
  std::array<std::optional<FusedPace>, core::kMaxKernels + 1> fused_paces_;
  Table<std::unique_ptr<Place>> places_;  // by index; null where there is none
  Table<Lane> lanes_;
  Table<int32_t> lanes_of_place_;  // by place, the number of its lanes
  Table<HardwareQueue> queues_;    // hardware_queues for each place
  int32_t launches_behind_ = 0;    // launches with an `after`, which are not dispatched yet
  Table<WaitingWrite> writes_;
  Table<Launch> launches_;
  std::vector<int32_t> free_slots_;
  Table<Residency> residencies_;
  std::vector<int32_t> free_residencies_;
  std::vector<int32_t> active_residencies_;
  std::vector<int32_t> resident_launches_;  // launches with a residency, in order of arrival
  std::vector<int32_t> pending_;            // sorted by priority, then sequence
  Table<int64_t> room_in_cell_;             // scratch of PlaceTasks
  Table<Pool> pools_;                       // one for each counter, then one for each launch slot
  std::vector<int32_t> active_pools_;
  std::vector<Timer> timers_;                // a heap, earliest first
  core::TimeNs next_due_ns_ = core::kNever;  // of residencies, chains and pools
  // A ring of launch slots: completions that the host may see, oldest first.
  std::vector<int32_t> visible_;
  size_t visible_head_ = 0;
  size_t visible_count_ = 0;
};

}  // namespace gpushare::sim

#endif  // GPUSHARE_SRC_SIM_ENGINE_H_
