// A shutdown with every kind of work in flight, under both drives: it keeps its deadline, every
// task has ended once, and its callback has run, when it returns.

#include <chrono>
#include <string>

#include "tests/faults/flight.h"

namespace gpushare_test {
namespace {

constexpr int kRounds = 10;

class ShutdownInFlightTest : public ::testing::TestWithParam<DeviceCase> {
 protected:
  void Open(const char* faults) {
    api_.opening.profile_path = GPUSHARE_SMALL_PROFILE;
    const bool sim = std::string(GetParam().device) != "null";
    api_.Open(GetParam(), sim ? faults : nullptr, "adaptive");
  }

  // Where the device may be lost meanwhile, submits may be refused; elsewhere all are accepted.
  void SubmitOfEachKind() {
    EXPECT_OK(gpushare_queue_create(api_.lc_app, &region_queue_));
    for (int i = 0; i < kRounds; ++i) {
      flight_.Submit(api_.lc_queue, api_.LcTask(), true);
      flight_.Submit(api_.be_queue, api_.BeTask(50'000), false);
      gpushare_task_options copy = GPUSHARE_TASK_OPTIONS_INIT;
      copy.kind = GPUSHARE_TASK_MEMCPY;
      copy.copy_direction = GPUSHARE_COPY_HOST_TO_DEVICE;
      copy.copy_size_bytes = 50'000'000;
      flight_.Submit(api_.be_queue, copy, false);
      gpushare_task_options opaque = GPUSHARE_TASK_OPTIONS_INIT;
      opaque.kind = GPUSHARE_TASK_OPAQUE;
      opaque.enqueue = [](void*, void*) {};
      opaque.declared_ns = kMs;
      flight_.Submit(api_.lc_queue, opaque, true);
    }
    gpushare_region_options region = GPUSHARE_REGION_OPTIONS_INIT;
    region.bound_ns = kMs;
    void* stream = nullptr;
    region_open_ = gpushare_region_begin(region_queue_, &region, &region_, &stream) == GPUSHARE_OK;
  }
  void ExpectAllAccepted() const { EXPECT_EQ(flight_.size(), size_t{4 * kRounds}); }

  // In real time a thread may be descheduled; in polled virtual time nothing may be late. The
  // thread's virtual time runs on while nobody waits, so it shows nothing about a deadline.
  void ExpectInTime(int64_t deadline_ns) const {
    const bool sim = std::string(GetParam().device) == "sim";
    if (sim && GetParam().drive == GPUSHARE_DRIVE_THREAD) return;
    EXPECT_LE(api_.NowNs(), deadline_ns + (sim ? 0 : 2000 * kMs));
  }

  void ShutDown(int64_t patience_ns) {
    const int64_t begin_ns = api_.NowNs();
    const gpushare_status status = gpushare_runtime_shutdown(api_.runtime, begin_ns + patience_ns);
    EXPECT_TRUE(status == GPUSHARE_OK || status == GPUSHARE_DEADLINE_EXCEEDED)
        << gpushare_last_error_message();
    ExpectInTime(begin_ns + patience_ns);
    flight_.ExpectOnce();
    EXPECT_EQ(api_.RuntimeStats().tasks_pending, 0);
    if (region_open_) {
      EXPECT_OK(gpushare_ticket_release(api_.runtime, region_));
    }
    EXPECT_OK(gpushare_queue_release(region_queue_));
    api_.Close();
  }

  Api api_;
  Flight flight_;
  gpushare_ticket region_ = {0};
  gpushare_queue* region_queue_ = nullptr;
  bool region_open_ = false;
};

INSTANTIATE_TEST_SUITE_P(Devices, ShutdownInFlightTest,
                         ::testing::Values(DeviceCase{"sim", GPUSHARE_DRIVE_POLL},
                                           DeviceCase{"sim", GPUSHARE_DRIVE_THREAD},
                                           DeviceCase{"sim:realtime", GPUSHARE_DRIVE_THREAD},
                                           DeviceCase{"null", GPUSHARE_DRIVE_POLL},
                                           DeviceCase{"null", GPUSHARE_DRIVE_THREAD}),
                         [](const auto& device) { return NameOf(device.param); });

TEST_P(ShutdownInFlightTest, AtOnceEndsEveryTask) {
  Open(nullptr);
  SubmitOfEachKind();
  ExpectAllAccepted();
  ShutDown(0);
}

TEST_P(ShutdownInFlightTest, WithTimeEndsEveryTask) {
  Open(nullptr);
  SubmitOfEachKind();
  ExpectAllAccepted();
  if (GetParam().drive == GPUSHARE_DRIVE_POLL) {
    ASSERT_OK(gpushare_poll_until(api_.runtime, api_.NowNs() + kMs));
  }
  ShutDown(500 * kMs);
}

TEST_P(ShutdownInFlightTest, OverLaunchesThatHangKeepsItsDeadline) {
  Open("hang=p0.5");
  SubmitOfEachKind();
  ExpectAllAccepted();
  ShutDown(20 * kMs);
}

TEST_P(ShutdownInFlightTest, OfALostDeviceEndsEveryTask) {
  Open("device_lost=2");
  SubmitOfEachKind();
  ShutDown(20 * kMs);
}

}  // namespace
}  // namespace gpushare_test
