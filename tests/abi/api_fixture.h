// What the tests of the C API share: a runtime with an LC and a BE app on one device. Public
// headers only. Threads: each test's own.

#ifndef GPUSHARE_TESTS_ABI_API_FIXTURE_H_
#define GPUSHARE_TESTS_ABI_API_FIXTURE_H_

#include <gpushare/gpushare.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace gpushare_test {

// In nanoseconds.
constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000 * kUs;
constexpr int64_t kS = 1'000 * kMs;

#define EXPECT_OK(call) EXPECT_EQ((call), GPUSHARE_OK) << gpushare_last_error_message()
#define ASSERT_OK(call) ASSERT_EQ((call), GPUSHARE_OK) << gpushare_last_error_message()

// The call fails with this code and a sentence that contains `text` and ends with a full stop.
#define EXPECT_FAILS(call, code, text)                                                   \
  do {                                                                                   \
    EXPECT_EQ((call), (code)) << gpushare_last_error_message();                          \
    const std::string message_ = gpushare_last_error_message();                          \
    EXPECT_NE(message_.find(text), std::string::npos) << message_;                       \
    EXPECT_TRUE(!message_.empty() && (message_.back() == '.' || message_.back() == '?')) \
        << message_;                                                                     \
  } while (false)

struct DeviceCase {
  const char* device;
  gpushare_drive drive;
};

inline std::string NameOf(const DeviceCase& device_case) {
  std::string name = device_case.device;
  std::replace(name.begin(), name.end(), ':', '_');
  return name + (device_case.drive == GPUSHARE_DRIVE_POLL ? "Polled" : "Threaded");
}

inline gpushare_app_options AppOptionsOf(gpushare_app_class app_class, const char* name) {
  gpushare_app_options options = GPUSHARE_APP_OPTIONS_INIT;
  options.app_class = app_class;
  options.name = name;
  return options;
}

// A runtime with one queue for each class, and two kernels of the built-in profile.
class Api {
 public:
  void Open(const DeviceCase& device_case, const char* faults = nullptr,
            const char* policy = "adaptive:evict") {
    opening.device = device_case.device;
    opening.drive = device_case.drive;
    opening.policy = policy;
    opening.sim_faults = faults;
    ASSERT_OK(gpushare_runtime_create(&opening, &runtime));
    const gpushare_app_options lc = AppOptionsOf(GPUSHARE_CLASS_LATENCY_CRITICAL, "service");
    const gpushare_app_options be = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, "training");
    ASSERT_OK(gpushare_app_create(runtime, &lc, &lc_app));
    ASSERT_OK(gpushare_app_create(runtime, &be, &be_app));
    ASSERT_OK(gpushare_queue_create(lc_app, &lc_queue));
    ASSERT_OK(gpushare_queue_create(be_app, &be_queue));
    gpushare_kernel_options kernel = GPUSHARE_KERNEL_OPTIONS_INIT;
    kernel.name = "chain1";
    ASSERT_OK(gpushare_kernel_register(runtime, &kernel, &graph));
    kernel.name = "sincos_27us";
    ASSERT_OK(gpushare_kernel_register(runtime, &kernel, &sincos));
  }

  // Shuts down and releases everything that is left; every release must succeed.
  void Close() {
    if (runtime == nullptr) return;
    EXPECT_OK(gpushare_runtime_shutdown(runtime, Deadline()));
    EXPECT_OK(gpushare_kernel_release(graph));
    EXPECT_OK(gpushare_kernel_release(sincos));
    EXPECT_OK(gpushare_queue_release(lc_queue));
    EXPECT_OK(gpushare_queue_release(be_queue));
    EXPECT_OK(gpushare_app_release(lc_app));
    EXPECT_OK(gpushare_app_release(be_app));
    EXPECT_OK(gpushare_runtime_release(runtime));
    runtime = nullptr;
  }

  int64_t NowNs() const {
    int64_t now_ns = 0;
    EXPECT_OK(gpushare_now_ns(runtime, &now_ns));
    return now_ns;
  }
  // Ten seconds from now on the device's clock: a test that hangs fails instead.
  int64_t Deadline() const { return NowNs() + 10 * kS; }

  gpushare_runtime_stats RuntimeStats() const {
    gpushare_runtime_stats stats = GPUSHARE_RUNTIME_STATS_INIT;
    EXPECT_OK(gpushare_runtime_stats_get(runtime, &stats));
    return stats;
  }
  static gpushare_app_stats AppStats(gpushare_app* app) {
    gpushare_app_stats stats = GPUSHARE_APP_STATS_INIT;
    EXPECT_OK(gpushare_app_stats_get(app, &stats));
    return stats;
  }

  gpushare_task_options LcTask() const {
    gpushare_task_options options = GPUSHARE_TASK_OPTIONS_INIT;
    options.kernel = graph;
    return options;
  }
  gpushare_task_options BeTask(int64_t block_tasks = 1000) const {
    gpushare_task_options options = GPUSHARE_TASK_OPTIONS_INIT;
    options.kernel = sincos;
    options.block_tasks = block_tasks;
    return options;
  }

  gpushare_ticket Submit(const gpushare_task_options& options, bool lc) const {
    gpushare_ticket ticket = {0};
    if (lc) {
      EXPECT_OK(gpushare_submit_lc(lc_queue, &options, &ticket));
    } else {
      EXPECT_OK(gpushare_submit_be(be_queue, &options, &ticket));
    }
    return ticket;
  }

  // Waits, takes the record, releases.
  gpushare_completion_record Finish(gpushare_ticket ticket) const {
    gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
    EXPECT_OK(gpushare_ticket_wait(runtime, ticket, Deadline()));
    EXPECT_OK(gpushare_ticket_record(runtime, ticket, &record));
    EXPECT_OK(gpushare_ticket_release(runtime, ticket));
    return record;
  }

  gpushare_runtime_options opening = GPUSHARE_RUNTIME_OPTIONS_INIT;  // what Open starts from
  gpushare_runtime* runtime = nullptr;
  gpushare_app* lc_app = nullptr;
  gpushare_app* be_app = nullptr;
  gpushare_queue* lc_queue = nullptr;
  gpushare_queue* be_queue = nullptr;
  gpushare_kernel* graph = nullptr;
  gpushare_kernel* sincos = nullptr;
};

}  // namespace gpushare_test

#endif  // GPUSHARE_TESTS_ABI_API_FIXTURE_H_
