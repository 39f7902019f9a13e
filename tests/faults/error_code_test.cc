// The native code in the completion record of a task that failed.

#include <gpushare/gpushare.h>

#include "gtest/gtest.h"
#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

constexpr int32_t kFaultCode = 999;  // src/sim/faults.h

// The native code of a refused launch, which is no status of the library.
TEST(ErrorCodeTest, ALaunchThatTheDeviceRefusesReportsTheNativeCode) {
  for (const char* const fault : {"launch_error=1", "launch_failure=1", "device_lost=1"}) {
    for (const bool lc : {true, false}) {
      Api api;
      api.Open({"sim", GPUSHARE_DRIVE_POLL}, fault);
      const gpushare_completion_record record =
          api.Finish(api.Submit(lc ? api.LcTask() : api.BeTask(), lc));
      EXPECT_NE(record.verdict, GPUSHARE_VERDICT_OK) << fault;
      EXPECT_EQ(record.error_code, kFaultCode) << fault << (lc ? " LC" : " BE");
      api.Close();
    }
  }
}

// What waits when the device is lost gets the code too.
TEST(ErrorCodeTest, EveryTaskOfALostDeviceHasItsCode) {
  Api api;
  api.Open({"sim", GPUSHARE_DRIVE_POLL}, "device_lost=1");
  ASSERT_OK(gpushare_runtime_quiesce(api.runtime, api.Deadline()));
  const gpushare_ticket waits = api.Submit(api.BeTask(), false);
  const gpushare_ticket also_waits = api.Submit(api.BeTask(), false);
  ASSERT_OK(gpushare_runtime_resume(api.runtime));
  for (const gpushare_ticket ticket : {waits, also_waits}) {
    const gpushare_completion_record record = api.Finish(ticket);
    EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_DEVICE_LOST);
    EXPECT_EQ(record.error_code, kFaultCode);
  }
  api.Close();
}

}  // namespace
}  // namespace gpushare_test
