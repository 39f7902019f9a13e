// What runs out: file descriptors, tenants, queues, kernels, task slots. The message states the
// limit, nothing accepted is lost, and what is given back can be had again.

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>

#include "tests/faults/flight.h"

namespace gpushare_test {
namespace {

class LimitsTest : public ::testing::TestWithParam<DeviceCase> {
 protected:
  void SetUp() override {
    api_.opening.profile_path = GPUSHARE_SMALL_PROFILE;
    api_.Open(GetParam());
  }
  void TearDown() override {
    EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
    api_.Close();
  }
  Api api_;
};

INSTANTIATE_TEST_SUITE_P(Devices, LimitsTest,
                         ::testing::Values(DeviceCase{"sim", GPUSHARE_DRIVE_POLL},
                                           DeviceCase{"null", GPUSHARE_DRIVE_POLL},
                                           DeviceCase{"null", GPUSHARE_DRIVE_THREAD}),
                         [](const auto& device) { return NameOf(device.param); });

// Lowers the limit of descriptors to a few more than are open.
class FewDescriptors {
 public:
  explicit FewDescriptors(int spare) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = dup(STDERR_FILENO);
    close(next);
    const rlimit few = {static_cast<rlim_t>(next + spare), before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_ = {};
};

TEST_P(LimitsTest, WithoutADescriptorTheEventfdIsRefusedAndTheTaskGoesOn) {
  std::vector<gpushare_ticket> tickets;
  std::vector<int> fds;
  {
    const FewDescriptors few(8);
    int refused = 0;
    for (int i = 0; i < 20; ++i) {
      tickets.push_back(api_.Submit(api_.BeTask(), false));
      int fd = -1;
      const gpushare_status status = gpushare_ticket_eventfd(api_.runtime, tickets.back(), &fd);
      if (status == GPUSHARE_OK) {
        fds.push_back(fd);
      } else {
        EXPECT_EQ(status, GPUSHARE_RESOURCE_EXHAUSTED) << gpushare_last_error_message();
        ++refused;
      }
    }
    EXPECT_GT(refused, 0);
    for (const gpushare_ticket ticket : tickets) {
      EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);
    }
  }
  ASSERT_OK(gpushare_runtime_drain(api_.runtime, api_.Deadline()));
  for (const int fd : fds) {
    pollfd ready = {fd, POLLIN, 0};
    EXPECT_EQ(poll(&ready, 1, 1000), 1);
    close(fd);
  }
}

TEST_P(LimitsTest, Of10000TenantsAtOnceMostAreRefusedWithTheLimit) {
  std::vector<gpushare_app*> apps;
  int refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::string name = "tenant" + std::to_string(i);
    gpushare_app_options options = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, name.c_str());
    options.tasks_max = 1;  // so that the number of apps is what runs out
    gpushare_app* app = nullptr;
    const gpushare_status status = gpushare_app_create(api_.runtime, &options, &app);
    if (status == GPUSHARE_OK) {
      apps.push_back(app);
    } else {
      ASSERT_EQ(status, GPUSHARE_RESOURCE_EXHAUSTED) << gpushare_last_error_message();
      ++refused;
    }
  }
  EXPECT_EQ(apps.size(), 62u);  // 64, of which the fixture has two
  EXPECT_EQ(refused, 10'000 - 62);
  EXPECT_NE(std::string(gpushare_last_error_message()).find("64"), std::string::npos)
      << gpushare_last_error_message();
  for (gpushare_app* app : apps) EXPECT_OK(gpushare_app_release(app));
}

TEST_P(LimitsTest, Of10000TenantsInTurnEach20thRunsATask) {
  Flight flight;
  for (int i = 0; i < 10'000 && !HasFailure(); ++i) {
    const gpushare_app_options options = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, "tenant");
    gpushare_app* app = nullptr;
    gpushare_queue* queue = nullptr;
    ASSERT_OK(gpushare_app_create(api_.runtime, &options, &app));
    ASSERT_OK(gpushare_queue_create(app, &queue));
    if (i % 20 == 0) {
      ASSERT_TRUE(flight.Submit(queue, api_.BeTask(), false));
      ASSERT_OK(gpushare_runtime_drain(api_.runtime, api_.Deadline()));
    }
    ASSERT_OK(gpushare_queue_release(queue));
    ASSERT_OK(gpushare_app_release(app));
  }
  ASSERT_OK(gpushare_runtime_shutdown(api_.runtime, api_.Deadline()));
  EXPECT_EQ(flight.ExpectOnce()[GPUSHARE_VERDICT_OK], 500);
  api_.Close();
  api_ = Api();
  SetUp();
}

TEST_P(LimitsTest, QueuesAreBoundedAndComeBack) {
  for (int round = 0; round < 2; ++round) {
    std::vector<gpushare_queue*> queues;
    gpushare_queue* queue = nullptr;
    gpushare_status status = GPUSHARE_OK;
    while ((status = gpushare_queue_create(api_.be_app, &queue)) == GPUSHARE_OK) {
      queues.push_back(queue);
      ASSERT_LE(queues.size(), 256u);
    }
    EXPECT_EQ(status, GPUSHARE_RESOURCE_EXHAUSTED);
    EXPECT_EQ(queues.size(), 254u);  // 256, of which the fixture has two
    for (gpushare_queue* made : queues) EXPECT_OK(gpushare_queue_release(made));
  }
}

TEST_P(LimitsTest, AFullAppRefusesMoreAndLosesNothing) {
  ASSERT_OK(gpushare_runtime_quiesce(api_.runtime, api_.Deadline()));
  Flight flight;
  while (flight.Submit(api_.be_queue, api_.BeTask(1), false)) ASSERT_LE(flight.size(), 1024u);
  EXPECT_EQ(flight.size(), 1024u);
  EXPECT_NE(std::string(gpushare_last_error_message()).find("1024"), std::string::npos);
  ASSERT_OK(gpushare_runtime_resume(api_.runtime));
  ASSERT_OK(gpushare_runtime_drain(api_.runtime, api_.Deadline()));
  const gpushare_ticket last = api_.Submit(api_.BeTask(1), false);  // behind the last callback
  EXPECT_EQ(api_.Finish(last).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(flight.ExpectOnce()[GPUSHARE_VERDICT_OK], 1024);
}

}  // namespace
}  // namespace gpushare_test
