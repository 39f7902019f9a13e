// The application's functions that a Tick leaves to run after its stages: enqueue functions of
// opaque work, completion callbacks, and the log.
//
//   DeferredCalls calls(flow, tick_mutex);
//   { lock tick_mutex; run the stages; calls.Take(); }
//   calls.Run();
//
// Invariants: each call is made once. Flow::calls_running counts each Tick that has not made all
// calls of its stages, so that shutdown waits. If a forced unwind leaves a function, the rest stays
// in the flow. Thread: the one that runs Tick, with no lock held in Run. Allocates nothing.

#ifndef GPUSHARE_SRC_CORE_FLOW_DEFERRED_CALLS_H_
#define GPUSHARE_SRC_CORE_FLOW_DEFERRED_CALLS_H_

#include <string>
#include <vector>

#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/mutex.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

// Runs a completion callback. Returns a sentence about what it threw, or "".
std::string RunCallback(CompletionCallback callback, void* user, const CompletionRecord& record);

class DeferredCalls {
 public:
  DeferredCalls(Flow& flow, Mutex& tick_mutex) : flow_(flow), tick_mutex_(tick_mutex) {}
  ~DeferredCalls();
  DeferredCalls(const DeferredCalls&) = delete;
  DeferredCalls& operator=(const DeferredCalls&) = delete;

  // The caller holds tick_mutex.
  void Take();
  void Run();

 private:
  // How many callbacks leave the flow under one lock.
  static constexpr int kNoticeBatch = 32;

  void RunLaunches();
  void RunCallbacks();
  // Under the lock: whether the next launch is still to be made. One whose task has ended is not.
  bool TakeLaunch(BoundedList<DeferredLaunch, 1>& next);
  void Launch(LaunchRequest& request);
  // Launches of its queue may follow.
  void EndLaunch(Queue& queue);

  Flow& flow_;
  Mutex& tick_mutex_;
  bool taken_ = false;
  std::vector<std::string> reports_;
  size_t launches_ = 0;  // of Flow::deferred, so many are for this Tick
  size_t notices_ = 0;   // of Flow::notices
  LaunchId launching_;   // 0: none
  Queue* launching_queue_ = nullptr;
  BoundedList<Notice, kNoticeBatch> batch_;
  int batch_done_ = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_DEFERRED_CALLS_H_
