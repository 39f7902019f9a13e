// A best-effort (BE) job: keeps tasks of one kernel queued until it is stopped, or one fails.
#ifndef GPUSHARE_EXAMPLES_SERVERS_MODEL_BE_JOB_H_
#define GPUSHARE_EXAMPLES_SERVERS_MODEL_BE_JOB_H_

#include <atomic>
#include <gpushare/gpushare.hpp>
#include <memory>
#include <string>
#include <thread>

#include "examples/servers/model/work.h"

namespace gpushare::example {

class BeJob {
 public:
  // Starts at once. weight: its share among BE apps; 0: 1. Throws gpushare::Error or
  // std::runtime_error.
  BeJob(const Runtime& runtime, const std::string& name, double weight);
  ~BeJob() { Stop(); }
  BeJob(const BeJob&) = delete;
  BeJob& operator=(const BeJob&) = delete;

  // No task is submitted once this has been called. Blocks: no.
  void BeginStop() { stopping_.store(true); }
  // Blocks: until the tasks that were submitted are complete. A second call is allowed.
  void Stop();
  const App& app() const { return app_; }

 private:
  // Stops the job, with a sentence on stderr unless it is being stopped.
  void EndWith(const Status& status);
  void Feed();

  Runtime runtime_;
  std::unique_ptr<Work> work_;
  Kernel kernel_;
  App app_;
  Queue queue_;
  std::atomic<bool> stopping_{false};
  std::thread feeder_;
};

}  // namespace gpushare::example

#endif  // GPUSHARE_EXAMPLES_SERVERS_MODEL_BE_JOB_H_
