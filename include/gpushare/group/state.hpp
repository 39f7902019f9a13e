// What the parts of a group share: the runtimes, which of them are lost, and the group's two locks.
//
// "The lock" (mutex) guards the tables of the group and of its queues. It is held over no call of a
// runtime, no callback and no wait for a GPU, so it comes behind every other lock. poll_mutex
// belongs to the thread that drives polled runtimes. It is held over their calls, and so over
// callbacks, in which nothing takes it: it comes in front of every other lock. No order of locks
// can be broken. Threads: any, among them those of the runtimes, inside completion callbacks.
#ifndef GPUSHARE_GROUP_STATE_HPP_
#define GPUSHARE_GROUP_STATE_HPP_

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <gpushare/gpushare.hpp>
#include <gpushare/group/gpu_load.hpp>
#include <gpushare/group/kernel.hpp>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace gpushare {

// How work of a group ended, and on which GPU. The record lives for the call; without a GPU (-1)
// only its verdict counts. Runs on a thread that drives a runtime, or on the one that submits, with
// no lock held. It may submit, and must neither wait nor throw: what it throws is dropped.
using GroupDone = void (*)(void* user, int gpu, const gpushare_completion_record* record);
// Fills in what differs from GPU to GPU, such as pointers among the arguments; it may assign the
// whole task. Runs for each attempt, on the thread that submits; at a second attempt on one that
// drives a runtime. It must neither wait nor throw: work whose preparation throws is refused.
using GroupPrepare = void (*)(void* user, int gpu, gpushare_task_options* task);

namespace group_detail {

// How far apart the clocks of two runtimes in virtual time may be.
inline constexpr int64_t kVirtualStepNs = 10'000;
// How long a wait in real time sleeps at most before it reads the clock of the runtimes again.
inline constexpr int64_t kLookNs = 1'000'000;

// Whether this thread runs a completion callback of a group, in which nothing may wait.
class InCallback {
 public:
  InCallback() { ++depth_; }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
  ~InCallback() { --depth_; }

  static Status Refuse(const char* call) {
    if (depth_ == 0) return Status();
    return Status(GPUSHARE_FAILED_PRECONDITION,
                  std::string(call) + " may wait, and the thread is inside a callback.");
  }

 private:
  static inline thread_local int depth_ = 0;
};

// BE work in front of the runtimes, which a change elsewhere may let go.
class Waiting {
 public:
  virtual ~Waiting() = default;
  // Hands over what has room now. Without the lock.
  virtual void Pump() = 0;
};

struct GroupState {
  GroupState(std::vector<Runtime> opened, bool is_polled, bool in_virtual_time)
      : runtimes(std::move(opened)),
        polled(is_polled),
        virtual_time(in_virtual_time),
        gpus(static_cast<int>(runtimes.size())) {}

  const Runtime& On(int gpu) const { return runtimes[static_cast<size_t>(gpu)]; }
  bool IsLost(int gpu) const { return lost[static_cast<size_t>(gpu)].load(); }
  void MarkLost(int gpu) { lost[static_cast<size_t>(gpu)].store(true); }
  // Whether a refusal by this GPU says that it is lost.
  bool TellsLoss(int gpu, gpushare_status code) {
    if (code != GPUSHARE_UNAVAILABLE) return false;
    Result<RuntimeStats> stats = On(gpu).Stats();
    if (!stats.ok() || stats->device_lost != 1) return false;
    MarkLost(gpu);
    return true;
  }

  // Runs the runtimes until all clocks stand at `time_ns`, each at least once. A second thread
  // waits for the first. GPUSHARE_DRIVE_POLL only; not in a callback.
  Status PollUntil(int64_t time_ns) {
    Status refusal = InCallback::Refuse("Group::PollUntil");
    if (!refusal.ok()) return refusal;
    const std::lock_guard<std::mutex> polling(poll_mutex);
    return Drive(time_ns);
  }

  // Waits until `done` answers true, or the deadline on the clock of GPU 0. Returns whether it did.
  // It is called under the lock, and no more after a yes. Not in a callback.
  template <class Done>
  bool WaitFor(int64_t deadline_ns, const Done& done) {
    std::unique_lock<std::mutex> lock(mutex);
    while (!done()) {
      lock.unlock();
      const int64_t now_ns = On(0).NowNs();
      if (now_ns >= deadline_ns) return false;
      if (polled) {
        // One thread drives for all that wait.
        const std::unique_lock<std::mutex> polling(poll_mutex, std::try_to_lock);
        if (polling.owns_lock()) {
          const int64_t step_ns = std::min(deadline_ns - now_ns, kVirtualStepNs);
          if (!Drive(now_ns + step_ns).ok()) return false;
          lock.lock();
          continue;
        }
      }
      lock.lock();
      if (done()) break;
      changed.wait_for(lock, std::chrono::nanoseconds(std::min(deadline_ns - now_ns, kLookNs)));
    }
    return true;
  }

  const std::vector<Runtime> runtimes;
  const bool polled;
  const bool virtual_time;
  const int gpus;
  std::array<std::atomic<bool>, kGroupGpusMax> lost{};
  std::atomic<bool> closing{false};  // what comes back is not sent on

  std::mutex poll_mutex;  // taken with no other lock, and not in a callback
  std::mutex mutex;
  std::condition_variable changed;
  // The rest is guarded by the lock.
  std::array<LcLoad, kGroupGpusMax> lc;
  std::array<BeLoad, kGroupGpusMax> be;
  // BE items may go to a GPU if they leave it within this time; 0: none may; kNever: any.
  std::array<int64_t, kGroupGpusMax> be_leaves_within_ns = Everywhere(kNever);
  int64_t pending = 0;  // queries, items and steps that have not completed
  std::vector<Waiting*> waiting;

  // Hands over BE work that has room. Without the lock. Queues are only added, before work comes.
  void PumpAll() {
    for (size_t i = 0;; ++i) {
      Waiting* queue = nullptr;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (i >= waiting.size()) return;
        queue = waiting[i];
      }
      queue->Pump();
    }
  }

 private:
  // In virtual time the clocks move together. In real time they advance by themselves, and every
  // runtime gets its turn again and again. With poll_mutex.
  Status Drive(int64_t time_ns) {
    // What runs meanwhile is inside callbacks of the runtimes.
    const InCallback inside;
    int64_t at_ns = time_ns;
    for (int gpu = 0; gpu < gpus; ++gpu) at_ns = std::min(at_ns, On(gpu).NowNs());
    do {
      at_ns = virtual_time ? std::min(time_ns, at_ns + kVirtualStepNs) : time_ns;
      for (int gpu = 0; gpu < gpus; ++gpu) {
        Status status = virtual_time ? On(gpu).PollUntil(at_ns) : On(gpu).Poll().status();
        if (!status.ok()) return status;
      }
    } while (virtual_time ? at_ns < time_ns : On(0).NowNs() < time_ns);
    return Status();
  }

  static std::array<int64_t, kGroupGpusMax> Everywhere(int64_t value) {
    std::array<int64_t, kGroupGpusMax> all;
    all.fill(value);
    return all;
  }
};

// The end of work that no runtime ran.
inline CompletionRecord EndedWithout(gpushare_verdict verdict) {
  CompletionRecord record;
  record.verdict = verdict;
  return record;
}

// An app with the same options on each GPU, and queues of it.
struct AppOnAll {
  gpushare_app_class app_class = 0;
  std::vector<App> apps;
  std::vector<std::vector<Queue>> queues;  // by GPU

  Status Create(const GroupState& state, const gpushare_app_options& options, int queues_each) {
    app_class = options.app_class;
    for (int gpu = 0; gpu < state.gpus; ++gpu) {
      Result<App> app = state.On(gpu).CreateApp(options);
      if (!app.ok()) return app.status();
      std::vector<Queue> made;
      for (int i = 0; i < queues_each; ++i) {
        Result<Queue> queue = app->CreateQueue();
        if (!queue.ok()) return queue.status();
        made.push_back(*queue);
      }
      apps.push_back(*app);
      queues.push_back(std::move(made));
    }
    return Status();
  }
};

// What the caller may not set in the task of a group, because the group sets it, and its duration.
inline Status CheckTask(const gpushare_task_options& task, const GroupKernel* kernel,
                        int64_t expected_ns) {
  if (kernel == nullptr || task.kernel != nullptr) {
    return Status(GPUSHARE_INVALID_ARGUMENT,
                  "The work of a group names a GroupKernel, and its task names no kernel.");
  }
  if (task.callback != nullptr || task.query.value != 0 || task.detached != 0 ||
      task.wait_ticket_count != 0) {
    return Status(GPUSHARE_INVALID_ARGUMENT,
                  "The task of a group has a callback, a query, 'detached' or wait_tickets, which "
                  "belong to one runtime. Use 'done' instead of a callback.");
  }
  if (expected_ns < 0 || expected_ns > kSoloNsMax) {
    return Status(GPUSHARE_INVALID_ARGUMENT,
                  "The work of a group is expected to take " + std::to_string(expected_ns) +
                      " ns; it may be 0 (unknown) to " + std::to_string(kSoloNsMax) + " (1 h).");
  }
  return Status();
}

inline size_t Index(int gpu) { return static_cast<size_t>(gpu); }

// Predicted duration of LcWork or BeWork alone on the GPU; 0: unknown.
template <class Work>
int64_t SoloNs(const Work& work, int gpu) {
  return work.expected_ns > 0 ? work.expected_ns : work.kernel->SoloNs(gpu, work.task.block_tasks);
}

// Makes the task of the LcWork or BeWork in a slot for the slot's GPU, which reports to the slot.
template <class Slot>
Status PrepareTask(Slot& slot, gpushare_completion_callback callback, TaskOptions* task) {
  const auto& work = slot.work;
  *task = work.task;
  if (work.prepare != nullptr) {
    const InCallback inside;
    try {
      work.prepare(work.prepare_user, slot.gpu, task);
    } catch (...) {
      return Status(GPUSHARE_INVALID_ARGUMENT, "The 'prepare' of the work has thrown.");
    }
  }
  // What the group sets comes last, so that no preparation loses it.
  task->kernel = work.kernel->On(slot.gpu).get();
  task->callback = callback;
  task->callback_user = &slot;
  task->detached = 1;
  slot.block_tasks = task->block_tasks;
  return Status();
}

// Tells the submitter how its work ended. What it throws is dropped: the group counts on.
inline void CallDone(GroupDone done, void* user, int gpu,
                     const gpushare_completion_record& record) {
  if (done == nullptr) return;
  const InCallback inside;
  try {
    done(user, gpu, &record);
  } catch (...) {
  }
}

}  // namespace group_detail
}  // namespace gpushare

#endif  // GPUSHARE_GROUP_STATE_HPP_
