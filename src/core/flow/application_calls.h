// The application's functions that a Tick leaves to run after its stages: enqueue functions of
// opaque work, completion callbacks, and the log.
//
//   ApplicationCalls calls(flow, tick_mutex);
//   { lock tick_mutex; run the stages; calls.Take(); }
//   calls.Run();
//
// Invariants: what was taken is run once. Flow::calls_running counts each Tick that has not run all
// that it took, so that shutdown waits. If a forced unwind leaves a function, the rest goes back to
// the flow. Thread: the one that runs Tick, with no lock held in Run.

#ifndef GPUSHARE_SRC_CORE_FLOW_APPLICATION_CALLS_H_
#define GPUSHARE_SRC_CORE_FLOW_APPLICATION_CALLS_H_

#include <string>
#include <vector>

#include "src/core/base/mutex.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

// Runs a completion callback. Returns a sentence about what it threw, or "".
std::string RunCallback(CompletionCallback callback, void* user, const CompletionRecord& record);

class ApplicationCalls {
 public:
  ApplicationCalls(Flow& flow, Mutex& tick_mutex) : flow_(flow), tick_mutex_(tick_mutex) {}
  ~ApplicationCalls();
  ApplicationCalls(const ApplicationCalls&) = delete;
  ApplicationCalls& operator=(const ApplicationCalls&) = delete;

  // The caller holds tick_mutex.
  void Take();
  void Run();

 private:
  void Launch(LaunchRequest& request);

  Flow& flow_;
  Mutex& tick_mutex_;
  bool taken_ = false;
  std::vector<std::string> reports_;
  std::vector<LaunchRequest> launches_;
  size_t launches_done_ = 0;
  LaunchId launching_;  // 0: none
  std::vector<Notice> notices_;
  size_t notices_done_ = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_APPLICATION_CALLS_H_
