// A latency-critical (LC) app on all GPUs of a group, with one queue. A query goes at once to the
// GPU with the least predicted wait (docs/several-gpus.md).
//
//   auto queue = group->CreateLcQueue(app_options);
//   gpushare::LcWork work;
//   work.kernel = kernel;                     // of Group::RegisterKernel
//   work.done = ...;                          // how the query ended, exactly once
//   gpushare::Status status = queue->Submit(work);
//
// Threads: any, also inside callbacks. Submits never wait and allocate nothing.
#ifndef GPUSHARE_GROUP_LC_QUEUE_HPP_
#define GPUSHARE_GROUP_LC_QUEUE_HPP_

#include <algorithm>
#include <array>
#include <cstdint>
#include <gpushare/gpushare.hpp>
#include <gpushare/group/kernel.hpp>
#include <gpushare/group/state.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace gpushare {

// One query of one task. Its duration is predicted for task.block_tasks, before `prepare` runs.
struct LcWork {
  const GroupKernel* kernel = nullptr;  // must be given
  TaskOptions task;                // without a kernel, a callback, a query and tickets to wait for
  GroupPrepare prepare = nullptr;  // may be null
  void* prepare_user = nullptr;
  GroupDone done = nullptr;  // may be null
  void* done_user = nullptr;
  int64_t expected_ns = 0;  // solo duration, at most 1 h; 0: that of the kernel
  // It may run again on another GPU where its own was lost. What `task` points to lives until the
  // query is done.
  bool repeatable = false;
  // Queries of one client run in the order of their submission, by one thread at a time. 0: none.
  int32_t client = 0;
};

struct LcQueueOptions {
  int32_t queues_per_gpu = 4;  // runtime queues: what runs at once on a GPU; 1 to 64
  int32_t clients_max = 64;    // clients are 1 to clients_max; at most 1023
};

namespace group_detail {

class LcQueueCore {
 public:
  LcQueueCore(GroupState* state, int32_t queries_max, const LcQueueOptions& options)
      : state_(*state),
        options_(options),
        slots_(static_cast<size_t>(queries_max)),
        clients_(static_cast<size_t>(options.clients_max) + 1) {
    for (size_t i = slots_.size(); i-- > 0;) {
      slots_[i].core = this;
      slots_[i].next_free = free_;
      free_ = &slots_[i];
    }
  }

  AppOnAll& apps() { return apps_; }

  Status Submit(const LcWork& work) {
    Status status = CheckTask(work.task, work.kernel, work.expected_ns);
    if (!status.ok()) return status;
    if (work.client < 0 || work.client > options_.clients_max) {
      return Status(GPUSHARE_INVALID_ARGUMENT,
                    "The query is of client " + std::to_string(work.client) +
                        ", and clients are 0 to " + std::to_string(options_.clients_max) + ".");
    }
    Slot* slot = nullptr;
    int bound_to = kAny;
    status = Take(work, &slot, &bound_to);
    if (!status.ok()) return status;
    status = Send(*slot, bound_to);
    if (status.ok()) return status;
    const int32_t client = Free(*slot);
    Ended();
    MoveClient(client);
    return status;
  }

 private:
  static constexpr int kAny = -1;

  struct Slot {
    LcQueueCore* core = nullptr;
    Slot* next_free = nullptr;
    bool in_use = false;
    bool back = false;  // its GPU was lost, and it waits to be sent again
    LcWork work;
    int64_t sequence = 0;
    int gpu = kAny;
    int64_t solo_ns = 0;
    int64_t block_tasks = 0;  // as prepared
    int64_t due_ns = 0;       // its predicted end
  };
  struct Client {
    int gpu = kAny;  // of its queries in hand
    int32_t in_hand = 0;
    int32_t back = 0;      // of these: waiting to be sent again
    bool sending = false;  // a thread sends them
  };
  // What was read of the GPUs before the lock was taken.
  struct Reading {
    std::array<int64_t, kGroupGpusMax> now_ns{};
    std::array<int64_t, kGroupGpusMax> room_ns{};
    std::array<bool, kGroupGpusMax> usable{};
  };

  Client& ClientOf(int32_t client) { return clients_[static_cast<size_t>(client)]; }

  static Status Moving(int32_t client) {
    return Status(GPUSHARE_UNAVAILABLE, "Queries of client " + std::to_string(client) +
                                            " move from a GPU that is lost. Submit again later.");
  }

  // Takes a slot. *bound_to: the GPU that the client's order binds it to.
  Status Take(const LcWork& work, Slot** out_slot, int* bound_to) {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    if (state_.closing) {
      return Status(GPUSHARE_FAILED_PRECONDITION, "The group is shut down.");
    }
    Client& client = ClientOf(work.client);
    if (work.client != 0 && client.in_hand > 0) {
      const bool is_lost = client.gpu != kAny && state_.IsLost(client.gpu);
      if (client.back > 0 || client.sending || is_lost) return Moving(work.client);
      *bound_to = client.gpu;
    }
    if (free_ == nullptr) {
      return Status(GPUSHARE_RESOURCE_EXHAUSTED,
                    "The queue has " + std::to_string(slots_.size()) +
                        " queries in hand, which is its limit (tasks_max of its app).");
    }
    Slot* slot = free_;
    free_ = slot->next_free;
    slot->in_use = true;
    slot->back = false;
    slot->work = work;
    slot->sequence = ++sequence_;
    slot->gpu = kAny;
    if (work.client != 0) ++client.in_hand;
    ++state_.pending;
    *out_slot = slot;
    return Status();
  }

  // Gives the slot back. Returns its client.
  int32_t Free(Slot& slot) {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    const int32_t client = slot.work.client;
    if (client != 0) {
      --ClientOf(client).in_hand;
      if (slot.back) --ClientOf(client).back;
    }
    slot.in_use = false;
    slot.back = false;
    slot.next_free = free_;
    free_ = &slot;
    return client;
  }

  // The work is no longer pending: its `done` has returned, or its submit fails.
  void Ended() {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    --state_.pending;
    state_.changed.notify_all();
  }

  Reading Read(const GroupKernel& kernel) const {
    Reading reading;
    for (int gpu = 0; gpu < state_.gpus; ++gpu) {
      reading.usable[Index(gpu)] = !state_.IsLost(gpu) && kernel.IsOn(gpu);
      if (!reading.usable[Index(gpu)]) continue;
      reading.now_ns[Index(gpu)] = state_.On(gpu).NowNs();
      int64_t room_ns = 0;
      if (gpushare_region_room(state_.On(gpu).get(), &room_ns) == GPUSHARE_OK) {
        reading.room_ns[Index(gpu)] = room_ns;
      }
    }
    return reading;
  }

  // How long BE work in hand may still delay a query on the GPU: no longer than its items stay, and
  // than the runtime's promises allow. Under the lock.
  int64_t BlockingNs(const Reading& reading, int gpu) const {
    return std::min(reading.room_ns[Index(gpu)], state_.be[Index(gpu)].LeavesWithinNs());
  }

  int32_t InHand(int gpu) const { return state_.lc[Index(gpu)].in_hand(); }

  // Chooses the GPU and counts the query there. False: no GPU is left.
  bool Place(Slot& slot, int bound_to) {
    const GroupKernel& kernel = *slot.work.kernel;
    const Reading reading = Read(kernel);
    const std::lock_guard<std::mutex> lock(state_.mutex);
    int best = kAny;
    double best_ns = 0;
    for (int gpu = 0; gpu < state_.gpus; ++gpu) {
      if (!reading.usable[Index(gpu)] || (bound_to != kAny && gpu != bound_to)) continue;
      const double end_ns =
          static_cast<double>(state_.lc[Index(gpu)].LeftNs(reading.now_ns[Index(gpu)])) +
          static_cast<double>(BlockingNs(reading, gpu)) +
          late_[Index(gpu)].AtNs(reading.now_ns[Index(gpu)]) +
          static_cast<double>(SoloNs(slot.work, gpu));
      // Of two that are equal, as GPUs without a prediction are, the one with fewer queries.
      if (best != kAny &&
          (end_ns > best_ns || (end_ns == best_ns && InHand(gpu) >= InHand(best)))) {
        continue;
      }
      best = gpu;
      best_ns = end_ns;
    }
    if (best == kAny) return false;
    const int64_t now_ns = reading.now_ns[Index(best)];
    slot.gpu = best;
    slot.solo_ns = SoloNs(slot.work, best);
    slot.due_ns = state_.lc[Index(best)].Begin(now_ns, slot.solo_ns) + BlockingNs(reading, best);
    if (slot.work.client != 0) ClientOf(slot.work.client).gpu = best;
    return true;
  }

  // Submits the query to a runtime. A GPU that is lost meanwhile makes it try the next one.
  Status Send(Slot& slot, int bound_to) {
    for (int attempt = 0; attempt <= state_.gpus; ++attempt) {
      if (!Place(slot, bound_to)) break;
      const int gpu = slot.gpu;
      TaskOptions task;
      Status status = PrepareTask(slot, &LcQueueCore::OnDone, &task);
      const std::vector<Queue>& queues = apps_.queues[Index(gpu)];
      const auto key =
          static_cast<size_t>(slot.work.client != 0 ? slot.work.client : slot.sequence);
      const int64_t solo_ns = slot.solo_ns;
      if (status.ok()) {
        status =
            Status::From(gpushare_submit_lc(queues[key % queues.size()].get(), &task, nullptr));
        if (status.ok()) return status;  // the slot may be another query's by now
      }
      const int64_t now_ns = state_.On(gpu).NowNs();
      {
        const std::lock_guard<std::mutex> lock(state_.mutex);
        state_.lc[Index(gpu)].End(now_ns, solo_ns);
      }
      if (!state_.TellsLoss(gpu, status.code())) return status;
    }
    if (bound_to != kAny) return Moving(slot.work.client);
    return Status(GPUSHARE_UNAVAILABLE, "No GPU that has the kernel is left: all are lost.");
  }

  static void OnDone(void* user, const gpushare_completion_record* record) {
    const InCallback inside;
    Slot& slot = *static_cast<Slot*>(user);
    slot.core->Done(slot, *record);
  }

  void Done(Slot& slot, const gpushare_completion_record& record) {
    const int gpu = slot.gpu;
    slot.work.kernel->Learn(gpu, record, slot.block_tasks);
    const bool is_lost = record.verdict == GPUSHARE_VERDICT_DEVICE_LOST;
    if (is_lost) state_.MarkLost(gpu);
    bool again = false;
    const int32_t client = slot.work.client;
    {
      const std::lock_guard<std::mutex> lock(state_.mutex);
      state_.lc[Index(gpu)].End(record.complete_ns, slot.solo_ns);
      if (record.verdict == GPUSHARE_VERDICT_OK) {
        late_[Index(gpu)].Note(record.complete_ns, record.complete_ns - slot.due_ns);
      }
      again = is_lost && slot.work.repeatable && !state_.closing;
      if (again && client != 0) {
        slot.back = true;
        ++ClientOf(client).back;
      }
    }
    if (!again) {
      Finish(slot, gpu, record);
    } else if (client == 0 && !Send(slot, kAny).ok()) {
      Finish(slot, gpu, record);
    }
    MoveClient(client);
  }

  void Finish(Slot& slot, int gpu, const gpushare_completion_record& record) {
    const GroupDone done = slot.work.done;
    void* user = slot.work.done_user;
    static_cast<void>(Free(slot));
    CallDone(done, user, gpu, record);
    Ended();
  }

  // Sends the client's queries of a lost GPU again, in their order, once all of them are back.
  void MoveClient(int32_t client_id) {
    if (client_id == 0) return;
    Client& client = ClientOf(client_id);
    int target = kAny;
    Slot* refused = nullptr;
    gpushare_verdict verdict = GPUSHARE_VERDICT_FAILED;
    while (true) {
      if (refused != nullptr) Finish(*std::exchange(refused, nullptr), kAny, EndedWithout(verdict));
      Slot* next = nullptr;
      {
        const std::lock_guard<std::mutex> lock(state_.mutex);
        if (target == kAny) {
          // Begin only with all of them back, and on one thread.
          if (client.sending || client.back == 0 || client.back != client.in_hand) return;
          client.sending = true;
        }
        if (client.back == 0) {
          client.sending = false;
          return;
        }
        if (target != kAny && state_.IsLost(target)) {
          target = kAny;
          client.sending = false;
          continue;
        }
        next = OldestBack(client_id);
        next->back = false;
        --client.back;
      }
      const Status status = Send(*next, target);
      const std::unique_lock<std::mutex> lock(state_.mutex);
      // Only this thread sends for the client now, so its GPU is where the query went.
      if (status.ok()) {
        target = client.gpu;
        continue;
      }
      if (target != kAny && state_.IsLost(target)) {
        next->back = true;
        ++client.back;
        continue;
      }
      if (target == kAny) client.sending = false;
      refused = next;
      verdict = status.code() == GPUSHARE_UNAVAILABLE ? GPUSHARE_VERDICT_DEVICE_LOST
                                                      : GPUSHARE_VERDICT_FAILED;
    }
  }

  // Under the lock; the client has one.
  Slot* OldestBack(int32_t client) {
    Slot* oldest = nullptr;
    for (Slot& slot : slots_) {
      if (!slot.in_use || !slot.back || slot.work.client != client) continue;
      if (oldest == nullptr || slot.sequence < oldest->sequence) oldest = &slot;
    }
    return oldest;
  }

  GroupState& state_;
  const LcQueueOptions options_;
  AppOnAll apps_;
  // The rest is guarded by the group's lock; a slot in hand belongs to the thread that sends it.
  std::vector<Slot> slots_;
  std::vector<Client> clients_;
  Slot* free_ = nullptr;
  int64_t sequence_ = 0;
  std::array<Lateness, kGroupGpusMax> late_;
};

}  // namespace group_detail

// A handle; the group owns what is behind it, and must live longer.
class GroupLcQueue {
 public:
  explicit GroupLcQueue(group_detail::LcQueueCore* core) : core_(core) {}

  // Errors: those of gpushare_submit_lc; UNAVAILABLE also while the client's queries move from a
  // lost GPU; then nothing was accepted and `done` does not run.
  Status Submit(const LcWork& work) const { return core_->Submit(work); }
  // The app on one GPU: its statistics and its guarantee are those of the queries there.
  const App& AppOn(int gpu) const { return core_->apps().apps[static_cast<size_t>(gpu)]; }

 private:
  group_detail::LcQueueCore* core_;
};

}  // namespace gpushare

#endif  // GPUSHARE_GROUP_LC_QUEUE_HPP_
