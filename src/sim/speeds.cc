// Speeds: how fast everything resident runs now, and when it ends.
//
// Runs after every change of what is resident. Residents of an SM share its cell: issue slots,
// Tensor and special-function pipes. All launches share DRAM and L2. Cost: one pass over the
// residencies.

#include <algorithm>
#include <cmath>

#include "src/core/base/containers/bounded_list.h"
#include "src/sim/engine.h"
#include "src/sim/physics/interference.h"

namespace gpushare::sim {
namespace {

// The most clients of one SM. In practice hardware queues keep the number lower; further clients
// are ignored.
constexpr int kSmClientsMax = 16;

core::TimeNs TimeAfter(core::TimeNs now, double wait) {
  constexpr double kFarNs = 1e18;
  if (!(wait < kFarNs)) return core::kNever;
  return now + std::max<core::TimeNs>(0, static_cast<core::TimeNs>(std::ceil(wait)));
}

// The two parts of a fused launch as one client, which asks for no more than the device has.
MemoryClient Joined(const MemoryClient& a, const MemoryClient& b) {
  return {std::min(1.0, a.dram + b.dram), std::min(1.0, a.l2 + b.l2),
          std::max(a.sensitivity, b.sensitivity), a.weight + b.weight, 1};
}

}  // namespace

void Engine::SetSpeeds() {
  SetCellFactors();
  SetLaunchSpeeds();
  SetMemoryFactors();
  SetDueTimes();
}

// An SM below full occupancy runs at min(1, occupancy / saturating occupancy).
double Engine::OccupancySpeed(const Residency& residency, const Launch& launch,
                              const Cell& cell) const {
  const double occupancy = static_cast<double>(residency.workers) /
                           (static_cast<double>(cell.sms) * launch.workers_per_sm);
  const double saturating = launch.kernel->desc.simulation.saturating_occupancy;
  return std::min(1.0, occupancy / saturating);
}

// How much longer than its own time a part of a fused block takes.
double Engine::PaceOf(const Residency& residency) const {
  const PartPace& pace = launches_[residency.launch].fused_pace;
  return residency.peer != -1 ? pace.together : pace.alone;
}

// Whether all kernels in the cell have counters of a GPU for their pipes. Nodes of a chain have
// none.
bool Engine::AreCounted(const Cell& cell) const {
  for (int32_t r = cell.first_residency; r != -1; r = residencies_[r].next_in_cell) {
    const Launch& launch = launches_[residencies_[r].launch];
    if (launch.chain != ChainState::kNone || !launch.kernel->counted) return false;
  }
  return true;
}

// The demand of a block on its SM's pipes. For a fused block, that of both parts together.
core::ResourceDemand Engine::PipesOf(const Residency& residency, bool counted) const {
  const auto own = [&](const Residency& of) -> const core::ResourceDemand& {
    const Launch& launch = launches_[of.launch];
    return counted ? launch.kernel->pipes : launch.demand;
  };
  core::ResourceDemand pipes = own(residency);
  if (residency.peer == -1) return pipes;
  const core::ResourceDemand& more = own(residencies_[residency.peer]);
  pipes.issue = std::min(1.0, pipes.issue + more.issue);
  pipes.tensor = std::min(1.0, pipes.tensor + more.tensor);
  pipes.special = std::min(1.0, pipes.special + more.special);
  return pipes;
}

// The factor of a cell with several residencies. Both parts of a fused block count as one client;
// the pair's own model covers their interference.
double Engine::FactorOf(const Cell& cell) const {
  core::BoundedList<SmClient, kSmClientsMax> clients;
  const bool counted = AreCounted(cell);
  for (int32_t index = cell.first_residency; index != -1 && !clients.full();
       index = residencies_[index].next_in_cell) {
    const Residency& residency = residencies_[index];
    const Launch& launch = launches_[residency.launch];
    if (launch.is_second_part && residency.peer != -1) continue;
    const double speed =
        launch.chain == ChainState::kNone ? OccupancySpeed(residency, launch, cell) : 1;
    const core::ResourceDemand pipes = PipesOf(residency, counted);
    clients.Add({pipes.issue * speed, pipes.tensor * speed, pipes.special * speed, speed});
  }
  return SharedSmFactor(clients.span(), counted);
}

void Engine::SetCellFactors() {
  busy_sms_ = 0;
  for (Cell& cell : sms_.cells()) {
    double busy = 0;
    for (int32_t index = cell.first_residency; index != -1;
         index = residencies_[index].next_in_cell) {
      busy = std::max(busy, residencies_[index].busy_sms);
    }
    busy_sms_ += busy;
    cell.factor = cell.residents > 1 ? FactorOf(cell) : 1;
  }
}

void Engine::SetLaunchSpeeds() {
  for (const int32_t slot : resident_launches_) {
    Launch& launch = launches_[slot];
    launch.weight = 0;
    if (launch.chain != ChainState::kNone) {
      launch.speed = launch.place_speed;
      continue;
    }
    launch.speed = 0;
    launch.tasks_per_sm_ns = launch.place_speed * capabilities_.profile.sm_count /
                             launch.place->sms / launch.sm_ns_per_task;
  }
  for (const int32_t index : active_residencies_) {
    Residency& residency = residencies_[index];
    Launch& launch = launches_[residency.launch];
    const Cell& cell = sms_.cells()[residency.cell];
    if (launch.chain == ChainState::kNone) {
      residency.occupancy_speed = OccupancySpeed(residency, launch, cell) / PaceOf(residency);
      const double speed = residency.occupancy_speed * cell.factor;
      launch.speed += cell.sms * speed * launch.place_speed / launch.place->sms;
      launch.weight += cell.sms * speed * launch.memory_parallelism;
    } else {
      // A chain is as fast as its slowest SM.
      launch.speed = std::min(launch.speed, launch.place_speed * cell.factor);
      launch.weight += cell.sms * launch.memory_parallelism;
    }
  }
}

// The factor on the launch's speed by the pinned copies in flight.
double Engine::CopyFactor(const Launch& launch) const {
  const core::DeviceProfile& profile = capabilities_.profile;
  const core::LinkUse use = link_.Use();
  const double slowdown = ((use & core::kLinkIn) != 0 ? profile.copy_in_slowdown : 0) +
                          ((use & core::kLinkOut) != 0 ? profile.copy_out_slowdown : 0);
  return 1 / (1 + slowdown * launch.demand.dram);
}

// Both parts of a fused launch are one client; the pair's own curve covers what they take from each
// other.
void Engine::SetMemoryFactors() {
  core::BoundedList<MemoryClient, core::kMaxLanes> clients;
  const size_t launches = std::min<size_t>(resident_launches_.size(), core::kMaxLanes);
  for (size_t i = 0; i < launches; ++i) {
    Launch& launch = launches_[resident_launches_[i]];
    const MemoryClient own = {launch.demand.dram * launch.speed, launch.demand.l2 * launch.speed,
                              launch.demand.dram, launch.weight, 1};
    // The part that became resident first adds the client, and the other joins it.
    const bool joins = launch.partner != -1 && launches_[launch.partner].memory_client != -1;
    if (joins) {
      launch.memory_client = launches_[launch.partner].memory_client;
      MemoryClient& client = clients[launch.memory_client];
      client = Joined(client, own);
    } else {
      launch.memory_client = clients.size();
      clients.Add(own);
    }
  }
  ShareMemory(clients.span());
  for (size_t i = 0; i < launches; ++i) {
    Launch& launch = launches_[resident_launches_[i]];
    launch.device_factor = clients[launch.memory_client].factor * CopyFactor(launch);
    launch.memory_client = -1;
  }
}

void Engine::SetDueTimes() {
  next_due_ns_ = core::kNever;
  for (const int32_t pool : active_pools_) {
    pools_[pool].claims = 0;
    pools_[pool].rate = 0;
  }
  for (const int32_t index : active_residencies_) {
    Residency& residency = residencies_[index];
    const Launch& launch = launches_[residency.launch];
    if (launch.chain != ChainState::kNone) continue;
    const Cell& cell = sms_.cells()[residency.cell];
    double rate = cell.sms * residency.occupancy_speed * cell.factor * launch.device_factor *
                  launch.tasks_per_sm_ns / residency.tail_slowness;
    if (launch.hung) rate = 0;
    if (rate != residency.rate) {
      SyncResidency(residency);
      residency.rate = rate;
    }
    const double done =
        residency.work_done + rate * static_cast<double>(now_ - residency.synced_ns);
    if (residency.draining || residency.keep >= 0) {
      const double left = residency.drain_target - done;
      residency.due_ns = left <= 0 && !launch.hung ? now_
                         : rate > 0                ? TimeAfter(now_, left / rate)
                                                   : core::kNever;
      next_due_ns_ = std::min(next_due_ns_, residency.due_ns);
    } else {
      residency.due_ns = core::kNever;
    }
    if (!residency.draining && !launch.hung) {
      Pool& pool = pools_[launch.pool];
      const double workers =
          static_cast<double>(residency.keep >= 0 ? residency.keep : residency.workers);
      pool.claims += workers + done - workers * launch.in_flight_progress - residency.phase -
                     static_cast<double>(residency.claimed);
      pool.rate += rate;
    }
  }
  for (const int32_t index : active_pools_) {
    Pool& pool = pools_[index];
    pool.due_ns = core::kNever;
    if (pool.rate <= 0) continue;
    const double left = static_cast<double>(pool.available()) - pool.claims;
    pool.due_ns = pool.available() == 0 || left <= 0 ? now_ : TimeAfter(now_, left / pool.rate);
    next_due_ns_ = std::min(next_due_ns_, pool.due_ns);
  }
  for (const int32_t slot : resident_launches_) {
    Launch& launch = launches_[slot];
    if (launch.chain == ChainState::kNone) continue;
    SyncChain(launch);
    launch.rate = launch.hung ? 0 : launch.speed * launch.device_factor / launch.slowness;
    launch.due_ns = launch.rate > 0 ? TimeAfter(now_, launch.left_ns / launch.rate) : core::kNever;
    next_due_ns_ = std::min(next_due_ns_, launch.due_ns);
  }
}

}  // namespace gpushare::sim
