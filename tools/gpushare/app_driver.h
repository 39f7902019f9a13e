// The two kinds of apps as they behave in a run: an LC app that submits queries when they arrive,
// and a BE app that keeps its queues filled. Both get their completions from the library's
// callbacks, which in poll mode run on the thread that drives the run.

#ifndef GPUSHARE_TOOLS_GPUSHARE_APP_DRIVER_H_
#define GPUSHARE_TOOLS_GPUSHARE_APP_DRIVER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "tools/gpushare/library.h"
#include "tools/gpushare/random.h"
#include "tools/gpushare/runner.h"

namespace gpushare::tool {

// Registers kernels once by name and keeps them for the run.
class KernelTable {
 public:
  explicit KernelTable(gpushare_runtime* runtime) : runtime_(runtime) {}
  gpushare_kernel* Get(const std::string& name);
  std::vector<NamedId> Names() const;

 private:
  gpushare_runtime* runtime_;
  std::map<std::string, KernelHandle> kernels_;
};

// What went wrong in a callback, which must not throw: kept until the run looks.
struct RunFault {
  std::string message;
  bool any() const { return !message.empty(); }
  void Set(const std::string& text) {
    if (message.empty()) message = text;
  }
};

// Counts that must agree at the end of a run.
struct TaskCount {
  int64_t accepted = 0;
  int64_t completed = 0;
};

class LcDriver {
 public:
  LcDriver(gpushare_runtime* runtime, const LcPlan& plan, KernelTable& kernels, int tasks_max,
           RunFault& fault);
  LcDriver(const LcDriver&) = delete;
  LcDriver& operator=(const LcDriver&) = delete;

  // Intended arrival of the next query that is not submitted, GPUSHARE_NEVER: none is known.
  int64_t NextArrivalNs() const;
  // How far the clock may move before a completion could bring an earlier arrival (closed loops).
  int64_t StepNs() const;
  void Start(int64_t start_ns);
  // Submits every query whose arrival is not after now_ns.
  void SubmitDue(int64_t now_ns);
  void StopNewQueries() { stopped_ = true; }
  bool ClosedLoop() const { return plan_.closed_queries > 0; }
  bool Exhausted() const;  // every query was submitted
  bool Done() const;       // and completed

  int64_t LastArrivalNs() const { return last_arrival_ns_; }
  int64_t Started() const { return static_cast<int64_t>(queries_.size()); }
  const std::vector<int64_t>& latencies_ns() const { return latencies_ns_; }
  const TaskCount& count() const { return count_; }
  const LcPlan& plan() const { return plan_; }
  NamedId Id() const;

 private:
  struct Query {
    LcDriver* driver = nullptr;
    int64_t arrival_ns = 0;
    int32_t submitted = 0;
    int32_t completed = 0;
    int32_t client = -1;
    int64_t index = 0;
    gpushare_query handle = {0};
  };

  static void OnComplete(void* user, const gpushare_completion_record* record);
  void Complete(Query& query, const gpushare_completion_record& record);
  void Enqueue(int64_t arrival_ns, int32_t client);
  void Pump();
  bool SubmitNextTask(Query& query);
  int64_t DrawThinkNs();

  const LcPlan& plan_;
  RunFault& fault_;
  gpushare_runtime* runtime_;
  AppHandle app_;
  QueueHandle queue_;
  std::vector<gpushare_kernel*> kernels_;  // by task of a query
  std::deque<Query> queries_;              // addresses stay: callbacks hold them
  size_t first_unsubmitted_ = 0;           // queries_ before it have all their tasks submitted
  std::vector<int64_t> latencies_ns_;
  int64_t completed_queries_ = 0;
  TaskCount count_;
  int64_t start_ns_ = 0;
  size_t next_arrival_ = 0;
  int64_t last_arrival_ns_ = 0;
  bool pumping_ = false;
  bool stopped_ = false;
  // Closed loop: arrivals to come (time to client), and each client's think time drawn ahead.
  Random think_random_;
  std::multimap<int64_t, int32_t> due_clients_;
  std::vector<int64_t> next_think_ns_;
};

class BeDriver {
 public:
  BeDriver(gpushare_runtime* runtime, const BePlan& plan, KernelTable& kernels, RunFault& fault);
  BeDriver(const BeDriver&) = delete;
  BeDriver& operator=(const BeDriver&) = delete;

  void Start(int64_t start_ns);
  void Stop(int64_t end_ns);  // no new task; work up to end_ns counts
  BeWork Work() const;
  const TaskCount& count() const { return count_; }
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
  void Submit(Slot& slot);

  const BePlan& plan_;
  RunFault& fault_;
  AppHandle app_;
  std::vector<QueueHandle> queues_;
  std::vector<gpushare_kernel*> kernels_;
  std::deque<Slot> slots_;
  std::vector<size_t> next_item_;  // by queue
  std::vector<Span> spans_;
  TaskCount count_;
  int64_t start_ns_ = 0;
  int64_t end_ns_ = 0;
  int64_t evictions_ = 0;
  int64_t shut_down_ = 0;  // tasks that did not complete before the shutdown
  bool stopped_ = false;
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_APP_DRIVER_H_
