// Events, completions and the clock of the simulated device. See engine.h.

#include "src/sim/engine.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"
#include "src/core/checks/launch_check.h"
#include "src/sim/physics/tuning.h"

namespace gpushare::sim {
namespace {

constexpr size_t kLaunchesMax = core::kMaxInFlightLaunches;

// Orders std::push_heap so that the earliest time is on top, and equal times in order of insertion.
template <class T>
bool Later(const T& a, const T& b) {
  return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.sequence > b.sequence;
}

}  // namespace

Engine::Engine(const SimOptions& options)
    : faults_(options.faults, options.seed ^ 0xFA0175u),
      random_(options.seed),
      sms_(options.profile, options.tier == Tier::kBlock ? 1 : options.profile.sm_granularity),
      link_(options.profile, kLaunchesMax) {
  capabilities_.profile = options.profile;
  capabilities_.simulated = true;
  capabilities_.virtual_time = !options.real_time;
  capabilities_.partitions = true;
  capabilities_.eviction = true;
  capabilities_.timestamps = true;
  capabilities_.reads_claims = true;
  // Allocate every table here at its bound. A lane runs one launch at a time, with at most two
  // parts, and each part has one residency in a cell.
  const size_t residencies = sms_.cells().size() * core::kMaxLanes * 2;
  residencies_.resize(residencies);
  free_residencies_.reserve(residencies);
  active_residencies_.reserve(residencies);
  for (size_t i = residencies; i > 0; --i) {
    free_residencies_.push_back(static_cast<int32_t>(i - 1));
  }
  room_in_cell_.resize(sms_.cells().size());
  launches_.resize(kLaunchesMax);
  free_slots_.reserve(kLaunchesMax);
  for (size_t i = kLaunchesMax; i > 0; --i) free_slots_.push_back(static_cast<int32_t>(i - 1));
  resident_launches_.reserve(kLaunchesMax);
  pending_.reserve(kLaunchesMax);
  pools_.resize(core::kMaxCounters + kLaunchesMax);
  active_pools_.reserve(pools_.size());
  timers_.reserve(8 * kLaunchesMax);
  visible_.resize(2 * kLaunchesMax);
  writes_.resize(kMaxWaitingWrites);
  kernels_.reserve(core::kMaxKernels);
  lanes_.reserve(core::kMaxLanes);
  places_.resize(core::kMaxPlaces);
  places_[core::kWholeDevice] = std::make_unique<Place>(sms_.whole_device());
  lanes_of_place_.resize(core::kMaxPlaces);
  queues_.resize(size_t{core::kMaxPlaces} * static_cast<size_t>(options.profile.hardware_queues));
  if (options.faults.device_lost_at_ns != core::kNever) {
    AddTimer(options.faults.device_lost_at_ns, TimerKind::kDeviceLost, -1);
  }
}

absl::Status Engine::Prepare(const core::KernelDesc& desc) {
  if (device_lost_) return absl::UnavailableError("The device is lost; it prepares no kernel.");
  if (faults_.KernelOutOfMemory()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("The device has no memory left for kernel '", desc.name, "'."));
  }
  if (Find(&desc) != nullptr) return absl::OkStatus();
  if (kernels_.size() == static_cast<size_t>(core::kMaxKernels)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("The device holds ", kernels_.size(), " kernels, and that is its limit."));
  }
  auto kernel = PrepareKernelRecord(desc, capabilities_.profile, sms_);
  if (!kernel.ok()) return kernel.status();
  auto after = std::find_if(kernels_.begin(), kernels_.end(), [&desc](const auto& at) {
    if (at->desc.id != desc.id) return desc.id < at->desc.id;
    return desc.name < at->desc.name;
  });
  kernels_.insert(after, std::make_unique<PreparedKernel>(*std::move(kernel)));
  return absl::OkStatus();
}

void Engine::Release(core::KernelId kernel) {
  std::erase_if(kernels_, [kernel](const auto& at) { return at->desc.id == kernel; });
}

absl::Status Engine::AddPlace(core::PlaceIndex index, const core::PlaceSpec& spec) {
  if (device_lost_) return absl::UnavailableError("The device is lost; it makes no place.");
  if (faults_.PlaceOutOfMemory()) {
    return absl::ResourceExhaustedError("The device has no memory left for a place.");
  }
  if (absl::Status status = core::CheckNewPlace(index, spec, capabilities_.profile); !status.ok()) {
    return status;
  }
  if (HasPlace(index)) return core::PlaceExists(index);
  auto place = sms_.MakePlace(spec);
  if (!place.ok()) return place.status();
  places_[index] = std::make_unique<Place>(*std::move(place));
  lanes_of_place_[index] = 0;
  return absl::OkStatus();
}

bool Engine::IsInUse(core::LaneIndex index) const {
  const Lane& lane = lanes_[index];
  if (lane.abandoned || lane.replaced) return true;
  return std::any_of(launches_.begin(), launches_.end(), [index](const Launch& launch) {
    return launch.phase != LaunchPhase::kFree &&
           (launch.lane == index || (launch.partner != -1 && launch.stream_lane == index) ||
            (launch.is_second_part && launch.stream_lane == index));
  });
}

absl::Status Engine::RemovePlace(core::PlaceIndex place) {
  if (device_lost_) return absl::UnavailableError("The device is lost; it ends no place.");
  if (place == core::kWholeDevice || !HasPlace(place)) return core::NoSuchPlace(place);
  const auto is_there = [&](core::LaneIndex lane) {
    return HasLane(lane) && lanes_[lane].place == place;
  };
  const auto lanes = static_cast<core::LaneIndex>(lanes_.size());
  for (core::LaneIndex lane = 0; lane < lanes; ++lane) {
    if (!is_there(lane) || !IsInUse(lane)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "Place ", place, " is asked to end, and lane ", lane, " is in use or was abandoned."));
  }
  for (core::LaneIndex lane = 0; lane < lanes; ++lane) {
    if (!is_there(lane)) continue;
    lanes_[lane] = Lane();
    // A word on its way would reach the next lane with this index.
    for (Timer& timer : timers_) {
      if (timer.kind == TimerKind::kWord && timer.index == lane) timer.index = core::kNoLane;
    }
  }
  places_[place] = nullptr;
  return absl::OkStatus();
}

absl::StatusOr<Lane> Engine::MakeLane(const core::LaneSpec& spec) {
  if (device_lost_) return absl::UnavailableError("The device is lost; it makes no lane.");
  if (faults_.LaneOutOfMemory()) {
    return absl::ResourceExhaustedError("The device has no memory left for a lane.");
  }
  if (!HasPlace(spec.place)) {
    return absl::InvalidArgumentError(absl::StrCat("The lane names place ", spec.place,
                                                   ", and the device has made no such place."));
  }
  Lane lane;
  lane.made = true;
  lane.place = spec.place;
  lane.priority = static_cast<int32_t>(spec.priority);
  lane.evictable = spec.evictable;
  lane.queue = QueueOf(spec.place, lanes_of_place_[spec.place]++);
  return lane;
}

absl::StatusOr<core::LaneIndex> Engine::AddLane(const core::LaneSpec& spec) {
  const auto free =
      std::find_if(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return !lane.made; });
  const auto index = static_cast<core::LaneIndex>(free - lanes_.begin());
  if (index == core::kMaxLanes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("The device has ", lanes_.size(), " lanes, and that is its limit."));
  }
  absl::StatusOr<Lane> lane = MakeLane(spec);
  if (!lane.ok()) return lane.status();
  if (free == lanes_.end()) lanes_.emplace_back();
  lanes_[index] = *lane;
  return index;
}

int32_t Engine::AllocateSlot() {
  const int32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

void Engine::FreeSlot(int32_t slot) {
  Launch& launch = launches_[slot];
  launch.phase = LaunchPhase::kFree;
  if (std::exchange(launch.after, -1) >= 0) --launches_behind_;
  ++launch.generation;
  free_slots_.push_back(slot);
}

void Engine::AddTimer(core::TimeNs time, TimerKind kind, int32_t index, uint64_t epoch,
                      int64_t keep) {
  timers_.push_back({time, next_timer_++, kind, index, epoch, keep});
  std::push_heap(timers_.begin(), timers_.end(), Later<Timer>);
}

// A call from outside that adds timers reserves room first, so that memory can run out only there.
// Until the next such call, a timer that fires adds at most one for its launch.
void Engine::ReserveTimers() {
  const size_t most = timers_.size() + kLaunchesMax + core::kMaxLanes;
  if (timers_.capacity() < most) timers_.reserve(2 * most);
}

core::TimeNs Engine::NextEventNs() const {
  core::TimeNs next = std::min(next_due_ns_, link_.NextEventNs());
  if (!timers_.empty()) next = std::min(next, timers_.front().time_ns);
  return next;
}

core::TimeNs Engine::NextLookNs() const {
  if (visible_count_ > 0) return now_;
  core::TimeNs next = link_.NextEventNs();
  for (const Timer& timer : timers_) {
    if (timer.kind != TimerKind::kGapEnd) next = std::min(next, timer.time_ns);
  }
  for (const int32_t pool : active_pools_) next = std::min(next, pools_[pool].due_ns);
  for (const int32_t index : active_residencies_) {
    next = std::min(next, residencies_[index].due_ns);
  }
  for (const int32_t slot : resident_launches_) {
    const Launch& launch = launches_[slot];
    if (launch.chain == ChainState::kNone) continue;
    const core::TimeNs end =
        launch.chain == ChainState::kRun ? launch.due_ns : EarliestEndOf(launch);
    if (end != core::kNever) {
      next = std::min(next, end + capabilities_.profile.completion_latency_ns);
    }
  }
  return next;
}

void Engine::AdvanceTo(core::TimeNs time) {
  if (!clock_jumped_ && time >= faults_.plan().clock_jump_at_ns) {
    clock_jumped_ = true;
    time += std::max<int64_t>(0, faults_.plan().clock_jump_ns);
  }
  for (core::TimeNs next = NextEventNs(); next <= time; next = NextEventNs()) {
    MoveClock(next);
    FireTimers();
    FireDue();
    Update();
  }
  MoveClock(time);
}

void Engine::MoveClock(core::TimeNs time) {
  if (time <= now_) return;
  busy_sm_ns_ += busy_sms_ * static_cast<double>(time - now_);
  now_ = time;
  now_ns_.store(time, std::memory_order_release);
}

void Engine::FireTimers() {
  while (!timers_.empty() && timers_.front().time_ns <= now_) {
    const Timer timer = timers_.front();
    std::pop_heap(timers_.begin(), timers_.end(), Later<Timer>);
    timers_.pop_back();
    if (timer.kind == TimerKind::kDeviceLost) {
      if (!device_lost_) LoseDevice();
      continue;
    }
    if (timer.kind == TimerKind::kWord) {
      if (timer.index != core::kNoLane) WordArrives(timer.index, timer.epoch, timer.keep);
      continue;
    }
    Launch& launch = launches_[timer.index];
    if (launch.generation != timer.epoch) continue;
    switch (timer.kind) {
      case TimerKind::kReady:
        Ready(timer.index);
        break;
      case TimerKind::kGapEnd:
        GapIsOver(timer.index);
        break;
      case TimerKind::kVisible:
        if (launch.dropped) {
          FreeSlot(timer.index);
          break;
        }
        for (int reports = launch.duplicated ? 2 : 1; reports > 0; --reports) {
          visible_[(visible_head_ + visible_count_++) % visible_.size()] = timer.index;
        }
        launch.visible = true;
        break;
      default:
        break;
    }
  }
}

void Engine::NoteCopies() {
  const core::DeviceProfile& profile = capabilities_.profile;
  if (profile.copy_in_slowdown > 0 || profile.copy_out_slowdown > 0) dirty_ = true;
}

void Engine::FireDue() {
  Link::Copy copy;
  while (link_.TakeFinished(now_, copy)) {
    NoteCopies();
    launches_[copy.launch].start_ns = copy.start_ns;
    EndLaunch(copy.launch, core::Outcome::kFinished, 0);
  }
  if (next_due_ns_ > now_) return;
  dirty_ = true;
  // A loop by index: firing may append active pools.
  for (size_t i = 0; i < active_pools_.size(); ++i) {  // NOLINT(modernize-loop-convert)
    if (pools_[active_pools_[i]].due_ns <= now_) PoolIsEmpty(active_pools_[i]);
  }
  for (size_t i = 0; i < active_residencies_.size();) {
    const int32_t index = active_residencies_[i];
    if (residencies_[index].due_ns <= now_) {
      residencies_[index].due_ns = core::kNever;
      ResidencyIsDue(index);
    }
    if (i < active_residencies_.size() && active_residencies_[i] == index) ++i;
  }
  for (size_t i = 0; i < resident_launches_.size();) {
    const int32_t slot = resident_launches_[i];
    const Launch& launch = launches_[slot];
    if (launch.chain != ChainState::kNone && launch.due_ns <= now_) ChainIsDue(slot);
    if (i < resident_launches_.size() && resident_launches_[i] == slot) ++i;
  }
}

void Engine::Update() {
  if (!dirty_) return;
  dirty_ = false;
  PlacePending();
  SetSpeeds();
  dirty_ = false;
}

void Engine::EndLaunch(int32_t slot, core::Outcome outcome, int32_t error_code) {
  Launch& launch = launches_[slot];
  if (launch.start_ns == core::kNever) launch.start_ns = now_;
  launch.end_ns = now_;
  launch.outcome = outcome;
  launch.error_code = error_code;
  // The lane's next launch does not wait for the worker's record or for an event
  // (docs/hardware.md).
  FreeLane(slot);
}

void Engine::FreeLane(int32_t slot) {
  Launch& launch = launches_[slot];
  const core::LaneIndex index =
      launch.form == core::Form::kFused ? launch.stream_lane : launch.lane;
  launch.phase = LaunchPhase::kOver;
  AddTimer(now_ + capabilities_.profile.completion_latency_ns, TimerKind::kVisible, slot,
           launch.generation);
  if (const int32_t other = std::exchange(launch.partner, -1); other != -1) {
    // A fused launch occupies its lane until both parts have ended.
    launches_[other].partner = -1;
    lanes_[index].running = other;
    return;
  }
  Lane& lane = lanes_[index];
  lane.running = -1;
  lane.had_predecessor = true;
  if (lane.blocked_word) {
    lane.blocked_word = false;
    WordArrives(index, lane.blocked_epoch, lane.blocked_keep);
  }
  // The lane's next launch, if any, waits in its hardware queue.
  Dispatch(lane.queue);
  DispatchBehind();
}

size_t Engine::Poll(absl::Span<core::DeviceCompletion> out) {
  size_t count = 0;
  while (count < out.size() && visible_count_ > 0) {
    const int32_t slot = visible_[visible_head_];
    visible_head_ = (visible_head_ + 1) % visible_.size();
    --visible_count_;
    Launch& launch = launches_[slot];
    if (launch.in_segments) lanes_[launch.lane].has_segments = false;
    if (!launch.given_up) {
      out[count++] = {launch.id,     launch.outcome,    launch.start_ns,
                      launch.end_ns, launch.tasks_done, launch.error_code};
      out[count - 1].longest_segment_ns = launch.longest_segment_ns;
    }
    if (launch.duplicated) {
      launch.duplicated = false;
    } else {
      FreeSlot(slot);
    }
  }
  return count;
}

void Engine::Abandon(core::LaneIndex index) {
  if (!HasLane(index)) return;
  Lane& lane = lanes_[index];
  if (lane.abandoned) return;
  lane.abandoned = true;
  lane.blocked_word = false;
  // Remove the lane's waiting launches from the hardware queue, and free the SMs of a hung launch,
  // so that the rest of the device can continue.
  HardwareQueue& fifo = queues_[lane.queue];
  int32_t* link = &fifo.head;
  fifo.tail = -1;
  while (*link != -1) {
    const int32_t command = *link;
    if (command >= 0 && launches_[command].lane == index) {
      *link = NextOf(command);
    } else {
      fifo.tail = command;
      link = &NextOf(command);
    }
  }
  for (size_t i = 0; i < launches_.size(); ++i) {
    Launch& launch = launches_[i];
    const bool on_lane =
        launch.lane == index || (launch.is_second_part && launch.stream_lane == index);
    if (!on_lane || launch.phase == LaunchPhase::kFree) continue;
    launch.given_up = launch.lane == index;
    if (launch.visible) continue;
    const int32_t slot = static_cast<int32_t>(i);
    RemovePending(slot);
    link_.Remove(now_, slot);
    const bool tasks = launch.chain == ChainState::kNone && launch.residencies > 0;
    if (tasks) pools_[launch.pool].residencies -= launch.residencies;
    FreeCells(slot);
    if (const int32_t other = std::exchange(launch.partner, -1); other != -1) {
      launches_[other].partner = -1;
    } else if (launch.is_second_part && launch.phase == LaunchPhase::kResident) {
      // The first part has ended, and its lane waited for this part.
      Lane& stream_lane = lanes_[launch.stream_lane];
      stream_lane.running = -1;
      Dispatch(stream_lane.queue);
    }
    FreeSlot(slot);
  }
  lane.running = -1;
  dirty_ = true;
  Dispatch(lane.queue);
  DispatchBehind();
  Update();
}

absl::Status Engine::Replace(core::LaneIndex index, const core::LaneSpec& spec) {
  if (!HasLane(index) || !lanes_[index].abandoned) {
    return absl::FailedPreconditionError(
        absl::StrCat("Lane ", index, " was not abandoned, and only such a lane is replaced."));
  }
  absl::StatusOr<Lane> lane = MakeLane(spec);
  if (!lane.ok()) return lane.status();
  lane->replaced = true;
  lanes_[index] = *lane;
  return absl::OkStatus();
}

// The context is unusable: nothing continues, and everything in flight ends with an error.
void Engine::LoseDevice() {
  device_lost_ = true;
  timers_.clear();
  link_.Clear();
  pending_.clear();
  while (!active_residencies_.empty()) RemoveResidency(active_residencies_.back());
  for (const int32_t pool : active_pools_) {
    pools_[pool].active = false;
    pools_[pool].residencies = 0;
  }
  active_pools_.clear();
  for (HardwareQueue& queue : queues_) queue = HardwareQueue();
  for (WaitingWrite& write : writes_) write.lane = -1;
  for (Lane& lane : lanes_) lane.running = -1;
  for (size_t i = 0; i < launches_.size(); ++i) {
    Launch& launch = launches_[i];
    if (launch.phase == LaunchPhase::kFree || launch.visible) continue;
    if (launch.phase != LaunchPhase::kOver) {
      if (launch.start_ns == core::kNever) launch.start_ns = now_;
      launch.end_ns = now_;
      launch.outcome = core::Outcome::kDeviceLost;
      launch.error_code = kFaultNativeCode;
      launch.phase = LaunchPhase::kOver;
    }
    launch.pending = false;
    AddTimer(now_ + capabilities_.profile.completion_latency_ns, TimerKind::kVisible,
             static_cast<int32_t>(i), launch.generation);
  }
  busy_sms_ = 0;
  next_due_ns_ = core::kNever;
  dirty_ = false;
}

}  // namespace gpushare::sim
