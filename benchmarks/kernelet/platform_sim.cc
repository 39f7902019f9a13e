// The simulated device: a kernel is its row of the profile, and a task is its block tasks.

#include "benchmarks/harness/failure.h"
#include "benchmarks/kernelet/platform.h"

namespace gpushare::kernelet {

namespace {

class Simulated final : public Platform {
 public:
  const char* device() const override { return "sim"; }
  std::string gpu() const override { return ""; }
  void FillKernel(const std::string& /*name*/, gpushare_kernel_options& /*options*/) override {}
  void FillTask(const std::string& /*name*/, gpushare_task_options& /*task*/) override {}
  void Verify(const std::string& /*name*/, int64_t /*block_tasks*/) override {}
  void WaitUntil(const Runtime& runtime, int64_t time_ns) override {
    benchmarks::Require(runtime.PollUntil(time_ns));
  }
};

}  // namespace

Platform* SimPlatform() {
  static Simulated platform;
  return &platform;
}

}  // namespace gpushare::kernelet
