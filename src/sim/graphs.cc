// Chains of nodes: graphs, library calls, opaque work.
//
// A node starts when all SMs that its blocks need are free. GEMM nodes are persistent grids with a
// static share for each SM, so one late SM delays the whole node. In the gap before the next node
// the SMs are free, and other launches may fill them. Nodes of a launch in segments of the lowest
// priority, a training step's, begin on the SMs that are free, and their other blocks follow turn
// by turn. While nothing else uses the
// chain's SMs or waits for them, the rest of the chain is one run: one event instead of one for
// each node. A launch in segments is a chain that starts at its counter's segment and, evicted,
// ends at a boundary. A node with a twin, which is a segment of its own, ends at its next block
// task, and the next launch on the counter goes on there.

#include <algorithm>
#include <cmath>

#include "src/sim/engine.h"
#include "src/sim/physics/tuning.h"

namespace gpushare::sim {
namespace {

constexpr BlockNeeds kWholeSm{0, 0, 0, true};
constexpr auto kLowest = static_cast<int32_t>(core::LanePriority::kLow);

}  // namespace

int64_t Engine::NodeCount(const Launch& launch) const {
  return launch.has_own_node ? 1 : launch.kernel->nodes;
}

const NodeRun& Engine::CurrentNode(const Launch& launch) const {
  if (launch.has_own_node) return launch.own_node;
  return *launch.kernel->NodeOf(std::min(launch.node, launch.kernel->nodes - 1)).run;
}

bool Engine::IsAlone(int32_t slot) const {
  const Launch& launch = launches_[slot];
  for (const int32_t other : pending_) {
    if (other == slot) continue;
    if ((launches_[other].place->cells & launch.place->cells).any()) return false;
  }
  for (const Place::Run& run : launch.place->runs) {
    for (int32_t index = run.begin; index < run.end; ++index) {
      if (sms_.cells()[index].residents > 0) return false;
    }
  }
  return true;
}

// The cells that no launch of higher priority uses or waits for.
CellSet Engine::CellsLeftTo(const Launch& launch) const {
  CellSet left = launch.place->cells;
  const auto leave_out = [&](const std::vector<int32_t>& slots) {
    for (const int32_t other : slots) {
      if (launches_[other].priority > launch.priority) left &= ~launches_[other].place->cells;
    }
  };
  leave_out(pending_);
  leave_out(resident_launches_);
  return left;
}

// The SMs of these cells that a node with these needs may take now.
int64_t Engine::RoomIn(const CellSet& cells, const Launch& launch, const BlockNeeds& needs) const {
  int64_t found = 0;
  for (const Place::Run& run : launch.place->runs) {
    for (int32_t index = run.begin; index < run.end; ++index) {
      const Cell& cell = sms_.cells()[index];
      if (cells[static_cast<size_t>(index)] && HasRoom(launch, cell, needs)) found += cell.sms;
    }
  }
  return found;
}

bool Engine::HasRoom(const Launch& launch, const Cell& cell, const BlockNeeds& needs) const {
  return Overtakes(launch, cell) && sms_.Fits(cell, needs) >= cell.sms;
}

bool Engine::PlaceNode(int32_t slot) {
  Launch& launch = launches_[slot];
  if (IsAlone(slot)) {
    StartRun(slot);
    return true;
  }
  const NodeRun& node = CurrentNode(launch);
  const int64_t needed = launch.blocks_left > 0
                             ? launch.blocks_left
                             : std::min<int64_t>(node.node.blocks, launch.place->sms);
  const BlockNeeds& needs = node.needs.whole_sm ? kWholeSm : node.needs;
  CellSet cells = launch.place->cells;
  int64_t left = needed;
  if (RoomIn(cells, launch, needs) < needed) {
    if (!launch.in_segments || launch.priority > kLowest) return false;
    if (launch.evicted) cells = CellsLeftTo(launch);
    left = std::min(needed, RoomIn(cells, launch, needs));
    if (left == 0) return false;
  }
  launch.node_stretch = 1;
  if (IsInEvictableNode(launch)) {
    // Its workers share the block tasks, however many they are.
    launch.node_stretch = static_cast<double>(needed) / static_cast<double>(left);
    launch.blocks_left = 0;
  } else {
    launch.blocks_left = needed - left;
  }
  TakeCells(slot, needs, cells, left);
  launch.chain = ChainState::kNode;
  launch.left_ns =
      (static_cast<double>(node.node.duration_ns) - launch.node_done_ns) * launch.node_stretch;
  launch.demand = node.node.demand;
  launch.rate = 0;
  launch.synced_ns = now_;
  if (launch.start_ns == core::kNever) launch.start_ns = now_;
  dirty_ = true;
  return true;
}

// Takes `sms` SMs of `cells` for a node whose blocks have these needs.
void Engine::TakeCells(int32_t slot, const BlockNeeds& needs, const CellSet& cells, int64_t sms) {
  Launch& launch = launches_[slot];
  launch.needs = needs;
  for (const Place::Run& run : launch.place->runs) {
    for (int32_t index = run.begin; index < run.end && sms > 0; ++index) {
      const Cell& cell = sms_.cells()[index];
      if (!cells[static_cast<size_t>(index)] || !HasRoom(launch, cell, needs)) continue;
      AddResidency(slot, index, needs, cell.sms, cell.sms).busy_sms =
          static_cast<double>(std::min<int64_t>(sms, cell.sms));
      sms -= cell.sms;
    }
  }
}

void Engine::StartRun(int32_t slot) {
  Launch& launch = launches_[slot];
  launch.needs = kWholeSm;
  launch.blocks_left = 0;  // left_ns covers all of them
  double busy_share = 1;
  if (launch.has_own_node) {
    launch.left_ns = static_cast<double>(launch.own_node.node.duration_ns);
    launch.demand = launch.own_node.node.demand;
  } else {
    launch.left_ns =
        EndPositionOf(launch) - launch.kernel->NodeOf(launch.node).begin_ns - launch.node_done_ns;
    launch.demand = launch.kernel->demand;
    busy_share = std::min(
        1.0, launch.kernel->busy_share * capabilities_.profile.sm_count / launch.place->sms);
  }
  for (const Place::Run& run : launch.place->runs) {
    for (int32_t index = run.begin; index < run.end; ++index) {
      const int32_t sms = sms_.cells()[index].sms;
      AddResidency(slot, index, kWholeSm, sms, sms).busy_sms = sms * busy_share;
    }
  }
  launch.chain = ChainState::kRun;
  launch.rate = 0;
  launch.synced_ns = now_;
  if (launch.start_ns == core::kNever) launch.start_ns = now_;
  dirty_ = true;
}

void Engine::BreakRuns(const Place& place, int32_t except) {
  for (size_t i = 0; i < resident_launches_.size();) {
    const int32_t slot = resident_launches_[i];
    const Launch& launch = launches_[slot];
    if (slot != except && launch.chain == ChainState::kRun &&
        (launch.place->cells & place.cells).any()) {
      BreakRun(slot);
    }
    // BreakRun removed a chain in a gap, and the next launch is at this index now: do not advance.
    if (i < resident_launches_.size() && resident_launches_[i] == slot) ++i;
  }
}

void Engine::BreakRun(int32_t slot) {
  Launch& launch = launches_[slot];
  SyncChain(launch);
  dirty_ = true;
  launch.chain = ChainState::kNode;
  if (launch.has_own_node) return;
  const PreparedKernel& kernel = *launch.kernel;
  const double position = PositionOf(launch);
  const NodePosition node = kernel.NodeAt(position);
  const double duration = static_cast<double>(node.run->node.duration_ns);
  const double inside = position - node.begin_ns;
  if (launch.node != node.index) launch.node_done_ns = 0;
  launch.node = node.index;
  launch.node_stretch = 1;
  if (inside < duration || node.index + 1 >= launch.node_end) {
    launch.left_ns = std::max(0.0, duration - inside);
    launch.demand = node.run->node.demand;
    // The run held the whole place; keep only the SMs that this node needs.
    FreeCells(slot);
    TakeCells(slot, node.run->needs.whole_sm ? kWholeSm : node.run->needs, launch.place->cells,
              std::min<int64_t>(node.run->node.blocks, launch.place->sms));
    return;
  }
  const double rate = std::max(launch.rate, 1e-9);
  FreeCells(slot);
  ++launch.node;
  launch.node_done_ns = 0;
  launch.chain = ChainState::kGap;
  const double gap_left = std::max(0.0, duration + kernel.gap_ns - inside) / rate;
  AddTimer(now_ + static_cast<core::TimeNs>(std::llround(gap_left)), TimerKind::kGapEnd, slot,
           launch.generation);
}

void Engine::ChainIsDue(int32_t slot) {
  Launch& launch = launches_[slot];
  const double rate = std::max(launch.rate, 1e-9);
  if (launch.chain == ChainState::kNode && launch.blocks_left > 0) return NextTurn(slot);
  FreeCells(slot);
  if (launch.leaves_node) return EndChain(slot);
  if (launch.chain == ChainState::kNode) ++launch.node;
  if (launch.chain == ChainState::kRun) launch.node = launch.node_end;
  launch.node_done_ns = 0;
  if (launch.node >= launch.node_end) {
    EndChain(slot);
    return;
  }
  launch.chain = ChainState::kGap;
  const double gap = launch.kernel->gap_ns / rate;
  AddTimer(now_ + static_cast<core::TimeNs>(std::llround(gap)), TimerKind::kGapEnd, slot,
           launch.generation);
}

// The node's next blocks follow on the same SMs, unless a launch before this one waits for them.
void Engine::NextTurn(int32_t slot) {
  Launch& launch = launches_[slot];
  int64_t sms = 0;
  bool stays = true;
  for (const int32_t index : active_residencies_) {
    if (residencies_[index].launch != slot) continue;
    const Cell& cell = sms_.cells()[residencies_[index].cell];
    sms += cell.sms;
    stays = stays && Overtakes(launch, cell);
  }
  if (!stays) {
    FreeCells(slot);
    launch.chain = ChainState::kPending;
    return MakePending(slot);
  }
  launch.blocks_left = std::max<int64_t>(0, launch.blocks_left - sms);
  launch.left_ns = static_cast<double>(CurrentNode(launch).node.duration_ns);
  launch.synced_ns = now_;
  launch.due_ns = core::kNever;
  dirty_ = true;
}

// How far the running chain is, and where its launch ends, both in ns of the chain alone on the
// whole device.
double Engine::PositionOf(const Launch& launch) const {
  return std::max(0.0, EndPositionOf(launch) - launch.left_ns);
}

double Engine::EndPositionOf(const Launch& launch) const {
  const PreparedKernel& kernel = *launch.kernel;
  if (launch.node_end >= kernel.nodes) return kernel.chain_ns;
  return kernel.NodeOf(launch.node_end).begin_ns - kernel.gap_ns;
}

// Of a chain that runs node by node: its end if nothing slows it from now on.
core::TimeNs Engine::EarliestEndOf(const Launch& launch) const {
  if (launch.hung) return core::kNever;
  const bool in_node = launch.chain == ChainState::kNode;
  const NodeRun& run = CurrentNode(launch);
  const auto duration = static_cast<double>(run.node.duration_ns);
  double left = in_node ? launch.left_ns : duration - launch.node_done_ns;
  if (!launch.has_own_node) {
    left += EndPositionOf(launch) - launch.kernel->NodeOf(launch.node).begin_ns - duration;
  }
  const double speed = std::max(launch.place_speed, 1e-9) / launch.slowness;
  return (in_node ? launch.synced_ns : now_) + std::llround(std::max(0.0, left) / speed);
}

void Engine::EndChain(int32_t slot) {
  Launch& launch = launches_[slot];
  if (!launch.in_segments) return EndLaunch(slot, core::Outcome::kFinished, 0);
  const bool finished = launch.node >= launch.kernel->nodes;
  const auto segments = static_cast<int64_t>(launch.kernel->segments.size());
  const int64_t next = finished ? segments : launch.kernel->SegmentOf(launch.node);
  launch.tasks_done = next - launch.segment_first;
  pools_[launch.pool].taken = next;
  pools_[launch.pool].node_done_ns = launch.node_done_ns;
  if (launch.tasks_done > 0 && !launch.ran_longer) {
    const double stretch = launch.slowness / launch.place_speed;
    launch.longest_segment_ns =
        std::llround(static_cast<double>(launch.kernel->longest_segment_ns) * stretch);
  }
  EndLaunch(slot, finished ? core::Outcome::kFinished : core::Outcome::kEvicted, 0);
}

// Whether the chain is in a node, or before one, that is evicted between its block tasks. Workers
// of a lane without an eviction word are not.
bool Engine::IsInEvictableNode(const Launch& launch) const {
  if (!launch.in_segments || launch.node >= launch.kernel->nodes) return false;
  if (!lanes_[launch.lane].evictable) return false;
  const auto segment = static_cast<size_t>(launch.kernel->SegmentOf(launch.node));
  if (segment < launch.begun_until) return false;  // part of a longer segment
  return launch.kernel->IsEvictable(
      launch.kernel->StepOf(segment, launch.length_since, LongestOf(launch)));
}

// The node's workers end the block tasks that they have begun; the rest of the node stays.
void Engine::LeaveNode(int32_t slot) {
  Launch& launch = launches_[slot];
  if (launch.chain != ChainState::kNode) {  // none has begun
    launch.node_end = launch.node;
    if (!launch.pending) return;  // it is in the gap before the node, and ends behind it
    RemovePending(slot);
    return EndChain(slot);
  }
  SyncChain(launch);
  dirty_ = true;
  const auto segment = static_cast<size_t>(launch.kernel->SegmentOf(launch.node));
  const auto task_ns = static_cast<double>(launch.kernel->segment_block_tasks_ns[segment]);
  const auto duration_ns = static_cast<double>(CurrentNode(launch).node.duration_ns);
  const double here_ns = (duration_ns - launch.node_done_ns) * launch.node_stretch;
  const double run_ns = std::max(0.0, here_ns - launch.left_ns);
  const double leaves_ns = (std::floor(run_ns / task_ns) + 1) * task_ns;
  launch.node_end = launch.node + 1;
  if (leaves_ns >= here_ns) return;  // the node ends before
  launch.left_ns = leaves_ns - run_ns;
  launch.node_done_ns += leaves_ns / launch.node_stretch;
  launch.leaves_node = true;
}

// The current segment and those outstanding behind it run to their ends, but for one that leaves
// between its block tasks.
void Engine::EvictSegments(int32_t slot) {
  Launch& launch = launches_[slot];
  if (launch.evicted) return;
  launch.evicted = true;
  if (launch.chain == ChainState::kRun) BreakRun(slot);
  if (IsInEvictableNode(launch)) return LeaveNode(slot);
  const std::vector<int64_t>& begins = launch.kernel->segments;
  const auto segment = static_cast<size_t>(launch.kernel->SegmentOf(launch.node));
  size_t end = launch.begun_until;
  if (segment >= end) {
    end = launch.kernel->FirstNotOutstanding(segment, launch.length_since, LongestOf(launch));
  }
  if (end < begins.size()) launch.node_end = begins[end];
}

// Each cut between two segments takes its time.
void Engine::SetPace(Launch& launch) const {
  const auto cuts = static_cast<double>(launch.kernel->StepsOf(LongestOf(launch)) - 1);
  const auto alone = static_cast<double>(launch.kernel->EvictableStepsOf(LongestOf(launch)));
  const double gaps_ns = cuts * kSegmentGapNs + alone * kEvictableGapNs;
  launch.slowness = launch.own_slowness * (1 + gaps_ns / launch.kernel->chain_ns);
}

// The launch goes on in segments of the new length behind those that are on the device.
void Engine::FollowLimit(int32_t slot, int64_t longest_before_ns) {
  Launch& launch = launches_[slot];
  if (!launch.in_segments || !launch.longer_segments || launch.evicted || launch.hung) return;
  launch.ran_longer = launch.ran_longer || RunsLonger(launch);
  if (launch.phase == LaunchPhase::kResident && launch.node < launch.kernel->nodes) {
    if (launch.chain == ChainState::kRun) BreakRun(slot);
    const auto segment = static_cast<size_t>(launch.kernel->SegmentOf(launch.node));
    const bool begun = segment < launch.begun_until;
    const core::SegmentStep step =
        launch.kernel->StepOf(segment, launch.length_since, longest_before_ns);
    if (!begun && launch.kernel->IsEvictable(step)) {
      launch.length_since = step.end;  // nothing is behind it
    } else {
      if (!begun) {
        launch.begun_until =
            launch.kernel->FirstNotOutstanding(segment, launch.length_since, longest_before_ns);
      }
      launch.length_since = launch.begun_until;
    }
  }
  SetPace(launch);
  dirty_ = true;
}

void Engine::LimitSegments(int64_t longest_ns) {
  const int64_t before_ns = longest_segment_ns_;
  if (device_lost_ || longest_ns == before_ns) return;
  longest_segment_ns_ = longest_ns;
  ReserveTimers();
  for (int32_t slot = 0; slot < static_cast<int32_t>(launches_.size()); ++slot) {
    const LaunchPhase phase = launches_[slot].phase;
    if (phase != LaunchPhase::kFree && phase != LaunchPhase::kOver) FollowLimit(slot, before_ns);
  }
  Update();
}

// How many segments are claimed, from the graph's first to the current one.
int64_t Engine::SegmentsClaimed(const Launch& launch) const {
  int64_t node = launch.node;
  if (launch.chain == ChainState::kRun) {
    const double since = static_cast<double>(now_ - launch.synced_ns);
    node = launch.kernel->NodeAt(PositionOf(launch) + launch.rate * since).index;
  }
  return launch.kernel->SegmentOf(std::min(node, launch.kernel->nodes - 1)) + 1;
}

void Engine::GapIsOver(int32_t slot) {
  if (launches_[slot].node >= launches_[slot].node_end) return EndChain(slot);
  launches_[slot].chain = ChainState::kPending;
  MakePending(slot);
}

void Engine::FreeCells(int32_t slot) {
  for (size_t i = 0; i < active_residencies_.size();) {
    const int32_t index = active_residencies_[i];
    if (residencies_[index].launch == slot) {
      RemoveResidency(index);
    } else {
      ++i;
    }
  }
  launches_[slot].due_ns = core::kNever;
}

void Engine::SyncChain(Launch& launch) {
  launch.left_ns -= launch.rate * static_cast<double>(now_ - launch.synced_ns);
  launch.synced_ns = now_;
}

}  // namespace gpushare::sim
