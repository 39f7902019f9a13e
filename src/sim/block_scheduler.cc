// The block scheduler: which waiting launch gets which room.
//
// It serves launches by priority, then in the order in which they became ready. Each takes what
// fits. What it cannot get yet is held for it, so later launches get only what the earlier ones
// leave. A priority takes effect where a block ends and the next one is placed: a grid places no
// further block in a cell that is held for an earlier launch. Workers never end by themselves; only
// an eviction removes them. A launch with blocks that wait also takes the room that becomes free
// beside its own blocks.

#include <algorithm>
#include <new>

#include "src/sim/engine.h"

namespace gpushare::sim {

void Engine::MakePending(int32_t slot) {
  Launch& launch = launches_[slot];
  if (launch.pending) return;
  launch.pending = true;
  launch.sequence = next_sequence_++;
  auto later = std::find_if(pending_.begin(), pending_.end(), [&](int32_t other) {
    return launches_[other].priority < launch.priority;
  });
  pending_.insert(later, slot);
  BreakRuns(*launch.place, slot);
  dirty_ = true;
}

void Engine::RemovePending(int32_t slot) {
  Launch& launch = launches_[slot];
  if (!launch.pending) return;
  launch.pending = false;
  pending_.erase(std::find(pending_.begin(), pending_.end(), slot));
  dirty_ = true;
}

void Engine::PlacePending() {
  for (Cell& cell : sms_.cells()) cell.held = false;
  for (size_t i = 0; i < pending_.size();) {
    const int32_t slot = pending_[i];
    Launch& launch = launches_[slot];
    const bool placed = launch.chain != ChainState::kNone   ? PlaceNode(slot)
                        : launch.form == core::Form::kFused ? PlaceFused(slot)
                                                            : PlaceTasks(slot);
    if (placed) {
      // PlaceTasks may have ended the launch and removed it from the list.
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
      Cell& cell = sms_.cells()[index];
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
    Residency& residency = residencies_[index];
    const Launch& launch = launches_[residency.launch];
    if (residency.draining || launch.workers || launch.chain != ChainState::kNone) continue;
    if (launch.hung) continue;
    if (Overtakes(launch, sms_.cells()[residency.cell])) continue;
    SyncResidency(residency);
    StopClaiming(residency);
    // The grid stays pending at its old position, for the room that it loses here.
  }
}

// The launch's blocks in the cell, or -1.
int32_t Engine::OwnResidency(int32_t slot, const Cell& cell) const {
  int32_t index = cell.first_residency;
  while (index != -1 && residencies_[index].launch != slot)
    index = residencies_[index].next_in_cell;
  return index;
}

// How many blocks the launch may add in the cell. None where its blocks are leaving.
int64_t Engine::RoomFor(int32_t slot, const Cell& cell) const {
  const Launch& launch = launches_[slot];
  if (!Overtakes(launch, cell)) return 0;
  int64_t most = int64_t{launch.workers_per_sm} * cell.sms;
  if (const int32_t own = OwnResidency(slot, cell); own != -1) {
    const Residency& residency = residencies_[own];
    if (residency.draining || residency.keep >= 0) return 0;
    most -= residency.workers;
  }
  return most > 0 ? std::min(sms_.Fits(cell, launch.needs), most) : 0;
}

bool Engine::PlaceTasks(int32_t slot) {
  Launch& launch = launches_[slot];
  Pool& pool = pools_[launch.pool];
  const auto nothing_left = [&] {
    if (pool.available() > 0) return false;
    RemovePending(slot);
    EndIfDone(slot);
    return true;
  };
  if (nothing_left()) return true;
  const bool grid = !launch.workers;
  if (launch.workers_resident >= launch.workers_wanted) return !grid;
  int64_t room = 0;
  int64_t room_sms = 0;
  for (const Place::Run& run : launch.place->runs) {
    for (int32_t index = run.begin; index < run.end; ++index) {
      const Cell& cell = sms_.cells()[index];
      const int64_t fits = RoomFor(slot, cell);
      room_in_cell_[index] = fits;
      room += fits;
      if (fits > 0) room_sms += cell.sms;
    }
  }
  if (room == 0) return false;
  // Take the claims made since the last event from the pool: new blocks share what is left.
  if (pool.residencies > 0) SettleClaims(launch.pool);
  if (nothing_left()) return true;
  const int64_t want = std::min(launch.workers_wanted - launch.workers_resident, pool.available());
  AddBlocks(slot, want, room, room_sms);
  if (launch.start_ns == core::kNever) launch.start_ns = now_;
  dirty_ = true;
  if (pool.available() == 0) return true;
  return launch.workers && launch.workers_resident >= launch.workers_wanted;
}

// Spreads `want` blocks over the SMs that have room, as room_in_cell_ says; the first SMs take the
// rest of the division.
void Engine::AddBlocks(int32_t slot, int64_t want, int64_t room, int64_t room_sms) {
  const Launch& launch = launches_[slot];
  int64_t left = std::min(want, room);
  bool take_all = want >= room;
  for (int32_t pass = 0; pass < 2 && left > 0; ++pass) {
    int64_t sms_left = room_sms;
    for (const Place::Run& run : launch.place->runs) {
      for (int32_t index = run.begin; index < run.end && left > 0; ++index) {
        const int64_t fits = room_in_cell_[index];
        if (fits == 0) continue;
        const int64_t sms = sms_.cells()[index].sms;
        const int64_t even = sms_left > 0 ? (left * sms + sms_left - 1) / sms_left : left;
        sms_left -= sms;
        const int64_t blocks = std::min({take_all ? fits : even, fits, left});
        if (blocks == 0) continue;
        room_in_cell_[index] -= blocks;
        left -= blocks;
        if (const int32_t own = OwnResidency(slot, sms_.cells()[index]); own != -1) {
          GrowResidency(residencies_[own], blocks);
        } else {
          StartTasks(slot, AddResidency(slot, index, launch.needs, blocks, blocks), blocks);
        }
      }
    }
    take_all = true;
  }
}

Residency& Engine::AddResidency(int32_t slot, int32_t cell_index, const BlockNeeds& needs,
                                int64_t blocks, int64_t workers) {
  const int32_t index = free_residencies_.back();
  free_residencies_.pop_back();
  active_residencies_.push_back(index);
  Launch& launch = launches_[slot];
  Cell& cell = sms_.cells()[cell_index];
  // Construct in place: a copy of a record whose fields were just written stalls on store
  // forwarding. Residency() would also zero all of it first.
  Residency& residency = *new (&residencies_[index]) Residency;
  residency.launch = slot;
  residency.cell = cell_index;
  residency.workers = workers;
  residency.needs = needs;
  residency.held_blocks = blocks;
  residency.synced_ns = now_;
  residency.busy_sms = static_cast<double>(std::min<int64_t>(cell.sms, workers));
  residency.next_in_cell = cell.first_residency;
  cell.first_residency = index;
  ++cell.residents;
  if (needs.whole_sm) ++cell.whole_residents;
  sms_.Take(cell, needs, blocks);
  if (launch.residencies++ == 0) resident_launches_.push_back(slot);
  return residency;
}

void Engine::RemoveResidency(int32_t index) {
  const Residency& residency = residencies_[index];
  Launch& launch = launches_[residency.launch];
  Cell& cell = sms_.cells()[residency.cell];
  if (residency.peer != -1) {
    // A fused block keeps its room until both parts have left.
    Residency& peer = residencies_[residency.peer];
    peer.peer = -1;
    if (residency.held_blocks > 0) {
      peer.needs = residency.needs;
      peer.held_blocks = residency.held_blocks;
    }
  } else {
    sms_.Release(cell, residency.needs, residency.held_blocks);
  }
  --cell.residents;
  if (cell.whole_residents > 0 && cell.residents == 0) cell.whole_residents = 0;
  int32_t* link = &cell.first_residency;
  while (*link != index) link = &residencies_[*link].next_in_cell;
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
