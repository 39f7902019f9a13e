// A model as an LC app: a bounded number of queries on the device at once.
//
// Each query copies its input, runs the model's graph and copies the output, on one queue. The
// input and output of a query lie in a slot of host memory, and a query without a free slot is
// refused: that is the bound of the server's queue.
//
// Begin a query with Begin, then call Finish with what it gave. Several may be begun before the
// first is finished.
#ifndef GPUSHARE_EXAMPLES_SERVERS_MODEL_LC_MODEL_H_
#define GPUSHARE_EXAMPLES_SERVERS_MODEL_LC_MODEL_H_

#include <cstdint>
#include <gpushare/gpushare.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "examples/servers/model/work.h"

namespace gpushare::example {

struct LcModelOptions {
  std::string name = "service";  // of the app and its graph
  double p99_bound = 1.05;       // 0: none
  int64_t target_ns = 0;         // 0: none
  int64_t graph_ns = 200'000;    // alone on the device
  int queries_max = 64;
};

struct Answer {
  Status status;  // RESOURCE_EXHAUSTED: the queue is full, so try again later
  std::vector<float> output;
  int64_t query_ns = 0;  // from Begin to the end of the last copy
};

class LcModel {
 public:
  struct Slot {
    uint16_t* input;
    uint16_t* output;
  };
  // A query that has begun. Finish must be called with it.
  struct Pending {
    Status status;
    Slot slot = {};
    std::vector<Ticket> tickets;
    int64_t arrival_ns = 0;
  };

  // Throws gpushare::Error or std::runtime_error.
  LcModel(const Runtime& runtime, const LcModelOptions& options);

  // `values` has kValues numbers, which are rounded to bf16. Threads: any. Blocks: no.
  Pending Begin(const std::vector<float>& values);
  // Threads: any. Blocks: until the query is done.
  Answer Finish(const Pending& pending);
  int Shift() const { return work_->Shift(); }
  const App& app() const { return app_; }

 private:
  Status Submit(const Slot& slot, std::vector<Ticket>& tickets);
  Answer Wait(const Pending& pending) const;

  Runtime runtime_;
  std::unique_ptr<Work> work_;
  bool simulated_ = false;  // nothing is computed
  Kernel graph_;
  App app_;
  Queue queue_;
  std::mutex order_;        // held while the tasks of one query are submitted
  std::mutex slots_mutex_;  // guards free_slots_
  std::vector<Slot> free_slots_;
};

}  // namespace gpushare::example

#endif  // GPUSHARE_EXAMPLES_SERVERS_MODEL_LC_MODEL_H_
