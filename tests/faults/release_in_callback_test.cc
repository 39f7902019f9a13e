// Releases inside a completion callback: of the task's own queue, app and kernel, and of the
// runtime's last reference, which only a call outside of callbacks may give back.

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

class ReleaseInCallbackTest : public ::testing::TestWithParam<DeviceCase> {};

INSTANTIATE_TEST_SUITE_P(Devices, ReleaseInCallbackTest,
                         ::testing::Values(DeviceCase{"sim", GPUSHARE_DRIVE_POLL},
                                           DeviceCase{"sim", GPUSHARE_DRIVE_THREAD},
                                           DeviceCase{"null", GPUSHARE_DRIVE_POLL},
                                           DeviceCase{"null", GPUSHARE_DRIVE_THREAD}),
                         [](const auto& device) { return NameOf(device.param); });

struct Released {
  Api* api;
  gpushare_status queue = GPUSHARE_UNKNOWN;
  gpushare_status app = GPUSHARE_UNKNOWN;
  gpushare_status kernel = GPUSHARE_UNKNOWN;
};

TEST_P(ReleaseInCallbackTest, TheTasksOwnHandlesGoAndTheRuntimeStaysUsable) {
  Api api;
  api.opening.profile_path = GPUSHARE_SMALL_PROFILE;
  api.Open(GetParam());
  Released released = {&api};
  gpushare_task_options task = api.BeTask();
  task.callback_user = &released;
  task.callback = [](void* user, const gpushare_completion_record*) {
    auto& here = *static_cast<Released*>(user);
    here.queue = gpushare_queue_release(here.api->be_queue);
    here.app = gpushare_app_release(here.api->be_app);
    here.kernel = gpushare_kernel_release(here.api->sincos);
  };
  task.detached = 1;
  ASSERT_OK(gpushare_submit_be(api.be_queue, &task, nullptr));
  ASSERT_OK(gpushare_runtime_drain(api.runtime, api.Deadline()));
  ASSERT_OK(gpushare_runtime_shutdown(api.runtime, api.Deadline()));  // the callback has run
  EXPECT_EQ(released.queue, GPUSHARE_OK);
  EXPECT_EQ(released.app, GPUSHARE_OK);
  EXPECT_EQ(released.kernel, GPUSHARE_OK);
  EXPECT_OK(gpushare_kernel_release(api.graph));
  EXPECT_OK(gpushare_queue_release(api.lc_queue));
  EXPECT_OK(gpushare_app_release(api.lc_app));
  EXPECT_OK(gpushare_runtime_release(api.runtime));
}

TEST_P(ReleaseInCallbackTest, TheRuntimesLastReferenceIsRefusedAndStays) {
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.profile_path = GPUSHARE_SMALL_PROFILE;
  options.device = GetParam().device;
  options.drive = GetParam().drive;
  struct Last {
    gpushare_runtime* runtime = nullptr;
    gpushare_app* app = nullptr;
    gpushare_queue* queue = nullptr;
    gpushare_status queue_status = GPUSHARE_UNKNOWN;
    gpushare_status app_status = GPUSHARE_UNKNOWN;
    gpushare_status runtime_status = GPUSHARE_UNKNOWN;
  } last;
  ASSERT_OK(gpushare_runtime_create(&options, &last.runtime));
  const gpushare_app_options app = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, "training");
  ASSERT_OK(gpushare_app_create(last.runtime, &app, &last.app));
  ASSERT_OK(gpushare_queue_create(last.app, &last.queue));
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  task.kind = GPUSHARE_TASK_OPAQUE;
  task.enqueue = [](void*, void*) {};
  task.declared_ns = 1000;
  task.callback_user = &last;
  task.callback = [](void* user, const gpushare_completion_record*) {
    auto& here = *static_cast<Last*>(user);
    here.queue_status = gpushare_queue_release(here.queue);
    here.app_status = gpushare_app_release(here.app);
    here.runtime_status = gpushare_runtime_release(here.runtime);
  };
  ASSERT_OK(gpushare_submit_be(last.queue, &task, nullptr));
  int64_t now_ns = 0;
  ASSERT_OK(gpushare_now_ns(last.runtime, &now_ns));
  ASSERT_OK(gpushare_runtime_shutdown(last.runtime, now_ns + 10'000'000'000));
  EXPECT_EQ(last.queue_status, GPUSHARE_OK);
  EXPECT_EQ(last.app_status, GPUSHARE_OK);
  EXPECT_EQ(last.runtime_status, GPUSHARE_FAILED_PRECONDITION);
  EXPECT_OK(gpushare_runtime_release(last.runtime));
}

}  // namespace
}  // namespace gpushare_test
