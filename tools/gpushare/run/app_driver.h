// The two kinds of apps in a run: an LC app, which submits queries when they arrive, and a BE app,
// which keeps its queues filled. Callbacks of the library report completions to both.
//
// Threads: the load thread calls everything except the callbacks. In poll mode the callbacks run on
// the same thread, inside its calls. In thread mode they run on the library's scheduler thread. An
// LC callback then only records, and only the load thread submits, so that the LC path takes no
// lock. A BE callback submits the next task of its own slot, which no other thread uses.

#ifndef GPUSHARE_TOOLS_GPUSHARE_RUN_APP_DRIVER_H_
#define GPUSHARE_TOOLS_GPUSHARE_RUN_APP_DRIVER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tools/gpushare/base/library.h"
#include "tools/gpushare/run/kernel_table.h"
#include "tools/gpushare/run/run_outcome.h"
#include "tools/gpushare/run/run_plan.h"
#include "tools/gpushare/run/think_times.h"

namespace gpushare::tool {

// The first failure in a callback. A callback must not throw, so the failure is kept until the run
// checks for it.
class RunFault {
 public:
  bool any() const { return any_.load(std::memory_order_acquire); }
  void Set(const std::string& text);
  std::string message() const;

 private:
  mutable std::mutex mutex_;
  std::string message_;
  std::atomic<bool> any_{false};
};

// Counts that must agree at the end of a run.
struct TaskCount {
  std::atomic<int64_t> accepted{0};
  std::atomic<int64_t> completed{0};
};

class LcDriver {
 public:
  LcDriver(gpushare_runtime* runtime, const LcPlan& plan, AppHandle app, KernelTable& kernels,
           bool threaded, RunFault& fault);
  LcDriver(const LcDriver&) = delete;
  LcDriver& operator=(const LcDriver&) = delete;

  // Intended arrival of the next query that is not submitted, GPUSHARE_NEVER: none is known.
  int64_t NextArrivalNs() const;
  // Closed loops: how far the clock may move before a completion could cause an earlier arrival.
  int64_t StepNs() const;
  // Submits one query now, for the warm-up; it is not counted. Only before Start.
  void WarmUp(int64_t now_ns);
  void Start(int64_t start_ns);
  // In rounds: a query arrives now.
  void Ask(int64_t arrival_ns);
  // Submits every query whose arrival is not after now_ns.
  void SubmitDue(int64_t now_ns);
  void StopNewQueries() { stopped_ = true; }
  bool ClosedLoop() const { return plan_.closed_queries > 0; }
  bool Exhausted() const;  // every query was submitted
  bool Done() const;       // and completed
  bool Idle() const;       // every submitted query is complete
  // Counted queries that arrived.
  int64_t Started() const { return static_cast<int64_t>(queries_.size()) - warm_ups_; }
  // The latency of each counted query, in order of arrival. Only when all are complete.
  std::vector<int64_t> LatenciesNs() const;
  const TaskCount& count() const { return count_; }
  const LcPlan& plan() const { return plan_; }
  gpushare_app_guarantee Guarantee() const;
  NamedId Id() const;

 private:
  struct Query {
    LcDriver* driver = nullptr;
    int64_t arrival_ns = 0;
    int32_t tasks = 0;
    int32_t submitted = 0;  // of the tasks; of the load thread
    int32_t client = -1;
    int64_t next_within_ns = 0;  // that its last task states
    bool counted = true;
    size_t queue = 0;
    gpushare_query handle = {0};
    std::atomic<int32_t> completed{0};  // of the tasks
    // Written by the callback of the last task before it raises completed_queries_.
    int64_t latency_ns = -1;
  };

  static void OnComplete(void* user, const gpushare_completion_record* record);
  void Complete(Query& query, const gpushare_completion_record& record);
  void Enqueue(int64_t arrival_ns, int32_t client, bool counted);
  void Pump();
  bool SubmitNextTask(Query& query);
  // Closed loop: a client has its answer and starts its think time.
  void Answer(int32_t client, int64_t complete_ns);
  void AskAgain(int32_t client, int64_t complete_ns);
  void TakeAnswers();

  const LcPlan& plan_;
  const bool threaded_;
  RunFault& fault_;
  gpushare_runtime* runtime_;
  AppHandle app_;
  std::vector<QueueHandle> queues_;           // queries take them in turn
  std::vector<gpushare_task_options> tasks_;  // of one pass of a query
  std::deque<Query> queries_;                 // a deque, because callbacks hold addresses
  size_t first_unsubmitted_ = 0;              // queries_ before it have all their tasks submitted
  std::atomic<int64_t> completed_queries_{0};
  TaskCount count_;
  int64_t warm_ups_ = 0;
  int64_t start_ns_ = 0;
  size_t next_arrival_ = 0;
  bool pumping_ = false;
  bool stopped_ = false;
  // Closed loop: arrivals to come (time to client), and each client's next think time, already
  // drawn.
  ThinkTimes think_times_;
  std::multimap<int64_t, int32_t> due_clients_;
  std::vector<Think> next_think_;
  // Closed loop in thread mode: answers (client, time) that the load thread has not taken yet.
  std::mutex answers_mutex_;
  std::vector<std::pair<int32_t, int64_t>> answers_;
  std::atomic<bool> answered_{false};
};

class BeDriver {
 public:
  BeDriver(gpushare_runtime* runtime, const BePlan& plan, KernelTable& kernels, RunFault& fault);
  BeDriver(const BeDriver&) = delete;
  BeDriver& operator=(const BeDriver&) = delete;

  void Start();
  // In rounds, instead of Start: submits the tasks of one round, which end before the next one
  // begins. The time of a round counts from now_ns to the end of its last task.
  void StartRound(int64_t now_ns);
  bool RoundEnded() const { return round_left_.load(std::memory_order_acquire) == 0; }
  // Work from start_ns on counts. Before Stop.
  void CountFrom(int64_t start_ns) {
    const std::lock_guard<std::mutex> lock(records_mutex_);  // a round may still be open
    start_ns_ = start_ns;
    rounds_ns_ = 0;
  }
  void Stop(int64_t end_ns);  // no new task; work up to end_ns counts
  BeWork Work() const;        // only when no callback can run any more
  const TaskCount& count() const { return count_; }
  gpushare_app_guarantee Guarantee() const;
  NamedId Id() const;

 private:
  struct Slot {  // one of the tasks that a queue keeps pending
    BeDriver* driver = nullptr;
    size_t queue = 0;
    size_t item = 0;
  };
  struct Span {
    int64_t from_ns = 0;
    int64_t to_ns = 0;
    double work = 0;
  };

  static void OnComplete(void* user, const gpushare_completion_record* record);
  void Complete(Slot& slot, const gpushare_completion_record& record);
  void Record(const Slot& slot, const gpushare_completion_record& record);
  void Submit(Slot& slot);
  void EndOfRoundTask(int64_t complete_ns);

  const BePlan& plan_;
  RunFault& fault_;
  AppHandle app_;
  std::vector<QueueHandle> queues_;
  std::vector<gpushare_task_options> tasks_;
  std::deque<Slot> slots_;
  std::unique_ptr<std::atomic<size_t>[]> next_item_;  // by queue
  TaskCount count_;
  int64_t start_ns_ = 0;
  int64_t end_ns_ = 0;
  std::atomic<bool> stopped_{false};
  mutable std::mutex records_mutex_;  // the members below
  std::deque<Span> spans_;
  int64_t evictions_ = 0;
  int64_t shut_down_ = 0;  // tasks that did not complete before the shutdown
  int64_t rounds_ns_ = 0;  // time of the rounds that count
  // In rounds.
  bool in_rounds_ = false;
  int64_t round_start_ns_ = 0;
  std::atomic<size_t> round_left_{0};  // tasks
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_RUN_APP_DRIVER_H_
