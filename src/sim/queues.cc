// From the launch call to the moment a launch is ready: requests checked and copied into a slot,
// lanes, hardware queues that several lanes share, and eviction words.
//
// A hardware queue is a FIFO of commands. Its head leaves once its lane's earlier launch is over;
// until then everything behind it waits, whichever lane it belongs to (MEASURED.md, "Hardware
// queues are shared"). Each place has hardware_queues of them, as each CUDA context has; eviction
// writes go through the last one.

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/core/launch_check.h"
#include "src/core/limits.h"
#include "src/sim/engine.h"
#include "src/sim/tuning.h"

namespace gpushare::sim {
namespace {

bool IsChainForm(core::Form form) {
  return form == core::Form::kGraph || form == core::Form::kLibrary || form == core::Form::kOpaque;
}

}  // namespace

int32_t Engine::QueueOf(core::PlaceIndex place, int32_t ordinal) const {
  const int32_t count = capabilities_.profile.hardware_queues;
  return place * count + ordinal % count;
}

const PreparedKernel* Engine::Find(const core::KernelDesc* kernel) const {
  if (kernel == nullptr) return nullptr;
  auto found = std::lower_bound(kernels_.begin(), kernels_.end(), kernel,
                                [](const std::unique_ptr<PreparedKernel>& at, const auto* key) {
                                  if (at->desc.id != key->id) return at->desc.id < key->id;
                                  return at->desc.name < key->name;
                                });
  if (found == kernels_.end() || (*found)->desc.id != kernel->id ||
      (*found)->desc.name != kernel->name) {
    return nullptr;
  }
  return found->get();
}

absl::Status Engine::Check(const core::LaunchRequest& request) const {
  if (request.lane < 0 || request.lane >= static_cast<int32_t>(lanes_.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "The launch names lane ", request.lane, ", and the device has ", lanes_.size(), " lanes."));
  }
  const Lane& lane = lanes_[static_cast<size_t>(request.lane)];
  if (lane.abandoned) {
    return absl::FailedPreconditionError(
        absl::StrCat("Lane ", request.lane, " was abandoned and takes no launch."));
  }
  if (absl::Status status = core::CheckLaunchRequest(request); !status.ok()) return status;
  if (!request.wait_events.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("The launch waits for ",
                                                   request.wait_events.size(),
                                                   " native events, and a simulated device has "
                                                   "none."));
  }
  if (request.form == core::Form::kMemcpy) {
    return absl::OkStatus();
  }
  if (request.declared_ns < 0 || request.declared_ns > core::kMaxDurationNs) {
    return absl::InvalidArgumentError(absl::StrCat("The launch declares ", request.declared_ns,
                                                   " ns, and the limit is ", core::kMaxDurationNs,
                                                   "."));
  }
  return CheckKernelForm(request);
}

absl::Status Engine::CheckKernelForm(const core::LaunchRequest& request) const {
  if (request.kernel == nullptr) {
    if (request.form == core::Form::kOpaque || request.form == core::Form::kLibrary) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError("The launch names no kernel.");
  }
  const PreparedKernel* kernel = Find(request.kernel);
  if (kernel == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("Kernel '", request.kernel->name, "' is launched before it was prepared."));
  }
  const Lane& lane = lanes_[static_cast<size_t>(request.lane)];
  if (!kernel->desc.confinable && lane.place != core::kWholeDevice) {
    return absl::InvalidArgumentError(
        absl::StrCat("Kernel '", kernel->desc.name, "' is not confinable, and lane ", request.lane,
                     " has ", places_[static_cast<size_t>(lane.place)]->sms, " SMs."));
  }
  if (IsChainForm(request.form)) {
    if (request.form == core::Form::kGraph && !kernel->is_chain()) {
      return absl::InvalidArgumentError(absl::StrCat("Kernel '", kernel->desc.name,
                                                     "' is launched as a graph and has no nodes."));
    }
    return absl::OkStatus();
  }
  if (request.form == core::Form::kFused) {
    if (request.fused == nullptr || Find(request.fused_partner) == nullptr ||
        Find(request.fused_partner)->is_chain()) {
      return absl::InvalidArgumentError(
          absl::StrCat("The fused launch of kernel '", kernel->desc.name,
                       "' has no fused descriptor or no prepared partner."));
    }
  }
  const bool workers = request.form == core::Form::kWorkers || request.form == core::Form::kFused;
  if (kernel->is_chain()) {
    if (!workers && request.form == core::Form::kOriginal) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "Kernel '", kernel->desc.name, "' is a chain of nodes and has no block tasks."));
  }
  if (request.form == core::Form::kWorkers && !kernel->desc.evictable) {
    return absl::InvalidArgumentError(
        absl::StrCat("Kernel '", kernel->desc.name, "' has no worker form."));
  }
  if (workers && request.counter >= 0) return CheckCounter(request);
  if (request.block_count <= 0 || request.block_count > core::kMaxBlockTasks) {
    return absl::InvalidArgumentError(
        absl::StrCat("The launch of kernel '", kernel->desc.name, "' has ", request.block_count,
                     " block tasks, and the limits are 1 and ", core::kMaxBlockTasks, "."));
  }
  return absl::OkStatus();
}

absl::Status Engine::CheckCounter(const core::LaunchRequest& request) const {
  if (request.counter >= core::kMaxCounters) {
    return absl::InvalidArgumentError(absl::StrCat("The launch names counter ", request.counter,
                                                   ", and the device has ", core::kMaxCounters,
                                                   "."));
  }
  const Pool& pool = pools_[static_cast<size_t>(request.counter)];
  if (!request.reset_counter) {
    if (pool.zeroed) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "Counter ", request.counter, " was never reset; the first launch of a task resets it."));
  }
  if (pool.residencies > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Counter ", request.counter, " is reset while a launch still takes block tasks from it."));
  }
  if (request.block_count <= 0 || request.block_count > core::kMaxBlockTasks) {
    return absl::InvalidArgumentError(
        absl::StrCat("The launch sets counter ", request.counter, " to ", request.block_count,
                     " block tasks, and the limits are 1 and ", core::kMaxBlockTasks, "."));
  }
  return absl::OkStatus();
}

absl::Status Engine::Submit(const core::LaunchRequest& request) {
  if (device_lost_) return absl::UnavailableError("The device is lost; it takes no launch.");
  if (absl::Status status = Check(request); !status.ok()) return status;
  if (free_slots_.empty()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("The device holds ", launches_.size(),
                     " launches whose completion was not polled, and "
                     "that is its limit."));
  }
  if (faults_.LaunchError()) {
    return absl::InternalError("The launch fails by a fault on request.");
  }
  const int32_t slot = AllocateSlot();
  Fill(slot, request);
  Lane& lane = lanes_[static_cast<size_t>(request.lane)];
  ++lane.queued;
  Enqueue(lane.queue, slot);
  if (faults_.DeviceLost()) LoseDevice();
  return absl::OkStatus();
}

void Engine::Fill(int32_t slot, const core::LaunchRequest& request) {
  Launch& launch = launches_[static_cast<size_t>(slot)];
  const uint32_t generation = launch.generation;
  launch = Launch();
  launch.generation = generation;
  const Lane& lane = lanes_[static_cast<size_t>(request.lane)];
  const core::DeviceProfile& profile = capabilities_.profile;
  launch.phase = LaunchPhase::kQueued;
  launch.id = request.launch;
  launch.form = request.form;
  launch.lane = request.lane;
  launch.priority = lane.priority;
  launch.place = places_[static_cast<size_t>(lane.place)].get();
  launch.kernel = Find(request.kernel);
  DrawLaunchFaults(launch);
  int64_t latency = profile.launch_latency_ns;
  if (request.form == core::Form::kMemcpy) {
    latency = profile.copy_latency_ns;
    launch.copy = request.copy;
    launch.slowness *= faults_.SlowCopy() ? faults_.plan().slow_copy_factor : 1;
  } else if (IsChainForm(request.form) || launch.kernel->is_chain()) {
    if (request.form == core::Form::kGraph) latency = profile.graph_launch_latency_ns;
    FillChain(launch, request);
  } else {
    FillTasks(slot, request);
  }
  launch.issued_until_ns = now_ + latency;
}

void Engine::DrawLaunchFaults(Launch& launch) {
  launch.hung = faults_.Hang();
  launch.fails = faults_.LaunchFailure();
  launch.dropped = faults_.DroppedCompletion();
  launch.duplicated = faults_.DuplicatedCompletion();
  if (faults_.Misprediction()) launch.slowness = faults_.plan().misprediction_factor;
}

void Engine::FillTasks(int32_t slot, const core::LaunchRequest& request) {
  Launch& launch = launches_[static_cast<size_t>(slot)];
  const PreparedKernel& kernel = *launch.kernel;
  const core::SimulationRecord& record = kernel.desc.simulation;
  launch.workers = request.form == core::Form::kWorkers || request.form == core::Form::kFused;
  launch.epoch = request.epoch;
  launch.workers_per_sm = kernel.workers_per_sm;
  launch.needs = kernel.needs;
  launch.sm_ns_per_task = kernel.sm_ns_per_task;
  launch.demand = kernel.demand;
  launch.memory_parallelism = record.memory_parallelism;
  launch.place_speed = kernel.SpeedOn(launch.place->sms, capabilities_.profile.sm_count);
  if (request.form == core::Form::kFused) FillFused(launch, request);
  if (launch.workers) launch.sm_ns_per_task *= 1 + record.worker_overhead;
  launch.sm_ns_per_task *= launch.slowness;
  const int64_t most = int64_t{launch.workers_per_sm} * launch.place->sms;
  launch.workers_wanted = most;
  if (launch.workers && request.workers > 0) {
    launch.workers_wanted = std::min<int64_t>(most, request.workers);
  }
  launch.in_flight_progress = random_.Uniform(kInFlightProgressMin, kInFlightProgressMax);
  const double task_ns = launch.sm_ns_per_task * launch.workers_per_sm;
  if (launch.workers && kernel.desc.yield_interval_ns > 0) {
    const double share = static_cast<double>(kernel.desc.yield_interval_ns) / task_ns;
    if (share < 1) launch.yield_share = share;
  }
  const bool counter = launch.workers && request.counter >= 0;
  launch.pool = counter ? request.counter : core::kMaxCounters + slot;
  if (!counter || request.reset_counter) {
    Pool& pool = pools_[static_cast<size_t>(launch.pool)];
    pool.unclaimed = request.block_count;
    pool.interrupted = 0;
    pool.interrupted_left = 0;
    pool.zeroed = true;
  }
}

// Tacker's two-stage model, eq. 5-6 as corrected: with the load ratio r of the two parts, the fused
// kernel takes 1 + (t0 - 1) r / r0 of the TC part's own time up to the opportune ratio r0, and
// t0 + r - r0 beyond.
void Engine::FillFused(Launch& launch, const core::LaunchRequest& request) {
  const core::FusedKernelDesc& fused = *request.fused;
  const PreparedKernel& partner = *Find(request.fused_partner);
  const double blocks = static_cast<double>(std::max(1, fused.cuda_blocks)) /
                        static_cast<double>(std::max(1, fused.tensor_blocks));
  const double ratio = blocks * partner.sm_ns_per_task / launch.sm_ns_per_task;
  const double r0 = std::max(1e-6, fused.opportune_load_ratio);
  const double t0 = fused.opportune_duration_ratio;
  launch.sm_ns_per_task *= ratio <= r0 ? 1 + (t0 - 1) * ratio / r0 : t0 + ratio - r0;
  // One fused block holds the parts' blocks: it needs what they need together.
  const int64_t tensor = std::max(1, fused.tensor_blocks);
  const int64_t cuda = std::max(1, fused.cuda_blocks);
  const BlockNeeds& other = partner.needs;
  launch.needs.threads = launch.needs.threads * tensor + other.threads * cuda;
  launch.needs.registers = launch.needs.registers * tensor + other.registers * cuda;
  launch.needs.shared_memory_bytes =
      launch.needs.shared_memory_bytes * tensor + other.shared_memory_bytes * cuda;
  const int64_t fits = sms_.FitsEmptySm(launch.needs);
  if (fits == 0) launch.needs = {0, 0, 0, true};
  launch.workers_per_sm = static_cast<int32_t>(std::clamp<int64_t>(fits, 1, launch.workers_per_sm));
  const core::ResourceDemand& more = partner.demand;
  auto add = [](double a, double b) { return std::min(1.0, a + b); };
  launch.demand = {add(launch.demand.issue, more.issue), add(launch.demand.tensor, more.tensor),
                   add(launch.demand.special, more.special), add(launch.demand.dram, more.dram),
                   add(launch.demand.l2, more.l2)};
  launch.memory_parallelism =
      std::max(launch.memory_parallelism, partner.desc.simulation.memory_parallelism);
}

void Engine::FillChain(Launch& launch, const core::LaunchRequest& request) {
  const int32_t device_sms = capabilities_.profile.sm_count;
  launch.chain = ChainState::kPending;
  const PreparedKernel* kernel = launch.kernel;
  // A speed table or, for work that the device knows nothing of, time in proportion to SMs.
  launch.place_speed = kernel != nullptr ? kernel->SpeedOn(launch.place->sms, device_sms)
                                         : static_cast<double>(launch.place->sms) / device_sms;
  if (kernel != nullptr) {
    launch.memory_parallelism = kernel->desc.simulation.memory_parallelism;
    if (kernel->is_chain() &&
        !(request.declared_ns > 0 && kernel->desc.simulation.nodes.empty() &&
          kernel->desc.simulation.block_task_ns == 0 && kernel->desc.solo_hint_ns == 0)) {
      return;
    }
  }
  core::GraphNode& node = launch.own_node.node;
  node.duration_ns = request.declared_ns;
  if (node.duration_ns == 0) {
    node.duration_ns = request.form == core::Form::kLibrary ? kLibraryDefaultNs : kOpaqueDefaultNs;
  }
  // What is declared is the time on the lane that the caller chose.
  launch.place_speed = 1;
  node.blocks = device_sms;
  launch.own_node.needs.whole_sm = true;
  launch.has_own_node = true;
}

int32_t& Engine::NextOf(int32_t command) {
  return command >= 0 ? launches_[static_cast<size_t>(command)].next_in_queue
                      : writes_[static_cast<size_t>(-2 - command)].next;
}

void Engine::Enqueue(int32_t queue, int32_t command) {
  HardwareQueue& fifo = queues_[static_cast<size_t>(queue)];
  NextOf(command) = -1;
  if (fifo.head == -1) {
    fifo.head = command;
  } else {
    NextOf(fifo.tail) = command;
  }
  fifo.tail = command;
  Dispatch(queue);
}

void Engine::Dispatch(int32_t queue) {
  HardwareQueue& fifo = queues_[static_cast<size_t>(queue)];
  while (fifo.head != -1) {
    const int32_t command = fifo.head;
    if (command >= 0) {
      Lane& lane = lanes_[static_cast<size_t>(launches_[static_cast<size_t>(command)].lane)];
      if (lane.running != -1) return;
      fifo.head = NextOf(command);
      lane.running = command;
      --lane.queued;
      Issue(command);
    } else {
      WaitingWrite& write = writes_[static_cast<size_t>(-2 - command)];
      fifo.head = write.next;
      WriteWord(write.lane, write.epoch, write.keep);
      write.lane = -1;
    }
  }
  fifo.tail = -1;
}

void Engine::Issue(int32_t slot) {
  Launch& launch = launches_[static_cast<size_t>(slot)];
  Lane& lane = lanes_[static_cast<size_t>(launch.lane)];
  core::TimeNs ready = std::max(launch.issued_until_ns, now_);
  if (lane.had_predecessor) ready = std::max(ready, now_ + kSuccessorGapNs);
  lane.had_predecessor = false;
  launch.phase = LaunchPhase::kIssued;
  AddTimer(ready, TimerKind::kReady, slot, launch.generation);
}

void Engine::Ready(int32_t slot) {
  Launch& launch = launches_[static_cast<size_t>(slot)];
  launch.phase = LaunchPhase::kResident;
  dirty_ = true;
  if (launch.fails && !launch.hung) {
    EndLaunch(slot, core::Outcome::kFailed, 1);
  } else if (launch.form == core::Form::kMemcpy) {
    StartCopy(slot);
  } else if (launch.workers && MustLeave(launch)) {
    const Lane& lane = lanes_[static_cast<size_t>(launch.lane)];
    launch.evicted = true;
    launch.workers_wanted = std::min(launch.workers_wanted, lane.keep);
    if (launch.workers_wanted > 0) {
      MakePending(slot);
    } else {
      launch.left_work = pools_[static_cast<size_t>(launch.pool)].available() > 0;
      EndIfDone(slot);
    }
  } else {
    MakePending(slot);
  }
}

void Engine::StartCopy(int32_t slot) {
  const Launch& launch = launches_[static_cast<size_t>(slot)];
  if (launch.hung) return;
  Link::Copy copy;
  copy.launch = slot;
  copy.direction = launch.copy.direction;
  copy.pinned = launch.copy.pinned;
  copy.bytes_left = static_cast<double>(launch.copy.bytes);
  copy.slowness = launch.slowness;
  link_.Add(now_, copy);
}

bool Engine::MustLeave(const Launch& launch) const {
  const Lane& lane = lanes_[static_cast<size_t>(launch.lane)];
  return lane.has_word && static_cast<int64_t>(lane.word - launch.epoch) >= 0;
}

absl::Status Engine::Evict(core::LaneIndex index, uint64_t epoch, int32_t keep) {
  if (device_lost_) return absl::UnavailableError("The device is lost; it takes no eviction.");
  if (index < 0 || index >= static_cast<int32_t>(lanes_.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "The eviction names lane ", index, ", and the device has ", lanes_.size(), " lanes."));
  }
  Lane& lane = lanes_[static_cast<size_t>(index)];
  if (!lane.evictable) {
    return absl::FailedPreconditionError(
        absl::StrCat("Lane ", index, " was created without an eviction word."));
  }
  if (keep < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("The eviction keeps ", keep, " workers, and it must keep 0 or more."));
  }
  if (lane.abandoned) return absl::OkStatus();
  if (faults_.BlockedEviction()) {
    lane.blocked_word = lane.running != -1;
    lane.blocked_epoch = epoch;
    lane.blocked_keep = keep;
    if (lane.blocked_word) return absl::OkStatus();
  }
  const int32_t queue = QueueOf(lane.place, capabilities_.profile.hardware_queues - 1);
  if (queues_[static_cast<size_t>(queue)].head == -1) {
    WriteWord(index, epoch, keep);
    return absl::OkStatus();
  }
  auto waiting = std::find_if(writes_.begin(), writes_.end(),
                              [](const WaitingWrite& write) { return write.lane == -1; });
  if (waiting == writes_.end()) {
    return absl::ResourceExhaustedError(absl::StrCat("The hardware queue holds ", writes_.size(),
                                                     " eviction writes, and that is its limit."));
  }
  waiting->lane = index;
  waiting->epoch = epoch;
  waiting->keep = keep;
  Enqueue(queue, -2 - static_cast<int32_t>(waiting - writes_.begin()));
  return absl::OkStatus();
}

void Engine::WriteWord(core::LaneIndex index, uint64_t epoch, int64_t keep) {
  Lane& lane = lanes_[static_cast<size_t>(index)];
  const double latency = static_cast<double>(capabilities_.profile.eviction_write_latency_ns);
  const double jitter = random_.Exponential(kEvictionWriteJitter * latency);
  // Writes of one stream arrive in order.
  lane.last_write_ns = std::max(lane.last_write_ns,
                                now_ + static_cast<core::TimeNs>(std::llround(latency + jitter)));
  AddTimer(lane.last_write_ns, TimerKind::kWord, index, epoch, keep);
}

void Engine::WordArrives(core::LaneIndex index, uint64_t epoch, int64_t keep) {
  Lane& lane = lanes_[static_cast<size_t>(index)];
  if (lane.has_word && static_cast<int64_t>(epoch - lane.word) < 0) return;
  lane.has_word = true;
  lane.word = epoch;
  lane.keep = keep;
  if (lane.running == -1) return;
  Launch& launch = launches_[static_cast<size_t>(lane.running)];
  // A launch that is not ready yet reads the word when it starts.
  if (launch.phase != LaunchPhase::kResident || !launch.workers || launch.hung) return;
  if (MustLeave(launch)) EvictLaunch(lane.running, keep);
}

}  // namespace gpushare::sim
