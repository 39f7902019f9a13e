// From the launch call to a ready launch: validates a request, copies it into a slot, and moves it
// through its lane and its hardware queue. Also eviction words.
//
// A hardware queue is a FIFO of commands, shared by several lanes. Its head leaves when its lane's
// earlier launch has ended. Until then everything behind it waits, on whichever lane
// (docs/hardware.md, "Hardware queues are shared"). As each CUDA context does, each place has
// hardware_queues of them; eviction writes use the last one.

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"
#include "src/core/checks/launch_check.h"
#include "src/core/seams/launch_claims.h"
#include "src/core/seams/native_code.h"
#include "src/sim/engine.h"
#include "src/sim/physics/tuning.h"

namespace gpushare::sim {
namespace {

bool IsChainForm(core::Form form) {
  return form == core::Form::kGraph || form == core::Form::kSegments ||
         form == core::Form::kLibrary || form == core::Form::kOpaque;
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
  if (!HasLane(request.parts[0].lane)) {
    return absl::InvalidArgumentError(absl::StrCat("The launch names lane ", request.parts[0].lane,
                                                   ", and the device has made no such lane."));
  }
  const Lane& lane = lanes_[request.parts[0].lane];
  if (lane.abandoned) {
    return absl::FailedPreconditionError(
        absl::StrCat("Lane ", request.parts[0].lane, " was abandoned and takes no launch."));
  }
  if (lane.has_segments) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Lane ", request.parts[0].lane, " has a launch in segments and takes no other."));
  }
  if (request.after_lane != core::kNoLane &&
      (request.after_lane < 0 || request.after_lane >= static_cast<int32_t>(lanes_.size()))) {
    return absl::InvalidArgumentError(absl::StrCat("The launch comes after lane ",
                                                   request.after_lane, ", and the device has ",
                                                   lanes_.size(), " lanes."));
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
  if (request.parts[0].work.declared_ns < 0 ||
      request.parts[0].work.declared_ns > core::kMaxDurationNs) {
    return absl::InvalidArgumentError(
        absl::StrCat("The launch declares ", request.parts[0].work.declared_ns,
                     " ns, and the limit is ", core::kMaxDurationNs, "."));
  }
  return CheckKernelForm(request);
}

absl::Status Engine::CheckKernelForm(const core::LaunchRequest& request) const {
  if (request.parts[0].work.kernel == nullptr) {
    if (request.form == core::Form::kOpaque || request.form == core::Form::kLibrary) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError("The launch names no kernel.");
  }
  const PreparedKernel* kernel = Find(request.parts[0].work.kernel);
  if (kernel == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Kernel '", request.parts[0].work.kernel->name, "' is launched before it was prepared."));
  }
  const Lane& lane = lanes_[request.parts[0].lane];
  if (!kernel->desc.confinable && lane.place != core::kWholeDevice) {
    return absl::InvalidArgumentError(
        absl::StrCat("Kernel '", kernel->desc.name, "' is not confinable, and lane ",
                     request.parts[0].lane, " has ", places_[lane.place]->sms, " SMs."));
  }
  if (IsChainForm(request.form)) {
    if (request.form == core::Form::kGraph && !kernel->is_chain()) {
      return absl::InvalidArgumentError(absl::StrCat("Kernel '", kernel->desc.name,
                                                     "' is launched as a graph and has no nodes."));
    }
    if (request.form != core::Form::kSegments) return absl::OkStatus();
    return CheckCounter(request.parts[0].counter, request.parts[0].reset_counter,
                        request.parts[0].block_count);
  }
  if (request.form == core::Form::kFused) {
    if (absl::Status status = CheckFused(request); !status.ok()) return status;
  }
  const bool workers = core::ClaimsBlockTasks(request.form);
  if (kernel->is_chain()) {
    if (!workers && request.form == core::Form::kOriginal) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "Kernel '", kernel->desc.name, "' is a chain of nodes and has no block tasks."));
  }
  if (request.form == core::Form::kWorkers && !kernel->desc.evictable) {
    return absl::InvalidArgumentError(
        absl::StrCat("Kernel '", kernel->desc.name, "' has no worker form."));
  }
  if (workers && request.parts[0].counter >= 0) {
    return CheckCounter(request.parts[0].counter, request.parts[0].reset_counter,
                        request.parts[0].block_count);
  }
  if (request.parts[0].block_count <= 0 || request.parts[0].block_count > core::kMaxBlockTasks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "The launch of kernel '", kernel->desc.name, "' has ", request.parts[0].block_count,
        " block tasks, and the limits are 1 and ", core::kMaxBlockTasks, "."));
  }
  return absl::OkStatus();
}

// Validates the second part of a fused launch; Check validates the first like any launch.
absl::Status Engine::CheckFused(const core::LaunchRequest& request) const {
  const core::LaunchPart& partner = request.parts[1];
  const PreparedKernel* const kernel = Find(partner.work.kernel);
  if (kernel == nullptr || kernel->is_chain()) {
    return absl::InvalidArgumentError(absl::StrCat("The fused launch of '", request.fused->name,
                                                   "' has no prepared partner with block tasks."));
  }
  if (!HasLane(partner.lane)) {
    return absl::InvalidArgumentError(absl::StrCat("The launch's second part names lane ",
                                                   partner.lane,
                                                   ", and the device has made no such lane."));
  }
  if (lanes_[partner.lane].abandoned) {
    return absl::FailedPreconditionError(
        absl::StrCat("Lane ", partner.lane, " was abandoned and takes no launch."));
  }
  return CheckCounter(partner.counter, partner.reset_counter, partner.block_count);
}

absl::Status Engine::CheckCounter(int32_t counter, bool reset, int64_t block_count) const {
  if (counter >= core::kMaxCounters) {
    return absl::InvalidArgumentError(absl::StrCat(
        "The launch names counter ", counter, ", and the device has ", core::kMaxCounters, "."));
  }
  const Pool& pool = pools_[counter];
  if (!reset) {
    if (pool.zeroed) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "Counter ", counter, " was never reset; the first launch of a task resets it."));
  }
  if (pool.residencies > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Counter ", counter, " is reset while a launch still takes block tasks from it."));
  }
  if (block_count <= 0 || block_count > core::kMaxBlockTasks) {
    return absl::InvalidArgumentError(
        absl::StrCat("The launch sets counter ", counter, " to ", block_count,
                     " block tasks, and the limits are 1 and ", core::kMaxBlockTasks, "."));
  }
  return absl::OkStatus();
}

absl::Status Engine::Submit(const core::LaunchRequest& request) {
  if (device_lost_) {
    return core::WithNativeCode(absl::UnavailableError("The device is lost; it takes no launch."),
                                kFaultNativeCode);
  }
  if (absl::Status status = Check(request); !status.ok()) return status;
  if (free_slots_.size() < (request.form == core::Form::kFused ? 2U : 1U)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("The device holds ", launches_.size(),
                     " launches whose completion was not polled, and "
                     "that is its limit."));
  }
  ReserveTimers();
  if (faults_.LaunchError()) {
    return core::WithNativeCode(absl::InternalError("The launch fails by a fault on request."),
                                kFaultNativeCode);
  }
  const int32_t slot = AllocateSlot();
  Fill(slot, request);
  NoteOrder(slot, request);
  Enqueue(lanes_[request.parts[0].lane].queue, slot);
  if (faults_.DeviceLost()) LoseDevice();
  return absl::OkStatus();
}

void Engine::Fill(int32_t slot, const core::LaunchRequest& request) {
  Launch& launch = launches_[slot];
  const uint32_t generation = launch.generation;
  launch = Launch();
  launch.generation = generation;
  const Lane& lane = lanes_[request.parts[0].lane];
  const core::DeviceProfile& profile = capabilities_.profile;
  launch.phase = LaunchPhase::kQueued;
  launch.id = request.parts[0].launch;
  launch.form = request.form;
  launch.lane = request.parts[0].lane;
  launch.priority = lane.priority;
  launch.place = places_[lane.place].get();
  launch.kernel = Find(request.parts[0].work.kernel);
  DrawLaunchFaults(launch);
  int64_t latency = profile.launch_latency_ns;
  if (request.form == core::Form::kMemcpy) {
    latency = profile.copy_latency_ns;
    launch.copy = request.parts[0].work.copy;
    launch.slowness *= faults_.SlowCopy() ? faults_.plan().slow_copy_factor : 1;
  } else if (IsChainForm(request.form) || launch.kernel->is_chain()) {
    const bool graph = request.form == core::Form::kGraph || request.form == core::Form::kSegments;
    if (graph) latency = profile.graph_launch_latency_ns;
    FillChain(launch, request);
    launch.node_end = NodeCount(launch);
    if (request.form == core::Form::kSegments) FillSegments(launch, request);
  } else {
    FillTasks(slot, request);
    if (request.form == core::Form::kFused) FillFused(slot, request);
  }
  launch.issued_until_ns = now_ + latency;
}

void Engine::NoteOrder(int32_t slot, const core::LaunchRequest& request) {
  Launch& launch = launches_[slot];
  if (request.after_lane != core::kNoLane) {
    const Lane& before = lanes_[request.after_lane];
    launch.after = before.newest;
    launch.after_generation = before.newest_generation;
    if (!IsBehind(launch)) launch.after = -1;
    if (launch.after >= 0) ++launches_behind_;
  }
  Lane& lane = lanes_[request.parts[0].lane];
  lane.newest = slot;
  lane.newest_generation = launch.generation;
}

// Whether a launch of another lane, which must end first, has not ended.
bool Engine::IsBehind(const Launch& launch) const {
  if (launch.after < 0) return false;
  const Launch& before = launches_[launch.after];
  return before.generation == launch.after_generation && before.phase != LaunchPhase::kFree &&
         before.phase != LaunchPhase::kOver;
}

// A launch has ended: those of other lanes that waited for it are heads of their hardware queues.
void Engine::DispatchBehind() {
  if (launches_behind_ == 0) return;
  for (size_t queue = 0; queue < queues_.size(); ++queue) {
    const int32_t head = queues_[queue].head;
    if (head >= 0 && launches_[head].after >= 0) Dispatch(static_cast<int32_t>(queue));
  }
}

void Engine::DrawLaunchFaults(Launch& launch) {
  launch.hung = faults_.Hang();
  launch.fails = faults_.LaunchFailure();
  launch.dropped = faults_.DroppedCompletion();
  launch.duplicated = faults_.DuplicatedCompletion();
  if (faults_.Misprediction()) launch.slowness = faults_.plan().misprediction_factor;
}

void Engine::FillTasks(int32_t slot, const core::LaunchRequest& request) {
  Launch& launch = launches_[slot];
  const PreparedKernel& kernel = *launch.kernel;
  const core::SimulationRecord& record = kernel.desc.simulation;
  launch.workers = core::ClaimsBlockTasks(request.form);
  launch.epoch = request.parts[0].epoch;
  if (launch.workers) WriteEarlyEviction(launch);
  launch.workers_per_sm = kernel.workers_per_sm;
  launch.needs = kernel.needs;
  launch.sm_ns_per_task = kernel.sm_ns_per_task;
  launch.demand = kernel.demand;
  launch.memory_parallelism = record.memory_parallelism;
  launch.place_speed = kernel.SpeedOn(launch.place->sms, capabilities_.profile.sm_count);
  // A fused kernel's points are relative to the ordinary form.
  const bool persistent = launch.workers && request.form != core::Form::kFused;
  if (persistent) launch.sm_ns_per_task *= 1 + record.worker_overhead;
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
  const bool counter = launch.workers && request.parts[0].counter >= 0;
  launch.pool = counter ? request.parts[0].counter : core::kMaxCounters + slot;
  if (!counter || request.parts[0].reset_counter) {
    Pool& pool = pools_[launch.pool];
    pool.unclaimed = request.parts[0].block_count;
    pool.taken = 0;
    pool.interrupted = 0;
    pool.interrupted_left = 0;
    pool.zeroed = true;
  }
}

void Engine::FillChain(Launch& launch, const core::LaunchRequest& request) {
  const int32_t device_sms = capabilities_.profile.sm_count;
  launch.chain = ChainState::kPending;
  const PreparedKernel* kernel = launch.kernel;
  // From the speed table; work without a kernel slows in proportion to its SMs.
  launch.place_speed = kernel != nullptr ? kernel->SpeedOn(launch.place->sms, device_sms)
                                         : static_cast<double>(launch.place->sms) / device_sms;
  if (kernel != nullptr) {
    launch.memory_parallelism = kernel->desc.simulation.memory_parallelism;
    if (kernel->is_chain() &&
        !(request.parts[0].work.declared_ns > 0 && kernel->desc.simulation.nodes.empty() &&
          kernel->desc.simulation.block_task_ns == 0 && kernel->desc.solo_hint_ns == 0)) {
      return;
    }
  }
  core::GraphNode& node = launch.own_node.node;
  node.duration_ns = request.parts[0].work.declared_ns;
  if (node.duration_ns == 0) {
    node.duration_ns = request.form == core::Form::kLibrary ? kLibraryDefaultNs : kOpaqueDefaultNs;
  }
  // A declared duration holds on the lane that the caller chose, so its place does not slow it.
  launch.place_speed = 1;
  node.blocks = device_sms;
  launch.own_node.needs.whole_sm = true;
  launch.has_own_node = true;
}

// The counter's pool holds how many segments are done.
void Engine::FillSegments(Launch& launch, const core::LaunchRequest& request) {
  const core::LaunchPart& part = request.parts[0];
  const PreparedKernel& kernel = *launch.kernel;
  Pool& pool = pools_[part.counter];
  if (part.reset_counter) {
    pool = Pool();
    pool.zeroed = true;
  }
  launch.in_segments = true;
  lanes_[launch.lane].has_segments = true;
  launch.pool = part.counter;
  launch.epoch = part.epoch;
  launch.segment_first = static_cast<int32_t>(pool.taken);
  const auto first = static_cast<size_t>(pool.taken);
  launch.blocks_left = 0;
  launch.node = first < kernel.segments.size() ? kernel.segments[first] : kernel.nodes;
  launch.longer_segments =
      request.longer_segments && lanes_[launch.lane].place == core::kWholeDevice;
  launch.ran_longer = RunsLonger(launch);
  launch.length_since = launch.begun_until = first;
  launch.node_done_ns = pool.node_done_ns;
  if (pool.node_done_ns > 0) ++launch.length_since;  // no longer segment begins with the rest
  launch.own_slowness = launch.slowness;
  SetPace(launch);
}

int32_t& Engine::NextOf(int32_t command) {
  return command >= 0 ? launches_[command].next_in_queue : writes_[-2 - command].next;
}

void Engine::Enqueue(int32_t queue, int32_t command) {
  HardwareQueue& fifo = queues_[queue];
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
  HardwareQueue& fifo = queues_[queue];
  while (fifo.head != -1) {
    const int32_t command = fifo.head;
    if (command >= 0) {
      Lane& lane = lanes_[launches_[command].lane];
      Launch& launch = launches_[command];
      if (lane.running != -1 || IsBehind(launch)) return;
      if (std::exchange(launch.after, -1) >= 0) --launches_behind_;
      fifo.head = NextOf(command);
      lane.running = command;
      Issue(command);
    } else {
      WaitingWrite& write = writes_[-2 - command];
      fifo.head = write.next;
      WriteWord(write.lane, write.epoch, write.keep);
      write.lane = -1;
    }
  }
  fifo.tail = -1;
}

// What a calibration measured that a slice costs alone, less the tail that block_tasks.cc gives it.
int64_t Engine::SliceGapNs(const Launch& launch) const {
  const core::KernelDesc& kernel = launch.kernel->desc;
  const double task_ns = static_cast<double>(kernel.simulation.block_task_ns);
  const double wave = static_cast<double>(launch.kernel->workers_per_sm) *
                      static_cast<double>(capabilities_.profile.sm_count);
  const double cost_ns =
      kernel.slices.overhead * static_cast<double>(kernel.slices.block_tasks) * task_ns / wave;
  const double tail_ns = kernel.simulation.block_task_spread * task_ns;
  return std::max(kSliceSuccessorGapNs, static_cast<int64_t>(cost_ns - tail_ns));
}

void Engine::Issue(int32_t slot) {
  Launch& launch = launches_[slot];
  Lane& lane = lanes_[launch.lane];
  core::TimeNs ready = std::max(launch.issued_until_ns, now_);
  const int64_t gap_ns = launch.form == core::Form::kSlice ? SliceGapNs(launch) : kSuccessorGapNs;
  if (lane.had_predecessor) ready = std::max(ready, now_ + gap_ns);
  lane.had_predecessor = false;
  launch.phase = LaunchPhase::kIssued;
  AddTimer(ready, TimerKind::kReady, slot, launch.generation);
}

void Engine::Ready(int32_t slot) {
  Launch& launch = launches_[slot];
  launch.phase = LaunchPhase::kResident;
  dirty_ = true;
  if (launch.form == core::Form::kFused) {
    FusedIsReady(slot);
  } else if (launch.fails && !launch.hung) {
    EndLaunch(slot, core::Outcome::kFailed, kFaultNativeCode);
  } else if (launch.form == core::Form::kMemcpy) {
    StartCopy(slot);
  } else if (launch.in_segments && (MustLeave(launch) || launch.node >= launch.kernel->nodes)) {
    EndChain(slot);
  } else if (launch.workers && MustLeave(launch)) {
    const Lane& lane = lanes_[launch.lane];
    launch.evicted = true;
    launch.workers_wanted = std::min(launch.workers_wanted, lane.keep);
    if (launch.workers_wanted > 0) {
      MakePending(slot);
    } else {
      EndIfDone(slot);
    }
  } else {
    MakePending(slot);
  }
}

// Applies an eviction word that arrived before the launch has all its workers.
void Engine::ApplyEvictionWord(Launch& launch) const {
  if (!MustLeave(launch)) return;
  launch.evicted = true;
  launch.workers_wanted = std::min(launch.workers_wanted, lanes_[launch.lane].keep);
}

void Engine::StartCopy(int32_t slot) {
  const Launch& launch = launches_[slot];
  if (launch.hung) return;
  Link::Copy copy;
  copy.launch = slot;
  copy.direction = launch.copy.direction;
  copy.pinned = launch.copy.pinned;
  copy.bytes_left = static_cast<double>(launch.copy.bytes);
  copy.slowness = launch.slowness;
  link_.Add(now_, copy);
  NoteCopies();
}

bool Engine::MustLeave(const Launch& launch) const {
  const Lane& lane = lanes_[launch.lane];
  if (!lane.evictable && !launch.in_segments) return false;
  return lane.has_word && static_cast<int64_t>(lane.word - launch.epoch) >= 0;
}

absl::Status Engine::Evict(core::LaneIndex index, uint64_t epoch, int32_t keep) {
  if (device_lost_) return absl::UnavailableError("The device is lost; it takes no eviction.");
  if (!HasLane(index)) {
    return absl::InvalidArgumentError(
        absl::StrCat("The eviction names lane ", index, ", and the device has made no such lane."));
  }
  Lane& lane = lanes_[index];
  if (keep < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("The eviction keeps ", keep, " workers, and it must keep 0 or more."));
  }
  if (lane.abandoned) return absl::OkStatus();
  ReserveTimers();
  if (faults_.BlockedEviction()) {
    lane.blocked_word = lane.running != -1;
    lane.blocked_epoch = epoch;
    lane.blocked_keep = keep;
    if (lane.blocked_word) return absl::OkStatus();
  }
  const int32_t queue = QueueOf(lane.place, capabilities_.profile.hardware_queues - 1);
  if (queues_[queue].head == -1) {
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
  Lane& lane = lanes_[index];
  const double latency = static_cast<double>(capabilities_.profile.eviction_write_latency_ns);
  const double jitter = random_.Exponential(kEvictionWriteJitter * latency);
  // Writes on one stream arrive in order.
  lane.last_write_ns = std::max(lane.last_write_ns,
                                now_ + static_cast<core::TimeNs>(std::llround(latency + jitter)));
  AddTimer(lane.last_write_ns, TimerKind::kWord, index, epoch, keep);
  lane.has_written = true;
  lane.written = epoch;
  lane.written_keep = keep;
}

// A word that counts when a launch is made goes ahead of it, as on a GPU (src/cuda/launcher.cc).
void Engine::WriteEarlyEviction(const Launch& launch) {
  const Lane& lane = lanes_[launch.lane];
  if (!lane.evictable || !lane.has_written || lane.running != -1) return;
  if (static_cast<int64_t>(lane.written - launch.epoch) < 0) return;
  WordArrives(launch.lane, lane.written, lane.written_keep);
}

void Engine::WordArrives(core::LaneIndex index, uint64_t epoch, int64_t keep) {
  Lane& lane = lanes_[index];
  if (lane.has_word && static_cast<int64_t>(epoch - lane.word) < 0) return;
  lane.has_word = true;
  lane.word = epoch;
  lane.keep = keep;
  // A launch that is not yet ready reads the word when it starts.
  const auto leaves = [this](const Launch& launch) {
    return launch.phase == LaunchPhase::kResident && (launch.workers || launch.in_segments) &&
           !launch.hung && MustLeave(launch);
  };
  // Second parts of fused launches on other lanes. One without a block reads the word when it gets
  // one.
  for (size_t i = 0; i < resident_launches_.size(); ++i) {  // NOLINT(modernize-loop-convert)
    const int32_t slot = resident_launches_[i];
    const Launch& launch = launches_[slot];
    if (launch.is_second_part && launch.lane == index && leaves(launch)) EvictLaunch(slot, keep);
  }
  if (lane.running == -1) return;
  const Launch& launch = launches_[lane.running];
  if (launch.lane != index || launch.is_second_part || !leaves(launch)) return;
  if (launch.in_segments) {
    EvictSegments(lane.running);
  } else {
    EvictLaunch(lane.running, keep);
  }
}

}  // namespace gpushare::sim
