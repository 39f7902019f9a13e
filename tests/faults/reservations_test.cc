// gpushare_reserve_capsm, measured: the SMs that BE work really holds, as the simulated device
// counts them (busy_sm_ns), while an LC app with a reservation has a query, and under quotas. Every
// built-in policy keeps what it accepted, or refuses the call with the reason.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <tuple>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

constexpr int32_t kSms = 132;
constexpr int64_t kStepNs = 50 * kUs;
// Workers finish a block task of 27 us and segments two of 100 us: then what was evicted has left.
constexpr int64_t kEvictionNs = 400 * kUs;

// What a BE app submits.
enum class Work { kWorkers, kFixed, kOpaque, kSegments, kUnconfinable };

const char* NameOf(Work work) {
  constexpr const char* kNames[] = {"Workers", "Fixed", "Opaque", "Segments", "Unconfinable"};
  return kNames[static_cast<size_t>(work)];
}

// One service that sends nothing by itself, and one BE tenant with four tasks on two queues.
class Device {
 public:
  explicit Device(const char* policy) {
    api_.opening.profile_path = GPUSHARE_SMALL_PROFILE;
    api_.Open({"sim", GPUSHARE_DRIVE_POLL}, nullptr, policy);
    gpushare_app_options lc = AppOptionsOf(GPUSHARE_CLASS_LATENCY_CRITICAL, "bounded");
    lc.p99_bound = 1.5;
    lc.p99_alone_ns = 2 * kMs;
    lc.solo_ns = 700 * kUs;
    // The only LC app: one that never sends a query would keep every split from being used.
    EXPECT_OK(gpushare_queue_release(api_.lc_queue));
    EXPECT_OK(gpushare_app_release(api_.lc_app));
    EXPECT_OK(gpushare_app_create(api_.runtime, &lc, &api_.lc_app));
    EXPECT_OK(gpushare_queue_create(api_.lc_app, &api_.lc_queue));
    EXPECT_OK(gpushare_queue_create(api_.be_app, &queues_[1]));
    queues_[0] = api_.be_queue;
  }
  ~Device() {
    if (query_.value != 0) EndQuery();
    EXPECT_OK(gpushare_runtime_shutdown(api_.runtime, api_.NowNs() + kS));
    for (const gpushare_ticket ticket : tickets_) {
      if (ticket.value == 0) continue;
      EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
    }
    EXPECT_OK(gpushare_queue_release(queues_[1]));
    if (kernel_ != nullptr) {
      EXPECT_OK(gpushare_kernel_release(kernel_));
    }
    api_.Close();
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  gpushare_status Reserve(int32_t capsms, bool packed) { return Ask(api_.lc_app, capsms, packed); }
  gpushare_status Quota(int32_t capsms, bool packed) { return Ask(api_.be_app, capsms, packed); }

  // Under a reservation or quota that nothing can hold the work to.
  void ExpectRefused(Work work) {
    Submits(work);
    gpushare_ticket ticket = {0};
    EXPECT_FAILS(gpushare_submit_be(queues_[0], &task_, &ticket), GPUSHARE_FAILED_PRECONDITION,
                 "'Unconfinable' needs 132 SMs");
  }
  void Submits(Work work) {
    gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
    const gpushare_graph_node node = {20 * kUs, kSms, 100, GPUSHARE_CHOICE_DEFAULT, 0, {}};
    gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
    options.name = NameOf(work);
    options.simulation = &record;
    task_.block_tasks = 132 * 40;
    record.block_task_ns = 27 * kUs;
    options.workers_per_sm_max = 1;  // so that a worker holds an SM
    options.evictable = work == Work::kWorkers ? GPUSHARE_CHOICE_YES : GPUSHARE_CHOICE_NO;
    if (work == Work::kUnconfinable) options.confinable = GPUSHARE_CHOICE_NO;
    if (work == Work::kFixed || work == Work::kUnconfinable) task_.block_tasks = 132 * 15;
    if (work == Work::kSegments) {
      options.kind = GPUSHARE_TASK_GRAPH;
      options.evictable = GPUSHARE_CHOICE_DEFAULT;
      record.block_task_ns = 0;
      record.nodes = &node;
      record.node_count = 1;
      task_.block_tasks = 0;
    }
    if (work == Work::kOpaque) {
      task_ = GPUSHARE_TASK_OPTIONS_INIT;
      task_.kind = GPUSHARE_TASK_OPAQUE;
      task_.enqueue = [](void*, void*) {};
      task_.declared_ns = 20 * kUs;
      return;
    }
    EXPECT_OK(gpushare_kernel_register(api_.runtime, &options, &kernel_));
    task_.kernel = kernel_;
  }

  // Whether an opaque task of the second queue ends in that time, while the first one is never
  // empty.
  bool CompletesOpaque(int64_t duration_ns) {
    gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
    task.kind = GPUSHARE_TASK_OPAQUE;
    task.enqueue = [](void*, void*) {};
    task.declared_ns = 20 * kUs;
    gpushare_queue* queue = nullptr;
    EXPECT_OK(gpushare_queue_create(api_.be_app, &queue));
    gpushare_ticket ticket = {0};
    EXPECT_OK(gpushare_submit_be(queue, &task, &ticket));
    RunFor(duration_ns);
    gpushare_bool done = 0;
    EXPECT_OK(gpushare_ticket_poll(api_.runtime, ticket, &done));
    EXPECT_OK(gpushare_ticket_wait(api_.runtime, ticket, api_.Deadline()));
    EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
    EXPECT_OK(gpushare_queue_release(queue));
    return done != 0;
  }

  // Runs for `duration_ns` and returns the most SMs that were busy in any 50 us of it.
  double RunFor(int64_t duration_ns) {
    double most = 0;
    for (const int64_t end = api_.NowNs() + duration_ns; api_.NowNs() < end;) {
      Feed();
      const int64_t begin_ns = api_.NowNs();
      const int64_t busy = api_.RuntimeStats().busy_sm_ns;
      EXPECT_OK(gpushare_poll_until(api_.runtime, begin_ns + kStepNs));
      const double busy_ns = static_cast<double>(api_.RuntimeStats().busy_sm_ns - busy);
      most = std::max(most, busy_ns / static_cast<double>(api_.NowNs() - begin_ns));
    }
    return most;
  }
  // A query that is active and has nothing on the device: all busy SMs are BE's.
  void BeginQuery() { EXPECT_OK(gpushare_query_begin(api_.lc_queue, api_.NowNs(), &query_)); }
  void EndQuery() {
    EXPECT_OK(gpushare_query_end(api_.runtime, query_));
    query_ = {0};
  }
  // Gives the service a load and the planner a kernel of it.
  void RunQuery() const { api_.Finish(api_.Submit(api_.LcTask(), true)); }
  int64_t completed() const { return completed_; }

 private:
  static gpushare_status Ask(gpushare_app* app, int32_t capsms, bool packed) {
    gpushare_reservation_options options = GPUSHARE_RESERVATION_OPTIONS_INIT;
    options.capsms = capsms;
    options.packed = packed ? 1 : 0;
    return gpushare_reserve_capsm(app, &options);
  }
  void Feed() {
    for (size_t i = 0; i < std::size(tickets_); ++i) {
      gpushare_ticket& ticket = tickets_[i];
      gpushare_bool done = 1;
      if (ticket.value != 0) {
        EXPECT_OK(gpushare_ticket_poll(api_.runtime, ticket, &done));
      }
      if (done == 0) continue;
      if (ticket.value != 0) {
        EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
        ++completed_;
      }
      EXPECT_OK(gpushare_submit_be(queues_[i % 2], &task_, &ticket));
    }
  }

  Api api_;
  gpushare_queue* queues_[2] = {};
  gpushare_kernel* kernel_ = nullptr;
  gpushare_task_options task_ = GPUSHARE_TASK_OPTIONS_INIT;
  gpushare_ticket tickets_[4] = {};
  gpushare_query query_ = {0};
  int64_t completed_ = 0;
};

// adaptive:evict has the whole device for LC: on few SMs of it a task of 0.4 ms that nothing evicts
// takes longer than the service's budget of 1 ms.
bool HoldsForTheBudget(const std::string& policy, Work work) {
  return policy == "adaptive:evict" && work == Work::kFixed;
}

using Row = std::tuple<const char*, Work, int32_t>;

std::string NameOfRow(const testing::TestParamInfo<Row>& row) {
  std::string name = std::get<0>(row.param);
  std::replace(name.begin(), name.end(), ':', '_');
  return name + "_" + NameOf(std::get<1>(row.param)) + "_" + std::to_string(std::get<2>(row.param));
}

class Reservation : public testing::TestWithParam<Row> {};

// Also in the middle of a query, and after the load has led the planner to a layout.
TEST_P(Reservation, IsFreeWithinAnEvictionWheneverTheAppHasAQuery) {
  const auto& [policy, work, capsms] = GetParam();
  for (const bool packed : {false, true}) {
    Device device(policy);
    ASSERT_OK(device.Reserve(capsms, packed));
    if (work == Work::kUnconfinable) {
      device.ExpectRefused(work);
      continue;
    }
    device.Submits(work);
    for (int query = 0; query < 20; ++query) {
      device.RunFor(1 * kMs);
      device.RunQuery();
      device.RunFor(200 * kUs + query * 61 * kUs);
      device.BeginQuery();
      device.RunFor(kEvictionNs);
      EXPECT_LE(device.RunFor(600 * kUs), kSms - capsms + 0.01) << query << " " << packed;
      device.EndQuery();
    }
    if (!HoldsForTheBudget(policy, work)) {
      EXPECT_GT(device.completed(), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Adaptive, Reservation,
                         testing::Combine(testing::Values("adaptive"),
                                          testing::Values(Work::kWorkers, Work::kFixed,
                                                          Work::kOpaque, Work::kSegments,
                                                          Work::kUnconfinable),
                                          testing::Values(32, 64, 96)),
                         NameOfRow);
INSTANTIATE_TEST_SUITE_P(
    EveryPolicyThatKeepsIt, Reservation,
    testing::Combine(testing::Values("adaptive:evict", "adaptive:partition", "adaptive:elastic",
                                     "smguard", "smguard:active", "smguard:packed"),
                     testing::Values(Work::kWorkers, Work::kFixed, Work::kSegments),
                     testing::Values(64)),
    NameOfRow);

class Quota : public testing::TestWithParam<Row> {};

// At every time, with queries and without; and the quota is used.
TEST_P(Quota, BoundsTheSmsOfEveryKindOfWork) {
  const auto& [policy, work, capsms] = GetParam();
  for (const bool packed : {false, true}) {
    Device device(policy);
    ASSERT_OK(device.Quota(capsms, packed));
    if (work == Work::kUnconfinable) {
      device.ExpectRefused(work);
      continue;
    }
    device.Submits(work);
    double most = device.RunFor(5 * kMs);
    for (int query = 0; query < 30; ++query) {
      device.RunQuery();
      most = std::max(most, device.RunFor(900 * kUs));
      device.BeginQuery();
      most = std::max(most, device.RunFor(500 * kUs));
      device.EndQuery();
    }
    EXPECT_LE(most, capsms + 0.01) << packed;
    if (!HoldsForTheBudget(policy, work)) {
      EXPECT_GT(device.completed(), 0);
      // Opaque work here has few blocks. After ten queries the load is hardly known, so the side of
      // work that nothing evicts is small.
      const bool small = work == Work::kOpaque || work == Work::kFixed;
      EXPECT_TRUE(small || most >= capsms - 8) << most << " " << packed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Adaptive, Quota,
                         testing::Combine(testing::Values("adaptive"),
                                          testing::Values(Work::kWorkers, Work::kFixed,
                                                          Work::kOpaque, Work::kSegments,
                                                          Work::kUnconfinable),
                                          testing::Values(16, 48)),
                         NameOfRow);
INSTANTIATE_TEST_SUITE_P(
    EveryPolicyThatKeepsIt, Quota,
    testing::Combine(testing::Values("adaptive:evict", "adaptive:partition", "adaptive:elastic",
                                     "smguard", "smguard:active", "smguard:packed"),
                     testing::Values(Work::kWorkers, Work::kFixed, Work::kSegments),
                     testing::Values(16, 48)),
    NameOfRow);

class Refusal : public testing::TestWithParam<const char*> {};

TEST_P(Refusal, OfAPolicyThatKeepsNeither) {
  Device device(GetParam());
  EXPECT_FAILS(device.Reserve(64, false), GPUSHARE_FAILED_PRECONDITION,
               "LC app 'bounded' asks for 64 CapSMs");
  EXPECT_FAILS(device.Quota(16, true), GPUSHARE_FAILED_PRECONDITION,
               "BE app 'training' asks for 16 CapSMs");
  EXPECT_OK(device.Reserve(0, false));
}
INSTANTIATE_TEST_SUITE_P(Policies, Refusal, testing::Values("bare", "fifo", "priority", "baymax"));

// Otherwise what was accepted under one policy would end unseen with another.
TEST(ReservationsTest, APolicyThatKeepsNoneIsRefusedWhileThereIsOne) {
  Api api;
  api.Open({"sim", GPUSHARE_DRIVE_POLL}, nullptr, "adaptive");
  gpushare_reservation_options options = GPUSHARE_RESERVATION_OPTIONS_INIT;
  options.capsms = 16;
  ASSERT_OK(gpushare_reserve_capsm(api.be_app, &options));
  EXPECT_FAILS(gpushare_set_policy(api.runtime, "fifo"), GPUSHARE_FAILED_PRECONDITION,
               "BE app 'training' asks for 16 CapSMs");
  EXPECT_OK(gpushare_set_policy(api.runtime, "smguard"));
  options.capsms = 0;
  ASSERT_OK(gpushare_reserve_capsm(api.be_app, &options));
  EXPECT_OK(gpushare_set_policy(api.runtime, "fifo"));
  api.Close();
}

TEST(ReservationsTest, ARegionOfAnAppWithAQuotaIsRefused) {
  Api api;
  api.Open({"sim", GPUSHARE_DRIVE_POLL}, nullptr, "adaptive");
  gpushare_reservation_options options = GPUSHARE_RESERVATION_OPTIONS_INIT;
  options.capsms = 16;
  ASSERT_OK(gpushare_reserve_capsm(api.be_app, &options));
  ASSERT_OK(gpushare_poll_until(api.runtime, api.NowNs() + kMs));
  gpushare_region_options region = GPUSHARE_REGION_OPTIONS_INIT;
  region.bound_ns = 10 * kUs;
  gpushare_ticket ticket = {0};
  void* stream = nullptr;
  EXPECT_FAILS(gpushare_region_begin(api.be_queue, &region, &ticket, &stream),
               GPUSHARE_FAILED_PRECONDITION, "a quota of 16 CapSMs");
  api.Close();
}

// Workers of one queue would take the room that the other queue's task needs again and again.
TEST(ReservationsTest, ATaskWaitsForRoomNoLongerThanForThoseBeforeIt) {
  for (const char* policy : {"adaptive", "smguard"}) {
    Device device(policy);
    ASSERT_OK(device.Quota(16, false));
    device.Submits(Work::kWorkers);
    device.RunFor(3 * kMs);
    EXPECT_TRUE(device.CompletesOpaque(60 * kMs)) << policy;
  }
}

// Tasks that held more leave.
TEST(ReservationsTest, AQuotaThatShrinksIsKeptWithinAnEviction) {
  for (const Work work : {Work::kWorkers, Work::kSegments}) {
    Device device("adaptive");
    device.Submits(work);
    EXPECT_GT(device.RunFor(2 * kMs), 100);
    ASSERT_OK(device.Quota(48, false));
    device.RunFor(2 * kMs);  // two segments on few SMs
    EXPECT_LE(device.RunFor(2 * kMs), 48.01) << NameOf(work);
    ASSERT_OK(device.Quota(16, true));
    device.RunFor(2 * kMs);
    EXPECT_LE(device.RunFor(2 * kMs), 16.01) << NameOf(work);
  }
}

}  // namespace
}  // namespace gpushare_test
