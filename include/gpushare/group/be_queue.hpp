// A best-effort (BE) app on all GPUs of a group. Its items wait in one queue in front of the
// runtimes and go where they are predicted to end first (docs/several-gpus.md).
//
//   auto queue = group->CreateBeQueue(app_options);
//   gpushare::BeWork work;
//   work.kernel = kernel;                     // of Group::RegisterKernel
//   work.done = ...;                          // how the item ended, exactly once
//   gpushare::Status status = queue->Submit(work);
//
// Threads: any, also inside callbacks. Submits never wait and allocate nothing.
#ifndef GPUSHARE_GROUP_BE_QUEUE_HPP_
#define GPUSHARE_GROUP_BE_QUEUE_HPP_

#include <array>
#include <cstdint>
#include <gpushare/gpushare.hpp>
#include <gpushare/group/kernel.hpp>
#include <gpushare/group/state.hpp>
#include <mutex>
#include <string>
#include <vector>

namespace gpushare {

// One BE item: a task that any GPU with the kernel may take.
struct BeWork {
  const GroupKernel* kernel = nullptr;  // must be given
  TaskOptions task;                     // as in LcWork; what it points to lives until it is done
  GroupPrepare prepare = nullptr;       // may be null; runs when a GPU takes the item
  void* prepare_user = nullptr;
  GroupDone done = nullptr;  // may be null
  void* done_user = nullptr;
  int64_t expected_ns = 0;  // solo duration, at most 1 h; 0: that of the kernel
  // It may start over on another GPU where its own was lost.
  bool repeatable = false;
};

struct BeQueueOptions {
  int32_t window = 2;        // items that a GPU has in hand, at most; 1 to 64
  int32_t items_max = 4096;  // in all; 1 to 65536
};

namespace group_detail {

class BeQueueCore final : public Waiting {
 public:
  BeQueueCore(GroupState* state, const BeQueueOptions& options)
      : state_(*state), options_(options), slots_(static_cast<size_t>(options.items_max)) {
    for (size_t i = slots_.size(); i-- > 0;) {
      slots_[i].core = this;
      slots_[i].next = free_;
      free_ = &slots_[i];
    }
  }

  AppOnAll& apps() { return apps_; }

  Status Submit(const BeWork& work) {
    Status status = CheckTask(work.task, work.kernel, work.expected_ns);
    if (!status.ok()) return status;
    bool on_any = false;
    for (int gpu = 0; gpu < state_.gpus; ++gpu) on_any |= IsUsable(*work.kernel, gpu);
    if (!on_any) {
      return Status(GPUSHARE_UNAVAILABLE, "No GPU that has the kernel is left: all are lost.");
    }
    {
      const std::lock_guard<std::mutex> lock(state_.mutex);
      if (state_.closing) {
        return Status(GPUSHARE_FAILED_PRECONDITION, "The group is shut down.");
      }
      if (free_ == nullptr) {
        return Status(GPUSHARE_RESOURCE_EXHAUSTED, "The queue has " +
                                                       std::to_string(slots_.size()) +
                                                       " items, which is its limit (items_max).");
      }
      Slot* slot = free_;
      free_ = slot->next;
      slot->work = work;
      slot->gpu = kNone;
      PushBack(slot);
      ++state_.pending;
    }
    Pump();
    return Status();
  }

  // On a thread that pumps already, further up, it leaves the work to that call: a `done` that
  // submits does not nest.
  void Pump() override {
    if (Pumping::Has(this)) return;
    const Pumping pumping(this);
    while (true) {
      Slot* slot = nullptr;
      const Action action = Next(&slot);
      if (action == Action::kNothing) return;
      if (action == Action::kEnd) {
        const bool closing = state_.closing;
        Finish(*slot, kNone,
               EndedWithout(closing ? GPUSHARE_VERDICT_SHUTDOWN : GPUSHARE_VERDICT_DEVICE_LOST));
        continue;
      }
      if (!HandOver(*slot)) return;
    }
  }

 private:
  static constexpr int kNone = -1;
  // Items that are looked at behind one that has no room, so that an item of one GPU does not hold
  // those of the others.
  static constexpr int kLookAhead = 64;

  struct Slot {
    BeQueueCore* core = nullptr;
    Slot* next = nullptr;
    BeWork work;
    int gpu = kNone;
    int64_t solo_ns = 0;
    int64_t block_tasks = 0;  // as prepared
    int64_t leave_ns = 0;     // how long it may stay when it is evicted
    bool alone = false;       // its GPU had no other item in hand
  };
  enum class Action { kNothing, kHandOver, kEnd };

  // The queues that this thread pumps.
  class Pumping {
   public:
    explicit Pumping(const BeQueueCore* core) : core_(core), outer_(innermost_) {
      innermost_ = this;
    }
    Pumping(const Pumping&) = delete;
    Pumping& operator=(const Pumping&) = delete;
    ~Pumping() { innermost_ = outer_; }

    static bool Has(const BeQueueCore* core) {
      for (const Pumping* each = innermost_; each != nullptr; each = each->outer_) {
        if (each->core_ == core) return true;
      }
      return false;
    }

   private:
    static inline thread_local const Pumping* innermost_ = nullptr;
    const BeQueueCore* core_;
    const Pumping* outer_;
  };

  bool IsUsable(const GroupKernel& kernel, int gpu) const {
    return !state_.IsLost(gpu) && kernel.IsOn(gpu);
  }

  // The queue of waiting items; under the lock.
  void PushBack(Slot* slot) {
    slot->next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = slot;
    last_ = slot;
  }
  void PushFront(Slot* slot) {
    slot->next = first_;
    first_ = slot;
    if (last_ == nullptr) last_ = slot;
  }
  void Remove(Slot* before, Slot* slot) {
    (before == nullptr ? first_ : before->next) = slot->next;
    if (last_ == slot) last_ = before;
  }

  // Whether a GPU may get the item now: it is there, has room in its window and is not held for a
  // step. Under the lock.
  bool HasRoom(const BeWork& work, int gpu) const {
    if (in_hand_[Index(gpu)] >= options_.window) return false;
    const int64_t hold_ns = state_.be_leaves_within_ns[Index(gpu)];
    if (hold_ns == kNever) return true;
    return hold_ns > 0 && work.kernel->LeavesWithinNs(gpu, SoloNs(work, gpu)) <= hold_ns;
  }

  int32_t InHand(int gpu) const { return state_.be[Index(gpu)].in_hand(); }

  // Takes the first item that some GPU has room for, and counts it on the GPU that is predicted to
  // end it first; or one that no GPU can run any more.
  Action Next(Slot** out_slot) {
    std::array<int64_t, kGroupGpusMax> now_ns{};
    for (int gpu = 0; gpu < state_.gpus; ++gpu) now_ns[Index(gpu)] = state_.On(gpu).NowNs();
    const std::lock_guard<std::mutex> lock(state_.mutex);
    Slot* before = nullptr;
    int looked = 0;
    for (Slot* slot = first_; slot != nullptr && looked < kLookAhead;
         before = slot, slot = slot->next, ++looked) {
      bool usable = false;
      int best = kNone;
      double best_ns = 0;
      for (int gpu = 0; gpu < state_.gpus && !state_.closing; ++gpu) {
        if (!IsUsable(*slot->work.kernel, gpu)) continue;
        usable = true;
        if (!HasRoom(slot->work, gpu)) continue;
        const int64_t at_ns = now_ns[Index(gpu)];
        const double end_ns = state_.be[Index(gpu)].UntilEndNs(
            at_ns, SoloNs(slot->work, gpu), state_.lc[Index(gpu)].ShareAt(at_ns));
        if (best != kNone &&
            (end_ns > best_ns || (end_ns == best_ns && InHand(gpu) >= InHand(best)))) {
          continue;
        }
        best = gpu;
        best_ns = end_ns;
      }
      if (usable && best == kNone) continue;
      Remove(before, slot);
      *out_slot = slot;
      if (!usable) return Action::kEnd;
      slot->gpu = best;
      slot->solo_ns = SoloNs(slot->work, best);
      slot->leave_ns = slot->work.kernel->LeavesWithinNs(best, slot->solo_ns);
      state_.be[Index(best)].Begin(now_ns[Index(best)], slot->solo_ns, slot->leave_ns);
      slot->alone = in_hand_[Index(best)]++ == 0;
      return Action::kHandOver;
    }
    return Action::kNothing;
  }

  // Submits the item to its GPU. False: the GPU has no slot for it, and the end of an item there
  // pumps again. Where all of these have ended meanwhile, it is tried again at once.
  bool HandOver(Slot& slot) {
    const int gpu = slot.gpu;
    TaskOptions task;
    Status status = PrepareTask(slot, &BeQueueCore::OnDone, &task);
    if (status.ok()) {
      status =
          Status::From(gpushare_submit_be(apps_.queues[Index(gpu)].front().get(), &task, nullptr));
      if (status.ok()) return true;  // the slot may be another item's by now
    }
    const bool is_lost = state_.TellsLoss(gpu, status.code());
    const bool is_full = status.code() == GPUSHARE_RESOURCE_EXHAUSTED;
    const int64_t now_ns = state_.On(gpu).NowNs();
    gpushare_verdict verdict = GPUSHARE_VERDICT_FAILED;
    {
      const std::lock_guard<std::mutex> lock(state_.mutex);
      state_.be[Index(gpu)].End(now_ns, slot.solo_ns, slot.leave_ns, 0);
      --in_hand_[Index(gpu)];
      if (state_.closing) verdict = GPUSHARE_VERDICT_SHUTDOWN;
      const bool has_others = in_hand_[Index(gpu)] > 0;
      if (!state_.closing && (is_lost || (is_full && (has_others || !slot.alone)))) {
        PushFront(&slot);
        return is_lost || !has_others;
      }
    }
    Finish(slot, gpu, EndedWithout(verdict));
    return true;
  }

  static void OnDone(void* user, const gpushare_completion_record* record) {
    const InCallback inside;
    Slot& slot = *static_cast<Slot*>(user);
    slot.core->Done(slot, *record);
  }

  void Done(Slot& slot, const gpushare_completion_record& record) {
    const int gpu = slot.gpu;
    slot.work.kernel->Learn(gpu, record, slot.block_tasks);
    const bool ok = record.verdict == GPUSHARE_VERDICT_OK;
    const bool is_lost = record.verdict == GPUSHARE_VERDICT_DEVICE_LOST;
    if (is_lost) state_.MarkLost(gpu);
    bool again = false;
    {
      const std::lock_guard<std::mutex> lock(state_.mutex);
      state_.be[Index(gpu)].End(record.complete_ns, slot.solo_ns, slot.leave_ns,
                                ok ? slot.solo_ns : 0);
      --in_hand_[Index(gpu)];
      again = is_lost && slot.work.repeatable && !state_.closing;
      if (again) PushFront(&slot);
    }
    if (!again) Finish(slot, gpu, record);
    Pump();
  }

  void Finish(Slot& slot, int gpu, const gpushare_completion_record& record) {
    const GroupDone done = slot.work.done;
    void* user = slot.work.done_user;
    {
      const std::lock_guard<std::mutex> lock(state_.mutex);
      slot.next = free_;
      free_ = &slot;
    }
    CallDone(done, user, gpu, record);
    const std::lock_guard<std::mutex> lock(state_.mutex);
    --state_.pending;
    state_.changed.notify_all();
  }

  GroupState& state_;
  const BeQueueOptions options_;
  AppOnAll apps_;
  // The rest is guarded by the group's lock; a slot in hand belongs to the thread that submits it.
  std::vector<Slot> slots_;
  Slot* free_ = nullptr;
  Slot* first_ = nullptr;  // items that wait
  Slot* last_ = nullptr;
  std::array<int32_t, kGroupGpusMax> in_hand_{};
};

}  // namespace group_detail

// A handle; the group owns what is behind it, and must live longer.
class GroupBeQueue {
 public:
  explicit GroupBeQueue(group_detail::BeQueueCore* core) : core_(core) {}

  // Errors: INVALID_ARGUMENT; RESOURCE_EXHAUSTED items_max; UNAVAILABLE every GPU with the kernel
  // is lost; FAILED_PRECONDITION shut down. Then nothing was accepted and `done` does not run. An
  // item that a runtime refuses later ends FAILED: a `done` that submits again stops there. One
  // that finds all slots of its app taken waits for the next end of an item on that GPU.
  Status Submit(const BeWork& work) const { return core_->Submit(work); }
  // The app on one GPU.
  const App& AppOn(int gpu) const { return core_->apps().apps[static_cast<size_t>(gpu)]; }

 private:
  group_detail::BeQueueCore* core_;
};

}  // namespace gpushare

#endif  // GPUSHARE_GROUP_BE_QUEUE_HPP_
