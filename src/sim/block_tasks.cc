// Block tasks: how they are claimed, executed and left unfinished.
//
// The blocks of one launch in one cell advance as one batch. Let K be the resident blocks, W the
// work done in block tasks, and g the progress of the block tasks in flight. Then K + max(0, W - K
// g - phase) are claimed. Everything claimed is executed to its end at the cell's full speed. So an
// eviction loses no work, and its longest residual is 1 - g of a block task (README.md,
// "Eviction").
//
// Between two events W is a real number. It is rounded to whole block tasks when a batch stops
// claiming; exactly that whole number is taken from the pool.

#include <algorithm>
#include <limits>

#include "src/core/base/limits.h"
#include "src/sim/engine.h"

namespace gpushare::sim {

// Takes block tasks, interrupted ones first. Returns the work in them that was already done.
double Engine::TakeFromPool(Pool& pool, int64_t tasks) {
  const int64_t resumed = std::min(tasks, pool.interrupted);
  double credit = 0;
  if (resumed > 0) {
    const double left = pool.interrupted_left * static_cast<double>(resumed) /
                        static_cast<double>(pool.interrupted);
    pool.interrupted -= resumed;
    pool.interrupted_left -= left;
    credit = static_cast<double>(resumed) - left;
  }
  pool.unclaimed -= tasks - resumed;
  pool.taken += tasks;
  return credit;
}

int64_t Engine::ClaimsOf(int32_t counter) const {
  const Pool& pool = pools_[counter];
  for (const int32_t slot : resident_launches_) {
    const Launch& launch = launches_[slot];
    if (launch.in_segments && launch.pool == counter) return SegmentsClaimed(launch);
  }
  int64_t unsynced = 0;
  for (const int32_t index : active_residencies_) {
    Residency residency = residencies_[index];
    const Launch& launch = launches_[residency.launch];
    if (launch.pool != counter || launch.chain != ChainState::kNone || residency.draining) continue;
    residency.work_done += residency.rate * static_cast<double>(now_ - residency.synced_ns);
    unsynced += NewClaims(residency, launch);
  }
  return pool.taken + std::min(unsynced, pool.available());
}

void Engine::SyncResidency(Residency& residency) {
  residency.work_done += residency.rate * static_cast<double>(now_ - residency.synced_ns);
  residency.synced_ns = now_;
}

void Engine::StartTasks(int32_t slot, Residency& residency, int64_t workers) {
  Launch& launch = launches_[slot];
  Pool& pool = pools_[launch.pool];
  residency.work_done = TakeFromPool(pool, workers);
  residency.claimed = workers;
  residency.phase = random_.Uniform() - 0.5;
  launch.workers_resident += workers;
  ++pool.residencies;
  if (!pool.active) {
    pool.active = true;
    active_pools_.push_back(launch.pool);
  }
}

// Adds blocks to those that the launch has in the cell. Each claims a block task at once.
void Engine::GrowResidency(Residency& residency, int64_t blocks) {
  Launch& launch = launches_[residency.launch];
  Cell& cell = sms_.cells()[residency.cell];
  SyncResidency(residency);
  residency.work_done += TakeFromPool(pools_[launch.pool], blocks);
  residency.claimed += blocks;
  residency.workers += blocks;
  residency.held_blocks += blocks;
  residency.busy_sms = static_cast<double>(std::min<int64_t>(cell.sms, residency.workers));
  sms_.Take(cell, residency.needs, blocks);
  launch.workers_resident += blocks;
}

// How many whole block tasks the residency has claimed since `claimed` was last updated. It follows
// from work_done.
int64_t Engine::NewClaims(const Residency& residency, const Launch& launch) {
  const double workers =
      static_cast<double>(residency.keep >= 0 ? residency.keep : residency.workers);
  const double beyond = residency.work_done - workers * launch.in_flight_progress - residency.phase;
  const double claimed = workers + std::max(0.0, beyond);
  return static_cast<int64_t>(std::max(0.0, claimed - static_cast<double>(residency.claimed)));
}

// Takes up to `claims` block tasks from the pool.
void Engine::Claim(Residency& residency, Pool& pool, int64_t claims) {
  claims = std::min(claims, pool.available());
  residency.work_done += TakeFromPool(pool, claims);
  residency.claimed += claims;
}

// Takes from the pool what all its residencies have claimed so far.
void Engine::SettleClaims(int32_t index) {
  for (const int32_t r : active_residencies_) {
    Residency& residency = residencies_[r];
    if (!ClaimsFrom(residency, index)) continue;
    SyncResidency(residency);
    Claim(residency, pools_[index], NewClaims(residency, launches_[residency.launch]));
  }
}

bool Engine::ClaimsFrom(const Residency& residency, int32_t pool) const {
  const Launch& launch = launches_[residency.launch];
  return launch.pool == pool && !residency.draining && launch.chain == ChainState::kNone;
}

// Takes the claims made so far from the pool, and then lets the blocks end.
void Engine::StopClaiming(Residency& residency) {
  const Launch& launch = launches_[residency.launch];
  Claim(residency, pools_[launch.pool], NewClaims(residency, launch));
  residency.draining = true;
  residency.keep = -1;
  residency.done_at_end = residency.claimed;
  residency.drain_target = static_cast<double>(residency.claimed);
  dirty_ = true;
}

// Stops the blocks at their next yield point; their interrupted block tasks return to the counter.
void Engine::LeaveAtYieldPoint(Residency& residency) {
  const Launch& launch = launches_[residency.launch];
  const double workers = static_cast<double>(residency.workers);
  const double until_yield = workers * (1 - launch.in_flight_progress) * launch.yield_share;
  residency.work_done += until_yield;  // as it will be at the yield point
  const int64_t claims = NewClaims(residency, launch);
  residency.work_done -= until_yield;
  Claim(residency, pools_[launch.pool], claims);
  const double at_leave = residency.work_done + until_yield;
  if (at_leave >= static_cast<double>(residency.claimed)) {
    StopClaiming(residency);
    return;
  }
  residency.draining = true;
  residency.keep = -1;
  residency.drain_target = at_leave;
  residency.interrupted_at_end = std::min(residency.workers, residency.claimed);
  residency.done_at_end = residency.claimed - residency.interrupted_at_end;
  residency.interrupted_left = std::min(static_cast<double>(residency.claimed) - at_leave,
                                        static_cast<double>(residency.interrupted_at_end));
  dirty_ = true;
}

void Engine::EvictLaunch(int32_t slot, int64_t keep) {
  Launch& launch = launches_[slot];
  launch.evicted = true;
  dirty_ = true;
  launch.workers_wanted = std::min(launch.workers_wanted, keep);
  if (launch.workers_wanted <= launch.workers_resident) RemovePending(slot);
  if (keep > 0 && launch.workers_resident <= keep) return;
  // Spread the workers that stay over the cells in proportion to the workers that were there.
  int64_t workers_left = launch.workers_resident;
  int64_t keep_left = keep;
  for (const int32_t index : active_residencies_) {
    Residency& residency = residencies_[index];
    if (residency.launch != slot) continue;
    if (residency.draining) {
      // The last block tasks of an empty counter stop at a yield point, too.
      if (keep == 0 && launch.yield_share > 0 && residency.interrupted_at_end == 0) {
        SyncResidency(residency);
        LeaveAtYieldPoint(residency);
      }
      continue;
    }
    SyncResidency(residency);
    const int64_t stay =
        workers_left > 0 ? (keep_left * residency.workers + workers_left - 1) / workers_left : 0;
    workers_left -= residency.workers;
    keep_left -= stay;
    if (stay == 0) {
      if (launch.yield_share > 0) {
        LeaveAtYieldPoint(residency);
      } else {
        StopClaiming(residency);
      }
    } else if (stay < residency.workers) {
      residency.keep = -1;
      residency.drain_target =
          static_cast<double>(residency.claimed + NewClaims(residency, launch));
      residency.keep = stay;
    }
  }
  const int32_t other = launch.partner;
  EndIfDone(slot);
  if (other != -1) EndIfDone(other);
}

// The last block task of the pool is claimed: every residency finishes what it has.
void Engine::PoolIsEmpty(int32_t index) {
  Pool& pool = pools_[index];
  const auto takes = [&](const Residency& residency) { return ClaimsFrom(residency, index); };
  SettleClaims(index);
  // Rounding leaves up to one block task a residency in the pool. The residencies that would end
  // first take these.
  auto load = [](const Residency& residency, double more) {
    return (static_cast<double>(residency.claimed) + more - residency.work_done) /
           static_cast<double>(residency.workers);
  };
  while (pool.available() > 0) {
    double lowest = std::numeric_limits<double>::infinity();
    for (const int32_t r : active_residencies_) {
      const Residency& residency = residencies_[r];
      if (takes(residency)) lowest = std::min(lowest, load(residency, 1));
    }
    const int64_t before = pool.available();
    for (const int32_t r : active_residencies_) {
      Residency& residency = residencies_[r];
      if (pool.available() == 0) break;
      if (!takes(residency) || load(residency, 0.5) > lowest) continue;
      Claim(residency, pool, 1);
    }
    if (pool.available() == before) break;
  }
  for (const int32_t r : active_residencies_) {
    Residency& residency = residencies_[r];
    if (!takes(residency)) continue;
    StopClaiming(residency);
    // Only the tail of a task is stretched: the fitted residual of an eviction contains the spread.
    const double spread = launches_[residency.launch].kernel->desc.simulation.block_task_spread;
    if (spread > 0) residency.tail_slowness = 1 + spread * random_.Uniform(0, 2);
  }
  pool.due_ns = core::kNever;
  dirty_ = true;
}

void Engine::ResidencyIsDue(int32_t index) {
  Residency& residency = residencies_[index];
  const int32_t slot = residency.launch;
  Launch& launch = launches_[slot];
  SyncResidency(residency);
  Cell& cell = sms_.cells()[residency.cell];
  dirty_ = true;
  if (!residency.draining) {
    // A partial eviction: the workers that leave have finished their block tasks.
    const int64_t leaving = residency.workers - residency.keep;
    // Fused blocks hold their room until the other part leaves, and then return it as a whole.
    if (launch.form != core::Form::kFused) {
      sms_.Release(cell, residency.needs, leaving);
      residency.held_blocks -= leaving;
    }
    launch.workers_resident -= leaving;
    residency.workers = residency.keep;
    residency.keep = -1;
    residency.busy_sms = static_cast<double>(std::min<int64_t>(cell.sms, residency.workers));
    return;
  }
  Pool& pool = pools_[launch.pool];
  launch.tasks_done += residency.done_at_end;
  launch.workers_resident -= residency.workers;
  pool.interrupted += residency.interrupted_at_end;
  pool.interrupted_left += residency.interrupted_left;
  --pool.residencies;
  RemoveResidency(index);
  if (pool.residencies == 0 && pool.active) {
    pool.active = false;
    pool.due_ns = core::kNever;
    active_pools_.erase(std::find(active_pools_.begin(), active_pools_.end(), launch.pool));
  }
  EndIfDone(slot);
}

void Engine::EndIfDone(int32_t slot) {
  Launch& launch = launches_[slot];
  if (launch.residencies > 0 || launch.phase != LaunchPhase::kResident || launch.hung) return;
  const bool work_left = pools_[launch.pool].available() > 0;
  const int32_t other = launch.partner;
  // A grid, or workers that still wait for room, will continue with the remaining block tasks.
  const bool waits_with_other = launch.is_second_part && other != -1 && launches_[other].pending;
  const bool goes_on = (launch.pending || (waits_with_other && !launch.evicted)) && work_left;
  if (goes_on) return;
  if (launch.pending && launch.fused_left > 0 && !launch.fused_started) return;
  RemovePending(slot);
  // The second part of a fused launch ends with the first part's last block, even with work left.
  const bool left_some = (launch.evicted || launch.is_second_part) && work_left;
  EndLaunch(slot, left_some ? core::Outcome::kEvicted : core::Outcome::kFinished, 0);
  if (other != -1) EndIfDone(other);
}

}  // namespace gpushare::sim
