// Launches that never report cost their lane. The runtime gets another one, or says that its device
// is lost: it never accepts work that it cannot run. On the simulated device, through the C API.

#include <cstdint>
#include <string>
#include <tuple>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

constexpr int64_t kMinuteNs = int64_t{60} * 1000 * 1000 * 1000;

using LostLanesCase = std::tuple<const char*, const char*>;  // policy, fault

class LostLanes : public testing::TestWithParam<LostLanesCase> {
 protected:
  void SetUp() override {
    api_.Open({"sim", GPUSHARE_DRIVE_POLL}, std::get<1>(GetParam()), std::get<0>(GetParam()));
  }
  void TearDown() override { api_.Close(); }

  // Longer than two hangs that follow each other.
  int64_t InTenMinutes() const { return api_.Deadline() + 10 * kMinuteNs; }

  // The verdict, or PENDING when the task does not complete.
  gpushare_verdict Run(bool lc) {
    gpushare_ticket ticket = {0};
    const gpushare_task_options task = lc ? api_.LcTask() : api_.BeTask(10000);
    const gpushare_status status = lc ? gpushare_submit_lc(api_.lc_queue, &task, &ticket)
                                      : gpushare_submit_be(api_.be_queue, &task, &ticket);
    if (status != GPUSHARE_OK) {
      EXPECT_EQ(status, GPUSHARE_UNAVAILABLE) << gpushare_last_error_message();
      EXPECT_EQ(api_.RuntimeStats().device_lost, 1) << gpushare_last_error_message();
      return GPUSHARE_VERDICT_DEVICE_LOST;
    }
    if (gpushare_ticket_wait(api_.runtime, ticket, InTenMinutes()) != GPUSHARE_OK) {
      return GPUSHARE_VERDICT_PENDING;
    }
    gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
    EXPECT_OK(gpushare_ticket_record(api_.runtime, ticket, &record));
    EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
    return record.verdict;
  }

  Api api_;
};

TEST_P(LostLanes, EveryTaskCompletesOrTheDeviceIsReportedLost) {
  int completed = 0;
  int timed_out = 0;
  for (int i = 0; i < 1500; ++i) {
    const gpushare_verdict verdict = Run(i % 2 == 1);
    ASSERT_NE(verdict, GPUSHARE_VERDICT_PENDING)
        << "task " << i << " waits for ever, after " << timed_out << " were given up";
    if (verdict == GPUSHARE_VERDICT_DEVICE_LOST) break;
    ++completed;
    timed_out += verdict == GPUSHARE_VERDICT_TIMED_OUT ? 1 : 0;
  }
  // More than any place has lanes.
  EXPECT_GT(timed_out, 14);
  EXPECT_EQ(api_.RuntimeStats().hung, timed_out);
  if (completed < 1500) {
    EXPECT_EQ(api_.RuntimeStats().device_lost, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, LostLanes,
    testing::Combine(testing::Values("adaptive", "priority", "fifo", "smguard", "baymax"),
                     testing::Values("hang=p0.04", "dropped_completion=p0.04")),
    [](const testing::TestParamInfo<LostLanesCase>& tested) {
      return std::string(std::get<0>(tested.param)) +
             (std::string(std::get<1>(tested.param)).front() == 'h' ? "Hang" : "DroppedCompletion");
    });

}  // namespace
}  // namespace gpushare_test
