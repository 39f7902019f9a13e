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
      slots_[i].next = free_;
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
    Move(client, true);
    return status;
  }

 private:
  static constexpr int kAny = -1;

  struct Slot {
    LcQueueCore* core = nullptr;
    Slot* next = nullptr;  // of the free ones, or of its client's that are back
    LcWork work;
    int64_t sequence = 0;
    int gpu = kAny;
    int64_t solo_ns = 0;
    int64_t block_tasks = 0;  // as prepared
    int64_t arrival_ns = 0;   // since when its latency counts, also if it is sent again
    int64_t due_ns = 0;       // its predicted end
  };
  // Client 0 has no order, so that it has no GPU, and its queries in hand are not counted.
  struct Client {
    int gpu = kAny;  // of its queries in hand
    int32_t in_hand = 0;
    int32_t back = 0;            // of these: of a lost GPU, waiting to be sent again
    Slot* first_back = nullptr;  // in the order of their submission
    Slot* last_back = nullptr;
    bool sending = false;  // a thread sends them
    bool stalled = false;  // no GPU had a slot for them; the next end of a query sends them
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
    free_ = slot->next;
    slot->work = work;
    slot->sequence = ++sequence_;
    slot->gpu = kAny;
    slot->arrival_ns = 0;
    if (work.client != 0) ++client.in_hand;
    ++state_.pending;
    *out_slot = slot;
    return Status();
  }

  // Gives the slot back. Returns its client.
  int32_t Free(Slot& slot) {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    const int32_t client = slot.work.client;
    if (client != 0) --ClientOf(client).in_hand;
    slot.next = free_;
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
  bool Place(Slot& slot, int bound_to, const std::array<bool, kGroupGpusMax>& full) {
    const GroupKernel& kernel = *slot.work.kernel;
    const Reading reading = Read(kernel);
    const std::lock_guard<std::mutex> lock(state_.mutex);
    int best = kAny;
    double best_ns = 0;
    for (int gpu = 0; gpu < state_.gpus; ++gpu) {
      if (!reading.usable[Index(gpu)] || full[Index(gpu)]) continue;
      if (bound_to != kAny && gpu != bound_to) continue;
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
    // No clock of a runtime takes an arrival that is still to come.
    slot.arrival_ns = slot.arrival_ns == 0 ? now_ns : std::min(slot.arrival_ns, now_ns);
    ++in_hand_[Index(best)];
    slot.due_ns = state_.lc[Index(best)].Begin(now_ns, slot.solo_ns) + BlockingNs(reading, best);
    if (slot.work.client != 0) ClientOf(slot.work.client).gpu = best;
    return true;
  }

  // Submits the query to a runtime. A GPU that is lost meanwhile, or has no slot for it now, makes
  // it try the next one.
  Status Send(Slot& slot, int bound_to) {
    std::array<bool, kGroupGpusMax> full{};
    Status refusal;
    for (int attempt = 0; attempt <= state_.gpus; ++attempt) {
      if (!Place(slot, bound_to, full)) break;
      const int gpu = slot.gpu;
      TaskOptions task;
      Status status = PrepareTask(slot, &LcQueueCore::OnDone, &task);
      const std::vector<Queue>& queues = apps_.queues[Index(gpu)];
      const auto key =
          static_cast<size_t>(slot.work.client != 0 ? slot.work.client : slot.sequence);
      const int64_t solo_ns = slot.solo_ns;
      if (task.arrival_ns == 0) task.arrival_ns = slot.arrival_ns;
      if (status.ok()) {
        status =
            Status::From(gpushare_submit_lc(queues[key % queues.size()].get(), &task, nullptr));
        if (status.ok()) return status;  // the slot may be another query's by now
      }
      const int64_t now_ns = state_.On(gpu).NowNs();
      {
        const std::lock_guard<std::mutex> lock(state_.mutex);
        state_.lc[Index(gpu)].Undo(now_ns, solo_ns);
        --in_hand_[Index(gpu)];
      }
      if (state_.TellsLoss(gpu, status.code())) continue;
      if (status.code() != GPUSHARE_RESOURCE_EXHAUSTED || bound_to != kAny) return status;
      full[Index(gpu)] = true;
      refusal = std::move(status);
    }
    if (!refusal.ok()) return refusal;
    if (bound_to != kAny && state_.IsLost(bound_to)) return Moving(slot.work.client);
    if (bound_to != kAny) {
      return Status(GPUSHARE_UNAVAILABLE,
                    "Client " + std::to_string(slot.work.client) + " has queries in hand on GPU " +
                        std::to_string(bound_to) +
                        ", where the kernel is not registered. Submit again when they have ended.");
    }
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
    bool any_stalled = false;
    const int32_t client = slot.work.client;
    {
      const std::lock_guard<std::mutex> lock(state_.mutex);
      state_.lc[Index(gpu)].End(record.complete_ns, slot.solo_ns);
      --in_hand_[Index(gpu)];
      any_stalled = stalled_ > 0;
      if (record.verdict == GPUSHARE_VERDICT_OK) {
        late_[Index(gpu)].Note(record.complete_ns, record.complete_ns - slot.due_ns);
      }
      again = is_lost && slot.work.repeatable && !state_.closing;
      if (again) PutBack(slot);
    }
    if (!again) Finish(slot, gpu, record);
    if (again || client != 0 || any_stalled) Move(client, any_stalled);
  }

  void Finish(Slot& slot, int gpu, const gpushare_completion_record& record) {
    const GroupDone done = slot.work.done;
    void* user = slot.work.done_user;
    static_cast<void>(Free(slot));
    CallDone(done, user, gpu, record);
    Ended();
  }

  // The queries of a client that wait to be sent again; under the lock.
  void PutBack(Slot& slot) {
    Client& client = ClientOf(slot.work.client);
    ++client.back;
    Slot* before = client.last_back;
    if (before != nullptr && before->sequence > slot.sequence) {
      before = nullptr;
      for (Slot* each = client.first_back; each->sequence < slot.sequence; each = each->next) {
        before = each;
      }
    }
    Slot*& at = before == nullptr ? client.first_back : before->next;
    slot.next = at;
    at = &slot;
    if (slot.next == nullptr) client.last_back = &slot;
  }
  Slot* TakeBack(Client& client) {
    Slot* first = client.first_back;
    client.first_back = first->next;
    if (client.first_back == nullptr) client.last_back = nullptr;
    --client.back;
    return first;
  }

  // The first client from `from` on that is stalled, which it is no longer then; kAny: none.
  int32_t TakeStalled(int32_t from) {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    for (int32_t client = from; client <= options_.clients_max && stalled_ > 0; ++client) {
      if (!ClientOf(client).stalled) continue;
      ClientOf(client).stalled = false;
      --stalled_;
      return client;
    }
    return kAny;
  }

  // Sends again what is back of the client, and of clients that are stalled. Each time a query was
  // refused for good, those that relied on its end have another try.
  void Move(int32_t client, bool any_stalled) {
    bool again = MoveClient(client) || any_stalled;
    while (again) {
      again = false;
      for (int32_t id = 0; (id = TakeStalled(id)) != kAny; ++id) again |= MoveClient(id);
    }
  }

  // Sends the client's queries of a lost GPU again, in their order, once all of them are back.
  // Returns whether one was refused, and has ended.
  bool MoveClient(int32_t client_id) {
    Client& client = ClientOf(client_id);
    bool any_refused = false;
    bool sending = false;  // by this call
    int target = kAny;     // where it has sent some
    while (true) {
      Slot* next = nullptr;
      bool had_any = false;
      {
        const std::lock_guard<std::mutex> lock(state_.mutex);
        had_any = HasAnyInHand();
        if (target != kAny && state_.IsLost(target)) {
          target = kAny;
          sending = client.sending = false;
        }
        if (!sending) {
          // Begin only with all of them back, and on one thread.
          if (client.sending || client.back == 0) return any_refused;
          if (client_id != 0 && client.back != client.in_hand) return any_refused;
          sending = client.sending = true;
        }
        if (client.back == 0) {
          client.sending = false;
          return any_refused;
        }
        next = TakeBack(client);
      }
      gpushare_verdict verdict = GPUSHARE_VERDICT_SHUTDOWN;
      if (!state_.closing) {
        const Status status = Send(*next, target);
        const std::lock_guard<std::mutex> lock(state_.mutex);
        if (status.ok()) {
          // Only this thread sends for the client now, so its GPU is where the query went.
          if (client_id != 0) target = client.gpu;
          continue;
        }
        if (target != kAny && (state_.IsLost(target) || !next->work.kernel->IsOn(target))) {
          // It goes to another GPU, when those that were sent to this one have ended.
          PutBack(*next);
          target = kAny;
          sending = client.sending = false;
          continue;
        }
        const bool full = status.code() == GPUSHARE_RESOURCE_EXHAUSTED;
        const bool has_any = HasAnyInHand();
        if (full && (has_any || had_any)) {
          PutBack(*next);
          if (!has_any) continue;  // all have ended meanwhile, so that there are slots
          client.sending = false;
          // Else the ends of its own queries send the rest.
          if ((client_id == 0 || client.back == client.in_hand) && !client.stalled) {
            client.stalled = true;
            ++stalled_;
          }
          return any_refused;
        }
        if (target == kAny) sending = client.sending = false;
        if (!state_.closing) {
          verdict = status.code() == GPUSHARE_UNAVAILABLE ? GPUSHARE_VERDICT_DEVICE_LOST
                                                          : GPUSHARE_VERDICT_FAILED;
        }
      }
      Finish(*next, kAny, EndedWithout(verdict));
      any_refused = true;
    }
  }

  // Whether an end of a query is to come. Under the lock.
  bool HasAnyInHand() const {
    return std::any_of(in_hand_.begin(), in_hand_.end(), [](int32_t count) { return count > 0; });
  }

  GroupState& state_;
  const LcQueueOptions options_;
  AppOnAll apps_;
  // The rest is guarded by the group's lock; a slot in hand belongs to the thread that sends it.
  std::vector<Slot> slots_;
  std::vector<Client> clients_;
  Slot* free_ = nullptr;
  int64_t sequence_ = 0;
  int32_t stalled_ = 0;                           // clients that are
  std::array<int32_t, kGroupGpusMax> in_hand_{};  // queries of this app
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
