// The engine of the simulated device: tables, events in time, and the rules that move them.
//
// Single-threaded; sim_device.cc calls it under its mutex. The rules lie in files of their own:
//   queues.cc           lanes, hardware queues, eviction words, when a launch becomes ready
//   block_scheduler.cc  which pending launch gets which room (left over by earlier ones)
//   block_tasks.cc      claiming, finishing and leaving behind block tasks
//   graphs.cc           chains of nodes: graphs, library calls, opaque work
//   speeds.cc           how fast everything that is resident goes, and when it is due
//   engine.cc           events, completions, the clock
// Invariants: see sim_device.h. A block task is unclaimed, interrupted, in flight in one residency,
// or done; the counts add up to the task's block tasks at every event.

#ifndef GPUSHARE_SRC_SIM_ENGINE_H_
#define GPUSHARE_SRC_SIM_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/core/seams/device.h"
#include "src/sim/faults.h"
#include "src/sim/link.h"
#include "src/sim/prepared_kernel.h"
#include "src/sim/random.h"
#include "src/sim/sim_device.h"
#include "src/sim/sm_state.h"

namespace gpushare::sim {

enum class LaunchPhase : uint8_t {
  kFree = 0,
  kQueued,    // behind others on its lane or hardware queue
  kIssued,    // on its way; becomes ready at a known time
  kResident,  // ready: the block scheduler knows it, or the link for copies
  kOver,      // over; not yet seen by the host
};

enum class ChainState : uint8_t {
  kNone = 0,
  kPending,  // the next node waits for its SMs
  kNode,     // one node runs
  kGap,      // between two nodes: its SMs are free
  kSegment,  // undisturbed: the rest of the chain runs as one event
};

struct Launch {
  LaunchPhase phase = LaunchPhase::kFree;
  uint32_t generation = 0;  // of the slot: a timer of an earlier launch is void
  core::LaunchId id;
  core::Form form = core::Form::kOriginal;
  core::LaneIndex lane = core::kNoLane;
  int32_t priority = 0;
  uint64_t sequence = 0;  // order in which grids (nodes, for chains) became ready
  const Place* place = nullptr;
  const PreparedKernel* kernel = nullptr;
  core::TimeNs issued_until_ns = 0;
  core::TimeNs start_ns = core::kNever;
  core::TimeNs end_ns = 0;
  core::Outcome outcome = core::Outcome::kFinished;
  int32_t error_code = 0;
  int32_t next_in_queue = -1;
  bool pending = false;  // in the block scheduler's list
  bool visible = false;  // reported or about to be, in the ring

  // Faults drawn at launch.
  bool hung = false;
  bool fails = false;
  bool dropped = false;
  bool duplicated = false;
  double slowness = 1;

  // Block tasks: original grids, slices, workers, fused pairs.
  bool workers = false;  // takes block tasks by itself and reads the eviction word
  uint64_t epoch = 0;
  bool evicted = false;
  bool left_work = false;
  int32_t pool = -1;
  int64_t workers_wanted = 0;
  int64_t workers_resident = 0;
  int32_t residencies = 0;
  int32_t workers_per_sm = 1;
  BlockNeeds needs;
  double sm_ns_per_task = 0;
  double in_flight_progress = 0;
  double yield_share = 0;  // yield interval over block task, 0 without yield points
  int64_t tasks_done = 0;

  // Fused pairs: the first part is what the block scheduler places, the second rides with it.
  int32_t partner = -1;  // the other part's slot, until one of them ends
  bool rides = false;
  core::LaneIndex carrier = core::kNoLane;  // of both: the lane in whose order they are
  int32_t per_block = 1;                    // workers of this part in a fused block
  double paired_slowness = 1;               // while the other part of the same blocks works too
  int64_t fused_left = 0;                   // fused blocks that are not placed
  bool fused_started = false;

  // Chains.
  ChainState chain = ChainState::kNone;
  NodeRun own_node;  // opaque work and library calls with a bound of their own
  bool has_own_node = false;
  int64_t node = 0;
  double left_ns = 0;  // of the node or segment, alone on the whole device
  double rate = 0;
  core::TimeNs synced_ns = 0;
  core::TimeNs due_ns = core::kNever;

  // What it asks of the hardware now.
  core::ResourceDemand demand;
  double memory_parallelism = 0;
  double place_speed = 1;    // speed on its place, relative to the whole device
  double device_factor = 1;  // DRAM and L2
  double speed = 0;          // scratch of speeds.cc
  double weight = 0;

  core::CopyRequest copy;
};

// Blocks of one launch in one cell.
struct Residency {
  int32_t launch = -1;
  int32_t cell = -1;
  int32_t next_in_cell = -1;
  int64_t workers = 0;
  bool draining = false;     // claims no more; due when its last block ends
  int64_t claimed = 0;       // taken from the pool so far
  double work_done = 0;      // in block tasks, credit of resumed ones included
  double phase = 0;          // 0 to 1: shifts its claims against other SMs'
  double rate = 0;           // block tasks per ns
  double tail_slowness = 1;  // spread of block tasks: the slowest ends later
  int64_t done_at_end = 0;   // of `claimed`, what ends inside this residency
  int64_t interrupted_at_end = 0;
  double interrupted_left = 0;
  double drain_target = 0;  // work_done at which it leaves
  int64_t keep = -1;        // partial eviction: workers that stay, -1 when none is under way
  double busy_sms = 0;
  // Room in the cell: of its blocks, which the last part of fused blocks gives back.
  BlockNeeds needs;
  int64_t held_blocks = 0;
  int32_t peer = -1;  // the other part of the same fused blocks
  core::TimeNs synced_ns = 0;
  core::TimeNs due_ns = core::kNever;
};

// Block tasks that nobody has finished: of a counter, or of a grid of its own.
struct Pool {
  int64_t unclaimed = 0;
  int64_t interrupted = 0;      // stopped at a yield point
  double interrupted_left = 0;  // what is left of them, in block tasks
  bool zeroed = false;          // a launch has reset it
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
  bool evictable = false;
  bool abandoned = false;
  int32_t queue = 0;
  int32_t running = -1;  // the launch that its successor waits for
  bool had_predecessor = false;
  int64_t queued = 0;
  bool has_word = false;
  uint64_t word = 0;
  int64_t keep = 0;
  core::TimeNs last_write_ns = 0;
  bool blocked_word = false;  // fault: a write that waits for the lane's launch to end
  uint64_t blocked_epoch = 0;
  int64_t blocked_keep = 0;
};

class Engine {
 public:
  explicit Engine(const SimOptions& options);

  const core::DeviceCapabilities& capabilities() const { return capabilities_; }
  core::TimeNs NowNs() const { return now_ns_.load(std::memory_order_acquire); }

  absl::Status Prepare(const core::KernelDesc& kernel);
  void PrepareFused(core::FusedKernelDesc& fused) const;
  absl::StatusOr<core::PlaceIndex> AddPlace(const core::PlaceSpec& spec);
  absl::StatusOr<core::LaneIndex> AddLane(const core::LaneSpec& spec);
  void Abandon(core::LaneIndex lane);
  // Everything that can be wrong with a request, without changing anything.
  absl::Status Check(const core::LaunchRequest& request) const;
  absl::Status Submit(const core::LaunchRequest& request);
  absl::Status Evict(core::LaneIndex lane, uint64_t epoch, int32_t keep);
  size_t Poll(absl::Span<core::DeviceCompletion> out);
  core::TimeNs NextEventNs() const;
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
    int32_t head = -1;  // launches, or waiting writes as -2 - index
    int32_t tail = -1;
  };
  struct WaitingWrite {
    int32_t lane = -1;  // -1: free
    uint64_t epoch = 0;
    int64_t keep = 0;
    int32_t next = -1;
  };

  // --- queues.cc ---------------------------------------------------------------------------------
  absl::Status CheckKernelForm(const core::LaunchRequest& request) const;
  absl::Status CheckFused(const core::LaunchRequest& request) const;
  absl::Status CheckCounter(int32_t counter, bool reset, int64_t block_count) const;
  const PreparedKernel* Find(const core::KernelDesc* kernel) const;
  void Fill(int32_t slot, const core::LaunchRequest& request);
  void FillTasks(int32_t slot, const core::LaunchRequest& request);
  void FillFused(int32_t slot, const core::LaunchRequest& request);
  struct FusedShape {
    BlockNeeds needs;
    int32_t blocks_per_sm = 1;
  };
  FusedShape ShapeOf(const core::FusedKernelDesc& fused, const PreparedKernel& tensor,
                     const PreparedKernel& cuda) const;
  void ShapeFused(Launch& first, Launch& second, const core::LaunchRequest& request);
  void FillChain(Launch& launch, const core::LaunchRequest& request);
  void StartCopy(int32_t slot);
  void DrawLaunchFaults(Launch& launch);
  void Enqueue(int32_t queue, int32_t command);
  void Dispatch(int32_t queue);
  int32_t& NextOf(int32_t command);
  void Issue(int32_t slot);
  void Ready(int32_t slot);
  void FusedIsReady(int32_t slot);
  void KeepToWord(Launch& launch) const;
  void WriteWord(core::LaneIndex lane, uint64_t epoch, int64_t keep);
  void WordArrives(core::LaneIndex lane, uint64_t epoch, int64_t keep);
  bool MustLeave(const Launch& launch) const;
  int32_t QueueOf(core::PlaceIndex place, int32_t ordinal) const;

  // --- block_scheduler.cc ------------------------------------------------------------------------
  void MakePending(int32_t slot);
  void RemovePending(int32_t slot);
  void PlacePending();
  bool PlaceTasks(int32_t slot);
  bool PlaceFused(int32_t slot);
  void StartFusedBlocks(int32_t slot, int32_t cell, int64_t blocks);
  bool CanStart(const Launch& launch) const;
  void Hold(const Launch& launch);
  void StopRefillOfHeldCells();
  bool Overtakes(const Launch& launch, const Cell& cell) const;
  Residency& AddResidency(int32_t slot, int32_t cell, const BlockNeeds& needs, int64_t blocks,
                          int64_t workers);
  void RemoveResidency(int32_t index);

  // --- block_tasks.cc ----------------------------------------------------------------------------
  double TakeFromPool(Pool& pool, int64_t tasks);
  double ClaimsBeyondFirst(const Residency& residency, const Launch& launch) const;
  void StartTasks(int32_t slot, Residency& residency, int64_t workers);
  void StopClaiming(Residency& residency, int64_t extra_claims);
  void LeaveAtBoundary(Residency& residency);
  void LeaveAtYieldPoint(Residency& residency);
  void EvictLaunch(int32_t slot, int64_t keep);
  void PoolIsEmpty(int32_t pool);
  void ResidencyIsDue(int32_t index);
  void EndIfDone(int32_t slot);
  void SyncResidency(Residency& residency);

  // --- graphs.cc ---------------------------------------------------------------------------------
  bool PlaceNode(int32_t slot);
  void StartSegment(int32_t slot);
  void BreakSegments(const Place& place, int32_t except);
  void BreakSegment(int32_t slot);
  void ChainIsDue(int32_t slot);
  void GapIsOver(int32_t slot);
  void FreeCells(int32_t slot);
  void SyncChain(Launch& launch);
  const NodeRun& CurrentNode(const Launch& launch) const;
  int64_t NodeCount(const Launch& launch) const;
  bool IsAlone(int32_t slot) const;

  // --- speeds.cc ---------------------------------------------------------------------------------
  void SetSpeeds();
  void SetCellFactors();
  void SetLaunchSpeeds();
  void SetMemoryFactors();
  void SetDueTimes();
  double OccupancySpeed(const Residency& residency, const Launch& launch, const Cell& cell) const;

  // --- engine.cc ---------------------------------------------------------------------------------
  void AddTimer(core::TimeNs time, TimerKind kind, int32_t index, uint64_t epoch = 0,
                int64_t keep = 0);
  void FireTimers();
  void FireDue();
  void Settle();
  void MoveClock(core::TimeNs time);
  void EndLaunch(int32_t slot, core::Outcome outcome, int32_t error_code);
  void LaneFree(int32_t slot);
  void LoseDevice();
  int32_t AllocateSlot();
  void FreeSlot(int32_t slot);

  core::DeviceCapabilities capabilities_;
  FaultInjector faults_;
  Random random_;
  std::atomic<core::TimeNs> now_ns_{0};
  core::TimeNs now_ = 0;
  double busy_sm_ns_ = 0;
  double busy_sms_ = 0;
  bool device_lost_ = false;
  bool clock_jumped_ = false;
  bool dirty_ = false;  // something became resident, pending or free since the last Settle
  uint64_t next_sequence_ = 1;
  uint64_t next_timer_ = 1;

  SmState sms_;
  Link link_;
  std::vector<std::unique_ptr<PreparedKernel>> kernels_;  // ascending by id, then name
  std::vector<std::unique_ptr<Place>> places_;
  std::vector<Lane> lanes_;
  std::vector<int32_t> lanes_of_place_;  // how many lanes each place has
  std::vector<HardwareQueue> queues_;    // hardware_queues for each place
  std::vector<WaitingWrite> writes_;
  std::vector<Launch> launches_;
  std::vector<int32_t> free_slots_;
  std::vector<Residency> residencies_;
  std::vector<int32_t> free_residencies_;
  std::vector<int32_t> active_residencies_;
  std::vector<int32_t> resident_launches_;  // with a residency, in order of arrival
  std::vector<int32_t> pending_;            // by priority, then sequence
  std::vector<Pool> pools_;                 // counters, then one for each launch slot
  std::vector<int32_t> active_pools_;
  std::vector<Timer> timers_;                // heap
  core::TimeNs next_due_ns_ = core::kNever;  // residencies, chains and pools
  // Completions that the host may see, oldest first: a ring of launch slots.
  std::vector<int32_t> visible_;
  size_t visible_head_ = 0;
  size_t visible_count_ = 0;
};

}  // namespace gpushare::sim

#endif  // GPUSHARE_SRC_SIM_ENGINE_H_
