// Steps that start on all of their GPUs or on none: tensor-parallel graphs, whose collectives spin
// until every part runs (docs/several-gpus.md).
//
//   auto steps = group->CreateSteps(app_options, {{0, 1}});
//   auto step = steps->Begin({});             // reserves a region on each GPU, or nothing
//   ... enqueue on step->stream(0) and step->stream(1), as one ncclGroupStart / ncclGroupEnd ...
//   step->End();                              // launched on all; again if RESOURCE_EXHAUSTED
//   step->Wait(deadline_ns);
//
// Threads: any, not in a callback. Between Begin and End the group has one step.
#ifndef GPUSHARE_GROUP_STEPS_HPP_
#define GPUSHARE_GROUP_STEPS_HPP_

#include <algorithm>
#include <array>
#include <cstdint>
#include <gpushare/gpushare.hpp>
#include <gpushare/group/state.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpushare {

struct StepsOptions {
  std::vector<int> gpus;  // ascending; empty: all
  // BE items that the group hands to these GPUs while a step is in flight leave within this time,
  // which is less than 1 h; 0: none is handed over.
  int64_t be_beside_ns = 0;
};

// As in gpushare_region_options.
struct StepOptions {
  int64_t bound_ns = 0;
  int64_t arrival_ns = 0;
  double input_size = 0;
  int64_t next_within_ns = 0;
  int64_t deadline_ns = 0;  // until when Begin tries, on the clock of the group; 0: once
};

namespace group_detail {

// Steps of one GroupSteps in flight, most: an engine launches one ahead.
inline constexpr int kStepsInFlightMax = 8;
// How long a refused reservation pauses before it is tried again.
inline constexpr int64_t kStepRetryNs = 20'000;
// How long a step that nobody holds any more is tried to end.
inline constexpr int64_t kStepEndNs = 100'000'000;

class StepsCore;

// A call of Begin that waits for the turn.
struct StepWaiter {
  StepsCore* core = nullptr;
  StepWaiter* next = nullptr;
};

// The one turn of a group: who may begin a step. Guarded by the group's lock.
struct StepTurn {
  StepWaiter* first = nullptr;  // in the order in which they came
  StepsCore* owner = nullptr;   // whose steps are open or in flight
  bool open = false;            // one is between Begin and End, or tries to begin
  int32_t in_flight = 0;
};

struct StepSlot;

// A step on one GPU.
struct StepPart {
  StepsCore* core = nullptr;
  StepSlot* slot = nullptr;
  int gpu = 0;
  gpushare_verdict verdict = GPUSHARE_VERDICT_PENDING;
};

// A step. In use until every part has ended and nobody holds it.
struct StepSlot {
  bool in_use = false;
  bool held = false;  // a GroupStep refers to it
  bool failed = false;
  int32_t parts_left = 0;
  std::array<StepPart, kGroupGpusMax> parts;
};

class StepsCore {
 public:
  StepsCore(GroupState* state, StepTurn* turn, StepsOptions options)
      : state_(*state), turn_(*turn), options_(std::move(options)) {}

  AppOnAll& apps() { return apps_; }
  GroupState& state() { return state_; }
  const StepsOptions& options() const { return options_; }

  // A step that has its regions. Opened through GroupSteps::Begin.
  struct Opened {
    StepSlot* slot = nullptr;
    // In the order of options().gpus; empty once every part has ended.
    std::vector<std::optional<Region>> regions;  // not ended
    std::vector<std::optional<Ticket>> tickets;  // ended, and their completion is not watched yet
  };

  Result<Opened> Begin(const StepOptions& step) {
    Status status = InCallback::Refuse("GroupSteps::Begin");
    Opened opened;  // allocated before the turn is taken
    opened.regions.resize(options_.gpus.size());
    opened.tickets.resize(options_.gpus.size());
    // The latency counts from here, however often it is tried.
    StepOptions stamped = step;
    if (stamped.arrival_ns == 0 && apps_.app_class == GPUSHARE_CLASS_LATENCY_CRITICAL) {
      stamped.arrival_ns = state_.On(0).NowNs();
    }
    if (status.ok()) status = TakeTurn(step.deadline_ns);
    if (!status.ok()) return status;
    size_t first = 0;
    while (true) {
      bool again = false;
      status = Reserve(stamped, &first, &opened.regions, &again);
      if (status.ok()) break;
      if (!again || state_.On(0).NowNs() >= step.deadline_ns) {
        GiveTurnBack();
        return status;
      }
      Pause();
    }
    const std::lock_guard<std::mutex> lock(state_.mutex);
    for (StepSlot& slot : slots_) {
      if (slot.in_use) continue;
      slot = StepSlot();
      slot.in_use = slot.held = true;
      slot.parts_left = static_cast<int32_t>(options_.gpus.size());
      for (const int gpu : options_.gpus) {
        slot.parts[Index(gpu)] = {this, &slot, gpu, GPUSHARE_VERDICT_PENDING};
      }
      opened.slot = &slot;
      break;
    }
    return opened;  // TakeTurn has made sure of a slot
  }

  // Ends every region. What was enqueued counts as launched. A part for whose end a runtime has no
  // room now (RESOURCE_EXHAUSTED) stays open, and so does the step, until a later call ends it.
  Status End(Opened& opened) {
    Status first;
    bool stays_open = false;
    for (size_t i = 0; i < opened.regions.size(); ++i) {
      Status status = EndPart(opened, i);
      if (status.ok()) continue;
      stays_open |= status.code() == GPUSHARE_RESOURCE_EXHAUSTED;
      if (first.ok() || status.code() == GPUSHARE_RESOURCE_EXHAUSTED) first = std::move(status);
    }
    if (!stays_open) Close(opened);
    return first;
  }

  // Ends a step that nobody holds any more. A part that has not ended in time counts as failed, and
  // its GPU as lost to the step.
  void EndAtLast(Opened& opened) {
    const int64_t until_ns = state_.On(0).NowNs() + kStepEndNs;
    while (!opened.regions.empty()) {
      static_cast<void>(End(opened));
      if (opened.regions.empty()) return;
      if (InCallback::Refuse("").ok() && state_.On(0).NowNs() < until_ns) {
        Pause();
        continue;
      }
      for (size_t i = 0; i < opened.regions.size(); ++i) {
        if (!opened.regions[i].has_value() && !opened.tickets[i].has_value()) continue;
        opened.regions[i].reset();
        PartDone(opened.slot->parts[Index(options_.gpus[i])], GPUSHARE_VERDICT_FAILED);
      }
      Close(opened);
    }
  }

  void Drop(StepSlot& slot) {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    slot.held = false;
    if (slot.parts_left == 0) slot.in_use = false;
  }

 private:
  bool HasSlot() const {
    return std::any_of(slots_.begin(), slots_.end(),
                       [](const StepSlot& slot) { return !slot.in_use; });
  }
  // Whether the waiter may take the turn. None overtakes one that came before: otherwise steps of
  // one owner, of which the next begins before the last has ended, would keep others out for ever.
  // Under the lock.
  bool HasTurn(const StepWaiter& waiter) const {
    const bool mine = turn_.in_flight == 0 || turn_.owner == this;
    if (!mine || turn_.open || !HasSlot()) return false;
    for (const StepWaiter* each = turn_.first; each != &waiter; each = each->next) {
      if (each->core->HasSlot()) return false;
    }
    return true;
  }
  void Queue(StepWaiter* waiter) {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    StepWaiter** at = &turn_.first;
    while (*at != nullptr) at = &(*at)->next;
    *at = waiter;
  }
  void Leave(StepWaiter* waiter) {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    StepWaiter** at = &turn_.first;
    while (*at != waiter) at = &(*at)->next;
    *at = waiter->next;
    state_.changed.notify_all();
  }

  // Waits until no other step is open, and none of other GroupSteps is in flight or waits for
  // longer, and takes the turn.
  Status TakeTurn(int64_t deadline_ns) {
    StepWaiter waiter{this};
    Queue(&waiter);
    bool taken = false;
    const auto take = [this, &taken, &waiter] {
      if (state_.closing) return true;
      taken = HasTurn(waiter);
      if (taken) Enter();
      return taken;
    };
    const bool in_time = state_.WaitFor(deadline_ns, take);
    Leave(&waiter);
    if (!in_time) {
      return Status(GPUSHARE_UNAVAILABLE,
                    "Another step has the turn or waits for it, or this app has " +
                        std::to_string(kStepsInFlightMax) +
                        " steps in flight. Nothing was started on any GPU; begin it again later.");
    }
    if (taken) return Status();
    return Status(GPUSHARE_FAILED_PRECONDITION, "The group is shut down.");
  }

  // Takes the turn. No BE item goes to the step's GPUs from now on that would stay too long. Under
  // the lock.
  void Enter() {
    turn_.owner = this;
    turn_.open = true;
    ++turn_.in_flight;
    ++state_.pending;
    for (const int gpu : options_.gpus) {
      state_.be_leaves_within_ns[Index(gpu)] = options_.be_beside_ns;
    }
  }

  // Of a step that did not start.
  void GiveTurnBack() {
    {
      const std::lock_guard<std::mutex> lock(state_.mutex);
      turn_.open = false;
    }
    LeaveFlight();
  }

  // A step has ended or did not start: BE work may come back.
  void LeaveFlight() {
    {
      const std::lock_guard<std::mutex> lock(state_.mutex);
      --turn_.in_flight;
      --state_.pending;
      if (turn_.in_flight == 0) {
        for (const int gpu : options_.gpus) state_.be_leaves_within_ns[Index(gpu)] = kNever;
      }
      state_.changed.notify_all();
    }
    state_.PumpAll();
  }

  // Begins a region on each GPU: on the *first one, by its index, then on the others in ascending
  // order. If one refuses, those so far are given back, and it is *first: the next try begins with
  // it, so that a wait for one GPU disturbs no other. *again: a later try may succeed.
  Status Reserve(const StepOptions& step, size_t* first,
                 std::vector<std::optional<Region>>* regions, bool* again) {
    RegionOptions region;
    region.bound_ns = step.bound_ns;
    region.arrival_ns = step.arrival_ns;
    region.input_size = step.input_size;
    region.next_within_ns = step.next_within_ns;
    Status status = ReserveOn(region, *first, regions, again);
    for (size_t i = 0; i < regions->size() && status.ok(); ++i) {
      if ((*regions)[i].has_value()) continue;
      status = ReserveOn(region, i, regions, again);
      if (!status.ok()) *first = i;
    }
    if (status.ok()) return status;
    // A region gives itself back, empty, in its destructor.
    for (std::optional<Region>& begun : *regions) begun.reset();
    return status;
  }

  Status ReserveOn(const RegionOptions& region, size_t index,
                   std::vector<std::optional<Region>>* regions, bool* again) {
    const int gpu = options_.gpus[index];
    Status status(GPUSHARE_UNAVAILABLE, "It is lost.");
    if (!state_.IsLost(gpu)) {
      RegionOptions there = region;
      // No clock of a runtime takes an arrival that is still to come.
      if (there.arrival_ns != 0)
        there.arrival_ns = std::min(there.arrival_ns, state_.On(gpu).NowNs());
      Result<Region> begun = apps_.queues[Index(gpu)].front().BeginRegion(there);
      if (begun.ok()) {
        (*regions)[index].emplace(std::move(begun).value());
        return Status();
      }
      status = begun.status();
      *again = status.code() == GPUSHARE_UNAVAILABLE && !state_.TellsLoss(gpu, status.code());
    }
    return Status(status.code(), "GPU " + std::to_string(gpu) + " refuses the step: " +
                                     status.message() + " Nothing was started on any GPU.");
  }

  void Pause() {
    static_cast<void>(state_.WaitFor(state_.On(0).NowNs() + kStepRetryNs, [] { return false; }));
  }

  // Ends the region, then watches its completion, each once. RESOURCE_EXHAUSTED: one of them is
  // still to be done.
  Status EndPart(Opened& opened, size_t index) {
    StepPart& part = opened.slot->parts[Index(options_.gpus[index])];
    std::optional<Region>& region = opened.regions[index];
    std::optional<Ticket>& ticket = opened.tickets[index];
    Status status;
    if (region.has_value()) {
      Result<Ticket> ended = region->End();
      status = ended.status();
      if (status.code() == GPUSHARE_RESOURCE_EXHAUSTED) return status;
      region.reset();
      if (status.ok()) ticket.emplace(std::move(ended).value());
    }
    if (ticket.has_value()) {
      status = Status::From(gpushare_ticket_set_callback(state_.On(part.gpu).get(), ticket->get(),
                                                         &StepsCore::OnPart, &part));
      if (status.code() == GPUSHARE_RESOURCE_EXHAUSTED) return status;
      ticket.reset();
    }
    // A runtime that knows the region no more has ended it, such as in a shutdown.
    if (!status.ok()) PartDone(part, GPUSHARE_VERDICT_FAILED);
    return status;
  }

  // Gives the turn to the next step: this one has ended everywhere.
  void Close(Opened& opened) {
    opened.regions.clear();
    opened.tickets.clear();
    const std::lock_guard<std::mutex> lock(state_.mutex);
    turn_.open = false;
    state_.changed.notify_all();
  }

  static void OnPart(void* user, const gpushare_completion_record* record) {
    const InCallback inside;
    StepPart& part = *static_cast<StepPart*>(user);
    part.core->PartDone(part, record->verdict);
  }

  void PartDone(StepPart& part, gpushare_verdict verdict) {
    if (verdict == GPUSHARE_VERDICT_DEVICE_LOST) state_.MarkLost(part.gpu);
    bool all = false;
    {
      const std::lock_guard<std::mutex> lock(state_.mutex);
      StepSlot& slot = *part.slot;
      part.verdict = verdict;
      slot.failed |= verdict != GPUSHARE_VERDICT_OK;
      all = --slot.parts_left == 0;
      if (all && !slot.held) slot.in_use = false;
      state_.changed.notify_all();
    }
    if (all) LeaveFlight();
  }

  GroupState& state_;
  StepTurn& turn_;
  const StepsOptions options_;
  AppOnAll apps_;
  std::array<StepSlot, kStepsInFlightMax> slots_;  // guarded by the group's lock
};

}  // namespace group_detail

// One step. Enqueue on each stream, then End. The destructor ends a step that is open: what was
// enqueued runs, and without any of it the reservations are given back. Must not outlive its group.
class GroupStep {
 public:
  GroupStep(group_detail::StepsCore* core, group_detail::StepsCore::Opened opened)
      : core_(core), opened_(std::move(opened)) {}
  GroupStep(GroupStep&& other) noexcept
      : core_(std::exchange(other.core_, nullptr)), opened_(std::move(other.opened_)) {}
  GroupStep& operator=(GroupStep&&) = delete;
  ~GroupStep() {
    if (core_ == nullptr) return;
    core_->EndAtLast(opened_);
    core_->Drop(*opened_.slot);
  }

  // The cudaStream_t of a GPU of the step; null on simulated devices, of another GPU and after End.
  void* stream(int gpu) const {
    const std::vector<int>& gpus = core_->options().gpus;
    for (size_t i = 0; i < opened_.regions.size(); ++i) {
      if (gpus[i] == gpu && opened_.regions[i].has_value()) return opened_.regions[i]->stream();
    }
    return nullptr;
  }
  // RESOURCE_EXHAUSTED: a runtime has too many launches in flight for the end of a part; end the
  // step again, later. A call after any other result changes nothing.
  Status End() { return opened_.regions.empty() ? Status() : core_->End(opened_); }
  // Waits until every part has ended, or one has failed: then the others may wait for it for ever,
  // and the caller aborts its communicator. OK: every part ended with VERDICT_OK. ABORTED: one did
  // not. DEADLINE_EXCEEDED. Not in a callback.
  Status Wait(int64_t deadline_ns) {
    Status refusal = group_detail::InCallback::Refuse("GroupStep::Wait");
    if (!refusal.ok()) return refusal;
    group_detail::StepSlot& slot = *opened_.slot;
    if (!core_->state().WaitFor(deadline_ns,
                                [&slot] { return slot.parts_left == 0 || slot.failed; })) {
      return Status(GPUSHARE_DEADLINE_EXCEEDED, "The step is still in flight at the deadline.");
    }
    const std::lock_guard<std::mutex> lock(core_->state().mutex);
    if (!slot.failed) return Status();
    for (const int gpu : core_->options().gpus) {
      const gpushare_verdict verdict = slot.parts[static_cast<size_t>(gpu)].verdict;
      if (verdict == GPUSHARE_VERDICT_OK || verdict == GPUSHARE_VERDICT_PENDING) continue;
      return Status(GPUSHARE_ABORTED, "The step's part on GPU " + std::to_string(gpu) +
                                          " ended with " + gpushare_verdict_name(verdict) + ".");
    }
    return Status(GPUSHARE_INTERNAL, "A part of the step failed without a verdict.");
  }

 private:
  group_detail::StepsCore* core_;
  group_detail::StepsCore::Opened opened_;
};

// A handle; the group owns what is behind it, and must live longer.
class GroupSteps {
 public:
  explicit GroupSteps(group_detail::StepsCore* core) : core_(core) {}

  // Begins a step on all of the GPUs or on none. Errors: UNAVAILABLE a GPU may not start it now, is
  // lost, or another step has the turn; others of gpushare_region_begin. After any error nothing
  // was started on any GPU. Blocks until deadline_ns at most; not in a callback.
  Result<GroupStep> Begin(const StepOptions& step) const {
    Result<group_detail::StepsCore::Opened> opened = core_->Begin(step);
    if (!opened.ok()) return opened.status();
    return GroupStep(core_, std::move(opened).value());
  }
  // The app on one GPU.
  const App& AppOn(int gpu) const { return core_->apps().apps[static_cast<size_t>(gpu)]; }

 private:
  group_detail::StepsCore* core_;
};

}  // namespace gpushare

#endif  // GPUSHARE_GROUP_STEPS_HPP_
