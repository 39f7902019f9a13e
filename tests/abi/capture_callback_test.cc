// What a capture callback may call, from inside the C layer: on a device of the test's own that
// captures without a GPU.

#include <gpushare/gpushare.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings/c/handles.h"
#include "bindings/c/objects.h"
#include "gtest/gtest.h"
#include "src/core/base/mutex.h"
#include "src/core/base/status.h"
#include "src/core/policies/registry.h"
#include "src/core/seams/capture_call.h"
#include "src/models/online/online_model.h"
#include "src/null/null_device.h"
#include "tests/abi/api_fixture.h"
#include "tests/core/forwarding_device.h"

namespace gpushare::abi {
namespace {

// A call that blocks longer than this is taken for blocked for ever.
constexpr std::chrono::seconds kSoon{30};

// The null device, which runs a kernel's capture as a GPU does.
class CapturingDevice final : public core::ForwardingDevice {
 public:
  CapturingDevice() : ForwardingDevice(null::MakeNullDevice()) {}
  absl::Status PrepareKernel(const core::KernelDesc& kernel) override {
    if (kernel.graph() != nullptr && kernel.graph()->capture != nullptr) {
      GPUSHARE_RETURN_IF_ERROR(core::CallCapture(kernel, nullptr, 132));
    }
    return inner().PrepareKernel(kernel);
  }
};

class CaptureCallbackTest : public testing::Test {
 protected:
  void SetUp() override {
    auto object = std::make_shared<RuntimeObject>(Log(nullptr, nullptr));
    object->device_name = "null";
    object->shutdown_timeout_ns = int64_t{30} * 1000 * 1000 * 1000;
    auto device = std::make_unique<CapturingDevice>();
    auto model = models::MakeOnlineModel(device->capabilities().profile);
    auto scheduler = core::Scheduler::Create(core::SchedulerOptions(), std::move(device),
                                             std::move(model), *core::MakePolicy("adaptive"))
                         .value();
    object->scheduler = std::move(scheduler);
    ASSERT_TRUE(object->scheduler->StartThread().ok());
    runtime_ = MakeHandle<gpushare_runtime>(std::move(object)).value();
    ASSERT_EQ(Register("plain", nullptr), GPUSHARE_OK) << gpushare_last_error_message();
  }
  void TearDown() override {
    for (gpushare_kernel* kernel : kernels_) EXPECT_OK(gpushare_kernel_release(kernel));
    EXPECT_OK(gpushare_runtime_release(runtime_));
  }

  // A graph whose capture is `capture`, a plain kernel without one.
  gpushare_status Register(const std::string& name, const std::function<int32_t()>* capture) {
    gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
    options.name = name.c_str();
    options.kind = capture == nullptr ? GPUSHARE_TASK_KERNEL : GPUSHARE_TASK_GRAPH;
    if (capture != nullptr) {
      options.capture = [](void* user, void*, int32_t) {
        return (*static_cast<const std::function<int32_t()>*>(user))();
      };
      options.capture_user = const_cast<std::function<int32_t()>*>(capture);  // it is not changed
    }
    gpushare_kernel* kernel = nullptr;
    const gpushare_status status = gpushare_kernel_register(runtime_, &options, &kernel);
    const core::MutexLock lock(&mutex_);
    if (status == GPUSHARE_OK) kernels_.push_back(kernel);
    return status;
  }
  bool IsKnown(const char* name) {
    gpushare_kernel_info info = GPUSHARE_KERNEL_INFO_INIT;
    return gpushare_kernel_info_by_name(runtime_, name, &info) == GPUSHARE_OK;
  }
  // An app and a task of it, from creation to release, without a wait.
  void RunOneTask() {
    const gpushare_app_options options =
        gpushare_test::AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, "made inside");
    gpushare_app* app = nullptr;
    gpushare_queue* queue = nullptr;
    ASSERT_OK(gpushare_app_create(runtime_, &options, &app));
    ASSERT_OK(gpushare_queue_create(app, &queue));
    gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
    task.kind = GPUSHARE_TASK_KERNEL;
    task.kernel = kernels_.front();
    task.block_tasks = 4;
    gpushare_ticket ticket = {0};
    ASSERT_OK(gpushare_submit_be(queue, &task, &ticket));
    EXPECT_FAILS(gpushare_ticket_wait(runtime_, ticket, GPUSHARE_NEVER),
                 GPUSHARE_FAILED_PRECONDITION, "callback");
    gpushare_bool complete = 0;
    while (complete == 0) ASSERT_OK(gpushare_ticket_poll(runtime_, ticket, &complete));
    ASSERT_OK(gpushare_ticket_release(runtime_, ticket));
    EXPECT_OK(gpushare_queue_release(queue));
    EXPECT_OK(gpushare_app_release(app));
  }

  gpushare_runtime* runtime_ = nullptr;
  core::Mutex mutex_;
  std::vector<gpushare_kernel*> kernels_;
};

TEST_F(CaptureCallbackTest, ItMayCallWhatDoesNotWait) {
  int calls = 0;
  const std::function<int32_t()> capture = [&] {
    ++calls;
    EXPECT_TRUE(IsKnown("plain"));
    EXPECT_FALSE(IsKnown("graph")) << "not before it is registered";
    RunOneTask();
    return 0;
  };
  EXPECT_OK(Register("graph", &capture));
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(IsKnown("graph"));
}

TEST_F(CaptureCallbackTest, ItMayNotRegister) {
  const std::function<int32_t()> capture = [&] {
    EXPECT_FAILS(Register("another", nullptr), GPUSHARE_FAILED_PRECONDITION, "capture callback");
    EXPECT_FAILS(Register("graph", nullptr), GPUSHARE_FAILED_PRECONDITION, "capture callback");
    gpushare_fused_kernel_options fused = GPUSHARE_FUSED_KERNEL_OPTIONS_INIT;
    gpushare_fused_kernel* made = nullptr;
    EXPECT_FAILS(gpushare_fused_kernel_register(runtime_, &fused, &made),
                 GPUSHARE_FAILED_PRECONDITION, "capture callback");
    return 0;
  };
  EXPECT_OK(Register("graph", &capture));
  EXPECT_OK(Register("another", nullptr)) << "afterwards all is as it was";
}

TEST_F(CaptureCallbackTest, OtherThreadsGoOnMeanwhile) {
  std::promise<void> inside;
  std::promise<void> go_on;
  const std::function<int32_t()> capture = [&] {
    inside.set_value();
    EXPECT_EQ(go_on.get_future().wait_for(kSoon), std::future_status::ready)
        << "another thread is held up";
    return 0;
  };
  std::future<gpushare_status> registered =
      std::async(std::launch::async, [&] { return Register("graph", &capture); });
  inside.get_future().wait();
  EXPECT_TRUE(IsKnown("plain"));
  const gpushare_app_options options =
      gpushare_test::AppOptionsOf(GPUSHARE_CLASS_LATENCY_CRITICAL, "beside");
  gpushare_app* app = nullptr;
  EXPECT_OK(gpushare_app_create(runtime_, &options, &app));
  EXPECT_OK(gpushare_app_release(app));
  // The name is reserved from the start, and this call does not wait for the first registration.
  EXPECT_FAILS(Register("graph", nullptr), GPUSHARE_ALREADY_EXISTS, "graph");
  go_on.set_value();
  EXPECT_EQ(registered.get(), GPUSHARE_OK);
  EXPECT_TRUE(IsKnown("graph"));
}

TEST_F(CaptureCallbackTest, ARegistrationThatFailsLeavesItsName) {
  const std::function<int32_t()> capture = [] { return 7; };
  EXPECT_FAILS(Register("graph", &capture), GPUSHARE_INVALID_ARGUMENT, "answers 7");
  EXPECT_FALSE(IsKnown("graph"));
  EXPECT_OK(Register("graph", nullptr));
}

// The thread may wait and register afterwards.
TEST_F(CaptureCallbackTest, AnExceptionFailsTheRegistrationAndIsNamed) {
  const std::function<int32_t()> capture = []() -> int32_t { throw std::runtime_error("boom"); };
  EXPECT_FAILS(Register("graph", &capture), GPUSHARE_INVALID_ARGUMENT,
               "The capture callback of graph 'graph' threw std::runtime_error: boom.");
  EXPECT_OK(gpushare_runtime_drain(runtime_, GPUSHARE_NEVER));
  EXPECT_OK(Register("graph", nullptr));
}

}  // namespace
}  // namespace gpushare::abi
