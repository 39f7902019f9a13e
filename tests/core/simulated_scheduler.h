// The fixture of tests that run a scheduler on a simulated device in virtual time.
//
//   ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy("adaptive")));
//   const KernelId kernel = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
//   const QueueId queue = AddQueue(AppClass::kBestEffort, "train");

#ifndef GPUSHARE_TESTS_CORE_SIMULATED_SCHEDULER_H_
#define GPUSHARE_TESTS_CORE_SIMULATED_SCHEDULER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "src/models/online/online_model.h"
#include "src/sim/sim_device.h"

namespace gpushare::core {

inline constexpr int64_t kUs = 1000;
inline constexpr int64_t kMs = 1000 * kUs;

class SimulatedSchedulerTest : public ::testing::Test {
 protected:
  // A test overrides these to put its own device or model before the simulated or the online one.
  virtual std::unique_ptr<Device> Wrap(std::unique_ptr<Device> device) { return device; }
  virtual std::unique_ptr<CostModel> Wrap(std::unique_ptr<CostModel> model) { return model; }

  void StartScheduler(std::unique_ptr<Policy> policy,
                      const SchedulerOptions& options = SchedulerOptions(),
                      const sim::SimOptions& sim_options = sim::SimOptions()) {
    auto device = sim::MakeSimDevice(sim_options).value();
    const DeviceProfile profile = device->capabilities().profile;
    sms_ = profile.sm_count;
    scheduler_ = Scheduler::Create(options, Wrap(std::move(device)),
                                   Wrap(models::MakeOnlineModel(profile)), std::move(policy))
                     .value();
  }

  // The scheduler uses what a test's members hold (an event log, a policy's orders), so it ends
  // first.
  void TearDown() override { scheduler_ = nullptr; }

  static KernelDesc EvictableKernel(const std::string& name, int64_t block_task_ns) {
    KernelDesc kernel;
    kernel.name = name;
    kernel.evictable = true;
    kernel.simulation.present = true;
    kernel.simulation.block_task_ns = block_task_ns;
    return kernel;
  }
  // A graph of one node that takes `solo_ns` alone on the whole device.
  KernelDesc Graph(const std::string& name, int64_t solo_ns) const {
    KernelDesc graph;
    graph.name = name;
    graph.code = GraphCode();
    graph.simulation.present = true;
    graph.simulation.nodes = {{solo_ns, sms_, 1, true, {}}};
    return graph;
  }

  // The queue of a new app.
  QueueId AddQueue(const AppOptions& options) {
    return *scheduler_->CreateQueue(*scheduler_->CreateApp(options));
  }
  QueueId AddQueue(AppClass app_class, const std::string& name) {
    AppOptions options = {.name = name, .app_class = app_class};
    return AddQueue(options);
  }

  TicketId SubmitGraph(QueueId queue, KernelId graph, bool lc) {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = graph;
    spec.work.kind = TaskKind::kGraph;
    return lc ? *scheduler_->SubmitLc(spec) : *scheduler_->SubmitBe(spec);
  }

  // Lets time pass in small steps, with the flow's invariants checked after each.
  void Pass(int64_t ns) {
    for (const TimeNs end = scheduler_->NowNs() + ns; scheduler_->NowNs() < end;) {
      ASSERT_TRUE(scheduler_->PollUntil(std::min(end, scheduler_->NowNs() + 100 * kUs)).ok());
      const absl::Status status = scheduler_->CheckInvariants();
      ASSERT_TRUE(status.ok()) << status;
    }
  }

  int32_t sms_ = 0;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_TESTS_CORE_SIMULATED_SCHEDULER_H_
