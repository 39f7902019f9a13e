// The block scheduler: which waiting launch gets which room.
//
// Left-over: launches are served by priority, then in the order in which they became ready; each
// takes what fits, and what it cannot get yet is held for it, so that a later launch gets only what
// the earlier ones leave. Priorities act where a block ends and the next is placed: a grid whose
// cell is held for an earlier launch places no further block there. Workers never end by
// themselves, so only eviction moves them.

#include <algorithm>

#include "src/sim/engine.h"

namespace gpushare::sim {

void Engine::MakePending(int32_t slot) {
  Launch& launch = launches_[static_cast<size_t>(slot)];
  if (launch.pending) return;
  launch.pending = true;
  launch.sequence = next_sequence_++;
  auto later = std::find_if(pending_.begin(), pending_.end(), [&](int32_t other) {
    return launches_[static_cast<size_t>(other)].priority < launch.priority;
  });
  pending_.insert(later, slot);
  BreakSegments(*launch.place, slot);
  dirty_ = true;
}

void Engine::RemovePending(int32_t slot) {
  Launch& launch = launches_[static_cast<size_t>(slot)];
  if (!launch.pending) return;
  launch.pending = false;
  pending_.erase(std::find(pending_.begin(), pending_.end(), slot));
  dirty_ = true;
}

void Engine::PlacePending() {
  for (Cell& cell : sms_.cells()) cell.held = false;
  for (size_t i = 0; i < pending_.size();) {
    const int32_t slot = pending_[i];
    Launch& launch = launches_[static_cast<size_t>(slot)];
    const bool placed = launch.chain != ChainState::kNone ? PlaceNode(slot) : PlaceTasks(slot);
    if (placed) {
      // PlaceTasks may have ended the launch and taken it out.
      if (i < pending_.size() && pending_[i] == slot) {
        launch.pending = false;
        pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    } else {
      Hold(launch);
      ++i;
    }
  }
  StopRefillOfHeldCells();
}

void Engine::Hold(const Launch& launch) {
  for (const Place::Run& run : launch.place->runs) {
    for (int32_t index = run.begin; index < run.end; ++index) {
      Cell& cell = sms_.cells()[static_cast<size_t>(index)];
      if (cell.held) continue;
      cell.held = true;
      cell.held_priority = launch.priority;
      cell.held_sequence = launch.sequence;
    }
  }
}

bool Engine::Overtakes(const Launch& launch, const Cell& cell) const {
  if (!cell.held) return true;
  if (launch.priority != cell.held_priority) return launch.priority > cell.held_priority;
  return launch.sequence <= cell.held_sequence;
}

void Engine::StopRefillOfHeldCells() {
  for (const int32_t index : active_residencies_) {
    Residency& residency = residencies_[static_cast<size_t>(index)];
    const Launch& launch = launches_[static_cast<size_t>(residency.launch)];
    if (residency.draining || launch.workers || launch.chain != ChainState::kNone) continue;
    if (launch.hung) continue;
    if (Overtakes(launch, sms_.cells()[static_cast<size_t>(residency.cell)])) continue;
    SyncResidency(residency);
    LeaveAtBoundary(residency);
    // It stays in line for the room that it loses here, at its old place in the order.
  }
}

bool Engine::PlaceTasks(int32_t slot) {
  Launch& launch = launches_[static_cast<size_t>(slot)];
  Pool& pool = pools_[static_cast<size_t>(launch.pool)];
  if (pool.available() == 0) {
    RemovePending(slot);
    EndIfDone(slot);
    return true;
  }
  const bool grid = !launch.workers;
  int64_t want = std::min(launch.workers_wanted - launch.workers_resident, pool.available());
  int64_t room = 0;
  int64_t room_sms = 0;
  auto room_in = [&](const Cell& cell) -> int64_t {
    if (!Overtakes(launch, cell)) return 0;
    for (int32_t r = cell.first_residency; r != -1;
         r = residencies_[static_cast<size_t>(r)].next_in_cell) {
      if (residencies_[static_cast<size_t>(r)].launch == slot) return 0;
    }
    return std::min(sms_.Fits(cell, launch.needs), int64_t{launch.workers_per_sm} * cell.sms);
  };
  for (const Place::Run& run : launch.place->runs) {
    for (int32_t index = run.begin; index < run.end; ++index) {
      const Cell& cell = sms_.cells()[static_cast<size_t>(index)];
      const int64_t fits = room_in(cell);
      room += fits;
      if (fits > 0) room_sms += cell.sms;
    }
  }
  if (room == 0 || want <= 0) return want <= 0 && !grid;
  // Blocks are spread over the SMs that have room, the first SMs taking what does not divide.
  int64_t left = std::min(want, room);
  bool take_all = want >= room;
  for (int32_t pass = 0; pass < 2 && left > 0; ++pass) {
    int64_t sms_left = room_sms;
    for (const Place::Run& run : launch.place->runs) {
      for (int32_t index = run.begin; index < run.end && left > 0; ++index) {
        Cell& cell = sms_.cells()[static_cast<size_t>(index)];
        const int64_t fits = room_in(cell);
        if (fits == 0) continue;
        const int64_t even = sms_left > 0 ? (left * cell.sms + sms_left - 1) / sms_left : left;
        sms_left -= cell.sms;
        const int64_t blocks = std::min({take_all ? fits : even, fits, left, pool.available()});
        if (blocks == 0) continue;
        StartTasks(slot, AddResidency(slot, index, launch.needs, blocks), blocks);
        left -= blocks;
      }
    }
    take_all = true;
  }
  if (launch.start_ns == core::kNever) launch.start_ns = now_;
  dirty_ = true;
  if (pool.available() == 0) return true;
  return launch.workers && launch.workers_resident >= launch.workers_wanted;
}

Residency& Engine::AddResidency(int32_t slot, int32_t cell_index, const BlockNeeds& needs,
                                int64_t blocks) {
  const int32_t index = free_residencies_.back();
  free_residencies_.pop_back();
  active_residencies_.push_back(index);
  Launch& launch = launches_[static_cast<size_t>(slot)];
  Cell& cell = sms_.cells()[static_cast<size_t>(cell_index)];
  Residency& residency = residencies_[static_cast<size_t>(index)];
  residency = Residency();
  residency.launch = slot;
  residency.cell = cell_index;
  residency.workers = blocks;
  residency.synced_ns = now_;
  residency.busy_sms = static_cast<double>(std::min<int64_t>(cell.sms, blocks));
  residency.next_in_cell = cell.first_residency;
  cell.first_residency = index;
  ++cell.residents;
  if (needs.whole_sm) ++cell.whole_residents;
  sms_.Take(cell, needs, blocks);
  if (launch.residencies++ == 0) resident_launches_.push_back(slot);
  return residency;
}

void Engine::RemoveResidency(int32_t index) {
  const Residency residency = residencies_[static_cast<size_t>(index)];
  Launch& launch = launches_[static_cast<size_t>(residency.launch)];
  Cell& cell = sms_.cells()[static_cast<size_t>(residency.cell)];
  sms_.Release(cell, launch.needs, residency.workers);
  --cell.residents;
  if (cell.whole_residents > 0 && cell.residents == 0) cell.whole_residents = 0;
  int32_t* link = &cell.first_residency;
  while (*link != index) link = &residencies_[static_cast<size_t>(*link)].next_in_cell;
  *link = residency.next_in_cell;
  if (--launch.residencies == 0) {
    resident_launches_.erase(
        std::find(resident_launches_.begin(), resident_launches_.end(), residency.launch));
  }
  active_residencies_.erase(
      std::find(active_residencies_.begin(), active_residencies_.end(), index));
  free_residencies_.push_back(index);
  dirty_ = true;
}

}  // namespace gpushare::sim
