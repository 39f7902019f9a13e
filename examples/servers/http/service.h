// The model as a service: a bounded number of queries on the device, and BE tasks beside them.
//
// Each query copies its input, runs the model's graph and copies the output, on one queue. The
// input and output of a query lie in a slot of host memory, and a query without a free slot is
// refused: that is the bound of the server's queue.
#ifndef GPUSHARE_EXAMPLES_SERVERS_HTTP_SERVICE_H_
#define GPUSHARE_EXAMPLES_SERVERS_HTTP_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <gpushare/gpushare.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "examples/servers/http/work.h"

namespace gpushare::example {

struct ServiceOptions {
  std::string device;  // as GPUSHARE_DEVICE; "": the environment's
  int queries_max = 64;
  double p99_bound = 1.05;
  int64_t graph_ns = 200'000;
  bool best_effort = true;
};

struct Answer {
  int http_status = 200;  // 200, 500 or 503
  std::vector<float> output;
  int64_t query_ns = 0;  // from the arrival to the end of the last copy
  std::string error;     // a sentence, unless http_status is 200
};

class Service {
 public:
  // Throws gpushare::Error or std::runtime_error.
  explicit Service(const ServiceOptions& options);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Runs one query. `values` has kValues numbers, which are rounded to bf16.
  // Threads: any. Blocks: until the query is done.
  Answer Infer(const std::vector<float>& values);
  std::string Metrics() const { return runtime_.Metrics().value(); }
  bool IsHealthy() const;
  bool IsSimulated() const { return simulated_; }
  int Shift() const { return work_->Shift(); }
  // Starts no more BE tasks and waits for all that was accepted. False: something was cut off.
  bool Shutdown();
  AppStats LcStats() const { return lc_app_.Stats().value(); }
  AppStats BeStats() const { return be_app_.Stats().value(); }

 private:
  struct Slot {
    uint16_t* input;
    uint16_t* output;
  };

  void MakeSlots(int count);
  Answer RunQuery(const Slot& slot);
  Status Submit(const Slot& slot, std::vector<Ticket>& tickets);
  void FeedBe();

  Runtime runtime_;
  std::unique_ptr<Work> work_;
  bool simulated_ = false;
  bool virtual_time_ = false;
  App lc_app_;
  App be_app_;
  Queue lc_;
  Queue be_;
  Kernel model_;
  Kernel be_kernel_;
  std::mutex order_;        // held while the tasks of one query are submitted
  std::mutex slots_mutex_;  // guards free_slots_
  std::vector<Slot> free_slots_;
  std::atomic<bool> stopping_{false};
  std::thread be_feeder_;
};

}  // namespace gpushare::example

#endif  // GPUSHARE_EXAMPLES_SERVERS_HTTP_SERVICE_H_
