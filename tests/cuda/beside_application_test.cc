// On a GPU: the library beside kernels, copies and captures of the application. Nothing of the
// application may be broken, and no call of the library may wait for it without a limit.
//
// Every wait and every kernel has a bound; all tests together take less than a minute.

#include <gpushare/gpushare.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cuda/application_work.h"
#include "tests/cuda/reservations_kernels.h"

namespace gpushare::cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1'000 * kMs;
constexpr int64_t kPatienceNs = 20 * kSecond;  // for one wait of a test
constexpr uint32_t kRecords = 1024;            // more are counted and dropped

int64_t MsSince(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
}

void SleepMs(int64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

class BesideApplicationTest : public testing::Test {
 protected:
  void SetUp() override {
    sms_ = SmCount();
    if (sms_ == 0) GTEST_SKIP() << "There is no GPU.";
    stream_ = MakeApplicationStream();
    ASSERT_NE(stream_, nullptr);
  }

  void TearDown() override {
    Close();
    if (stream_ != nullptr) {
      EXPECT_TRUE(AwaitApplicationStream(stream_));
    }
    DestroyApplicationStream(stream_);
    if (log_.records != nullptr) FreeLog(log_);
  }

  static gpushare_runtime_options Options(const char* policy = nullptr) {
    gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
    options.device = "cuda";
    options.policy = policy;
    options.shutdown_timeout_ns = kSecond;
    return options;
  }

  void Open(const gpushare_runtime_options& options = Options()) {
    ASSERT_TRUE(Works(gpushare_runtime_create(&options, &runtime_)));
    gpushare_app_options app = GPUSHARE_APP_OPTIONS_INIT;
    app.name = "service";
    app.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
    app.p99_bound = 1.5;
    app.p99_alone_ns = 10 * kMs;
    ASSERT_TRUE(Works(gpushare_app_create(runtime_, &app, &lc_app_)));
    ASSERT_TRUE(Works(gpushare_queue_create(lc_app_, &lc_)));
    app = GPUSHARE_APP_OPTIONS_INIT;
    app.name = "batch";
    app.app_class = GPUSHARE_CLASS_BEST_EFFORT;
    ASSERT_TRUE(Works(gpushare_app_create(runtime_, &app, &be_app_)));
    ASSERT_TRUE(Works(gpushare_queue_create(be_app_, &be_)));
  }

  void Close() {
    if (runtime_ == nullptr) return;
    for (gpushare_kernel* kernel : kernels_) gpushare_kernel_release(kernel);
    kernels_.clear();
    gpushare_queue_release(lc_);
    gpushare_queue_release(be_);
    gpushare_app_release(lc_app_);
    gpushare_app_release(be_app_);
    gpushare_runtime_release(std::exchange(runtime_, nullptr));
  }

  static testing::AssertionResult Works(gpushare_status status) {
    if (status == GPUSHARE_OK) return testing::AssertionSuccess();
    return testing::AssertionFailure()
           << gpushare_status_name(status) << ": " << gpushare_last_error_message();
  }

  int64_t NowNs() {
    int64_t now_ns = 0;
    EXPECT_TRUE(Works(gpushare_now_ns(runtime_, &now_ns)));
    return now_ns;
  }

  gpushare_kernel* Register(const gpushare_kernel_options& options) {
    gpushare_kernel* kernel = nullptr;
    EXPECT_TRUE(Works(gpushare_kernel_register(runtime_, &options, &kernel))) << options.name;
    if (kernel != nullptr) kernels_.push_back(kernel);
    return kernel;
  }

  gpushare_kernel* RegisterMatmul(const char* name, int64_t size = 512) {
    gpushare_library_call call = GPUSHARE_LIBRARY_CALL_INIT;
    call.operation = GPUSHARE_LIBRARY_MATMUL;
    call.type = GPUSHARE_FLOAT16;
    call.m = call.n = call.k = size;
    gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
    options.name = name;
    options.kind = GPUSHARE_TASK_LIBRARY;
    options.library = &call;
    return Register(options);
  }

  // Block tasks that spin, for workers that one SM holds once.
  gpushare_kernel* RegisterSpinning(const char* name, int64_t block_task_ns, bool yields = false) {
    gpushare_kernel_variants made = {};
    EXPECT_EQ(gpushare_test_record_variants(&made), 0);
    gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
    record.block_task_ns = block_task_ns;
    gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
    options.name = name;
    options.original_function = made.original_function;
    options.worker_function = made.worker_function;
    options.slice_function = made.slice_function;
    options.threads_per_block = static_cast<int32_t>(made.threads_per_block);
    options.dynamic_shared_memory_bytes = static_cast<int32_t>(made.dynamic_shared_bytes);
    options.workers_per_sm_max = 1;
    options.evictable = GPUSHARE_CHOICE_YES;
    options.simulation = &record;
    if (yields) options.yield_interval_ns = 20'000;
    return Register(options);
  }

  gpushare_kernel* RegisterChain(const char* name, void* graph, bool measure_places) {
    gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
    options.name = name;
    options.kind = GPUSHARE_TASK_GRAPH;
    options.graph = graph;
    options.measure_places = measure_places ? 1 : 0;
    return Register(options);
  }

  gpushare_task_options Spinning(gpushare_kernel* kernel, int64_t block_tasks, int64_t spin_ns) {
    if (log_.records == nullptr) {
      EXPECT_TRUE(MakeLog(kRecords, &log_));
    }
    params_ = {log_, static_cast<uint32_t>(spin_ns), 1};
    gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
    task.kernel = kernel;
    task.block_tasks = block_tasks;
    task.arguments = &params_;
    task.arguments_size_bytes = sizeof(params_);
    return task;
  }

  // Waits, releases the ticket and returns how the task ended.
  gpushare_verdict VerdictOf(gpushare_ticket ticket) {
    EXPECT_TRUE(Works(gpushare_ticket_wait(runtime_, ticket, NowNs() + kPatienceNs)));
    gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
    EXPECT_TRUE(Works(gpushare_ticket_record(runtime_, ticket, &record)));
    EXPECT_TRUE(Works(gpushare_ticket_release(runtime_, ticket)));
    return record.verdict;
  }

  int sms_ = 0;
  void* stream_ = nullptr;  // of the application
  gpushare_runtime* runtime_ = nullptr;
  gpushare_app* lc_app_ = nullptr;
  gpushare_app* be_app_ = nullptr;
  gpushare_queue* lc_ = nullptr;
  gpushare_queue* be_ = nullptr;
  std::vector<gpushare_kernel*> kernels_;
  BlockLog log_ = {};
  RecordParams params_ = {};
};

// Attack 1: allocations, loads and waits of registration within another thread's capture.
TEST_F(BesideApplicationTest, RegistrationLeavesACaptureInGlobalModeWhole) {
  ASSERT_NO_FATAL_FAILURE(Open());
  void* const graph = MakeSpinningChain(4, 100'000);
  ASSERT_NE(graph, nullptr);
  ASSERT_TRUE(BeginGlobalCapture(stream_));
  EXPECT_TRUE(Spin(stream_, 1, 1000));
  std::thread registrar([&] {
    RegisterMatmul("product");
    RegisterSpinning("yielding", 100'000, true);
    RegisterChain("chain", graph, true);
    gpushare_kernel_release(kernels_.back());
    kernels_.pop_back();
    RegisterChain("chain again", graph, false);  // frees the instances of the first
  });
  registrar.join();
  EXPECT_EQ(EndCapture(stream_), 1);
  DestroySpinningChain(graph);
}

// Not with library calls: their handles end with a wait for the device (docs/threading.md).
TEST_F(BesideApplicationTest, OpeningAndClosingLeaveACaptureInGlobalModeWhole) {
  ASSERT_TRUE(BeginGlobalCapture(stream_));
  EXPECT_TRUE(Spin(stream_, 1, 1000));
  std::thread opener([&] {
    Open();
    if (runtime_ != nullptr) RegisterSpinning("yielding", 100'000, true);
    Close();
  });
  opener.join();
  EXPECT_EQ(EndCapture(stream_), 1);
}

// Attack 2: memory that registration frees.
TEST_F(BesideApplicationTest, RegistrationDoesNotWaitForAKernelOfTheApplication) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NE(RegisterMatmul("first"), nullptr);  // loads the library and the product's code
  ASSERT_TRUE(Spin(stream_, 1, 4 * kSecond));
  const auto begin = Clock::now();
  EXPECT_NE(RegisterMatmul("second"), nullptr);
  const int64_t took_ms = MsSince(begin);
  std::printf("registration beside a kernel of 4 s: %lld ms\n", static_cast<long long>(took_ms));
  EXPECT_LT(took_ms, 1500);
  EXPECT_FALSE(StreamIsIdle(stream_)) << "the kernel ended before the registration";
}

TEST_F(BesideApplicationTest, SubmitsDoNotWaitForARegistrationBesideABeKernel) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NE(RegisterMatmul("first"), nullptr);
  gpushare_kernel* const be_kernel = RegisterSpinning("batch work", kMs);
  gpushare_kernel* const lc_kernel = RegisterSpinning("query", 10'000);
  ASSERT_TRUE(be_kernel != nullptr && lc_kernel != nullptr);
  // Opaque for the device: an application's kernel on two SMs, which no eviction ends.
  ASSERT_TRUE(Spin(stream_, 2, 2 * kSecond));
  const gpushare_task_options be = Spinning(be_kernel, int64_t{sms_} * 1000, kMs);
  gpushare_ticket be_ticket = {0};
  ASSERT_TRUE(Works(gpushare_submit_be(be_, &be, &be_ticket)));
  std::atomic<bool> registered{false};
  std::thread registrar([&] {
    RegisterMatmul("second");
    registered = true;
  });
  int64_t longest_ms = 0;
  int submits = 0;
  const gpushare_task_options query = Spinning(lc_kernel, 8, 10'000);
  const auto begin = Clock::now();
  while ((!registered || submits < 20) && MsSince(begin) < 10'000) {
    gpushare_ticket ticket = {0};
    const auto submit = Clock::now();
    ASSERT_TRUE(Works(gpushare_submit_lc(lc_, &query, &ticket)));
    longest_ms = std::max(longest_ms, MsSince(submit));
    ++submits;
    EXPECT_EQ(VerdictOf(ticket), GPUSHARE_VERDICT_OK);
    SleepMs(1);
  }
  registrar.join();
  std::printf("longest of %d submits beside a registration: %lld ms\n", submits,
              static_cast<long long>(longest_ms));
  EXPECT_LT(longest_ms, 300);
  gpushare_ticket_cancel(runtime_, be_ticket);
  VerdictOf(be_ticket);
}

TEST_F(BesideApplicationTest, ReleaseReturnsBesideAKernelOfTheApplication) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NE(RegisterMatmul("product"), nullptr);
  ASSERT_TRUE(Spin(stream_, 1, 5 * kSecond));
  ASSERT_TRUE(Spin(stream_, 1, kSecond));
  const auto begin = Clock::now();
  Close();
  const int64_t took_ms = MsSince(begin);
  std::printf("release beside kernels of 6 s: %lld ms\n", static_cast<long long>(took_ms));
  EXPECT_LT(took_ms, 4000) << "1 s of shutdown_timeout_ns, 2 s to free the device";
  EXPECT_FALSE(StreamIsIdle(stream_)) << "the kernel ended before the release";
  ASSERT_TRUE(AwaitApplicationStream(stream_));
  SleepMs(500);  // what was left is freed now
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_NE(RegisterMatmul("product"), nullptr) << "the next runtime works";
}

// Attack 4: a launch of a copy of pageable memory returns when the copy has ended.
TEST_F(BesideApplicationTest, APageableBeCopyDoesNotHoldTheScheduler) {
  constexpr size_t kBytes = size_t{2} << 30;
  ASSERT_NO_FATAL_FAILURE(Open(Options("priority")));
  gpushare_kernel* const kernel = RegisterSpinning("query", 10'000);
  ASSERT_NE(kernel, nullptr);
  void* const device = MakeDeviceMemory(kBytes);
  const std::unique_ptr<char, void (*)(void*)> host(static_cast<char*>(std::malloc(kBytes)),
                                                    &std::free);
  ASSERT_TRUE(device != nullptr && host != nullptr);
  std::memset(host.get(), 1, kBytes);
  gpushare_task_options copy = GPUSHARE_TASK_OPTIONS_INIT;
  copy.kind = GPUSHARE_TASK_MEMCPY;
  copy.copy_destination = host.get();
  copy.copy_source = device;
  copy.copy_size_bytes = static_cast<int64_t>(kBytes);
  copy.copy_direction = GPUSHARE_COPY_DEVICE_TO_HOST;
  copy.copy_pageable = 1;
  gpushare_ticket copied = {0};
  const auto begin = Clock::now();
  ASSERT_TRUE(Works(gpushare_submit_be(be_, &copy, &copied)));
  SleepMs(5);
  // A query of two tasks, of which the second waits for the scheduler.
  int64_t longest_ms = 0;
  int queries = 0;
  gpushare_bool complete = 0;
  while (complete == 0 && MsSince(begin) < 10'000) {
    const auto query = Clock::now();
    gpushare_ticket first = {0};
    gpushare_ticket second = {0};
    gpushare_task_options task = Spinning(kernel, 8, 10'000);
    ASSERT_TRUE(Works(gpushare_submit_lc(lc_, &task, &first)));
    task.wait_tickets = &first;
    task.wait_ticket_count = 1;
    ASSERT_TRUE(Works(gpushare_submit_lc(lc_, &task, &second)));
    EXPECT_EQ(VerdictOf(second), GPUSHARE_VERDICT_OK);
    longest_ms = std::max(longest_ms, MsSince(query));
    EXPECT_EQ(VerdictOf(first), GPUSHARE_VERDICT_OK);
    ++queries;
    ASSERT_TRUE(Works(gpushare_ticket_poll(runtime_, copied, &complete)));
  }
  std::printf("a pageable copy of 2 GB took %lld ms; longest of %d queries beside it: %lld ms\n",
              static_cast<long long>(MsSince(begin)), queries, static_cast<long long>(longest_ms));
  EXPECT_EQ(VerdictOf(copied), GPUSHARE_VERDICT_OK);
  EXPECT_LT(longest_ms, 40);
  EXPECT_GT(queries, 3) << "the scheduler answered no query while it copied";
  FreeDeviceMemory(device);
}

// Attack 5: copies of the application in front of the four bytes that say whether a launch claims.
TEST_F(BesideApplicationTest, AWorkerLaunchBesideLargeCopiesIsNoHang) {
  constexpr size_t kBytes = size_t{4} << 30;
  gpushare_runtime_options options = Options();
  options.hang_floor_ns = kSecond;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  gpushare_kernel* const kernel = RegisterSpinning("batch work", kMs);
  ASSERT_NE(kernel, nullptr);
  void* const device = MakeDeviceMemory(kBytes);
  void* const host = MakePinnedMemory(kBytes);
  ASSERT_TRUE(device != nullptr && host != nullptr);
  std::atomic<bool> stop{false};
  std::atomic<int> copies{0};
  std::thread copier([&] {
    std::vector<void*> streams(4);
    for (void*& stream : streams) stream = MakeApplicationStream();
    const auto begin = Clock::now();
    while (!stop && MsSince(begin) < 20'000) {
      for (void* const stream : streams) {
        for (int i = 0; i < 2; ++i) copies += CopyToHost(host, device, kBytes, stream) ? 1 : 0;
      }
      for (void* const stream : streams) AwaitApplicationStream(stream);
    }
    for (void* const stream : streams) DestroyApplicationStream(stream);
  });
  const gpushare_task_options be = Spinning(kernel, int64_t{sms_} * 5000, kMs);
  gpushare_ticket ticket = {0};
  const auto begin = Clock::now();
  EXPECT_TRUE(Works(gpushare_submit_be(be_, &be, &ticket)));
  EXPECT_EQ(VerdictOf(ticket), GPUSHARE_VERDICT_OK);
  const int64_t took_ms = MsSince(begin);
  stop = true;
  copier.join();
  gpushare_runtime_stats stats = GPUSHARE_RUNTIME_STATS_INIT;
  EXPECT_TRUE(Works(gpushare_runtime_stats_get(runtime_, &stats)));
  std::printf("workers for %lld ms beside %d copies of 4 GB; hung %lld\n",
              static_cast<long long>(took_ms), copies.load(), static_cast<long long>(stats.hung));
  EXPECT_GT(took_ms, 3000) << "the workers ended before they could seem to hang";
  EXPECT_EQ(stats.hung, 0);
  FreePinnedMemory(host);
  FreeDeviceMemory(device);
}

// Attack 6: an upload behind a kernel that fills the device.
TEST_F(BesideApplicationTest, AGraphIsRegisteredBesideAKernelThatFillsTheDevice) {
  ASSERT_NO_FATAL_FAILURE(Open());
  void* const graph = MakeSpinningChain(4, 100'000);
  ASSERT_NE(graph, nullptr);
  ASSERT_TRUE(Spin(stream_, 2 * sms_, 2 * kSecond));
  const auto begin = Clock::now();
  EXPECT_NE(RegisterChain("chain", graph, false), nullptr);
  std::printf("registration of a graph beside a full device for 2 s: %lld ms\n",
              static_cast<long long>(MsSince(begin)));
  EXPECT_LT(MsSince(begin), 10'000);
  DestroySpinningChain(graph);
}

// Attack 8: a graph whose measurement takes too long still runs when its registration fails.
TEST_F(BesideApplicationTest, ARegistrationThatIsTooLongSaysThatTheGraphStillRuns) {
  ASSERT_NO_FATAL_FAILURE(Open());
  void* const graph = MakeSpinningChain(3, 4 * kSecond);
  ASSERT_NE(graph, nullptr);
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  options.name = "endless";
  options.kind = GPUSHARE_TASK_GRAPH;
  options.graph = graph;
  options.measure_places = 1;
  gpushare_kernel* kernel = nullptr;
  EXPECT_EQ(gpushare_kernel_register(runtime_, &options, &kernel), GPUSHARE_DEADLINE_EXCEEDED);
  const std::string message = gpushare_last_error_message();
  EXPECT_NE(message.find("It still runs"), std::string::npos) << message;
  SleepMs(2500);  // 12 s of graph, of which 10 s were waited for
  EXPECT_NE(RegisterMatmul("product"), nullptr) << "the runtime goes on";
  DestroySpinningChain(graph);
}

// Attack 9: more block tasks than a launch of CUDA holds.
TEST_F(BesideApplicationTest, TooManyBlockTasksAreRefusedAtSubmit) {
  ASSERT_NO_FATAL_FAILURE(Open());
  gpushare_kernel* const kernel = RegisterSpinning("work", 1000);
  ASSERT_NE(kernel, nullptr);
  const gpushare_task_options task = Spinning(kernel, int64_t{1} << 31, 0);
  gpushare_ticket ticket = {0};
  EXPECT_EQ(gpushare_submit_be(be_, &task, &ticket), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(gpushare_last_error_message(), "2147483647"), nullptr)
      << gpushare_last_error_message();
  EXPECT_EQ(gpushare_submit_lc(lc_, &task, &ticket), GPUSHARE_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace gpushare::cuda
