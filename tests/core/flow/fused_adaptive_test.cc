// adaptive with fused partners through the whole flow: what BE work gains, quota and reservation in
// fused launches, and a late query that evicts its partner in the middle. So does tacker. Simulated
// device, virtual time.

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "src/core/log/events.h"
#include "src/core/policies/registry.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

constexpr int64_t kBlockTaskNs = 20 * kUs;
constexpr int64_t kWorkersOfSm = 8;
constexpr int64_t kGemmRounds = 25;  // 500 us alone
constexpr int kGemms = 4;            // of a query

class CollectingSink final : public EventSink {
 public:
  void Append(const EventRecord& record) override { records.push_back(record); }
  std::vector<EventRecord> records;
};

class FusedAdaptiveTest : public SimulatedSchedulerTest {
 protected:
  void Open(const char* policy) {
    scheduler_ = nullptr;  // of an earlier call
    events_.records.clear();
    done_.clear();
    SchedulerOptions options;
    options.events = &events_;
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy(policy), options));
    gemm_ = *scheduler_->RegisterKernel(EvictableKernel("gemm", kBlockTaskNs));
    stream_ = *scheduler_->RegisterKernel(EvictableKernel("stream", kBlockTaskNs));
    FusedKernelDesc fused;
    fused.name = "pair";
    fused.tensor_part = gemm_;
    fused.cuda_part = stream_;
    fused.opportune_load_ratio = 0.8;
    fused.opportune_duration_ratio = 1.1;
    ASSERT_TRUE(scheduler_->RegisterFusedKernel(fused).ok());
    AppOptions service{.name = "service", .app_class = AppClass::kLatencyCritical};
    service.promise.target_ns = 20 * kMs;
    lc_app_ = *scheduler_->CreateApp(service);
    lc_ = *scheduler_->CreateQueue(lc_app_);
    be_app_ = *scheduler_->CreateApp({.name = "train", .app_class = AppClass::kBestEffort});
    be_ = *scheduler_->CreateQueue(be_app_);
  }
  TaskSpec Spec(QueueId queue, KernelId kernel, int64_t rounds) {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel;
    spec.work.block_tasks = rounds * kWorkersOfSm * sms_;
    spec.callback = [](void* user, const CompletionRecord& record) {
      static_cast<std::vector<CompletionRecord>*>(user)->push_back(record);
    };
    spec.callback_user = &done_;
    return spec;
  }
  void SubmitBe(int tasks, int64_t rounds = 100) {
    for (int i = 0; i < tasks; ++i) {
      ASSERT_TRUE(scheduler_->SubmitBe(Spec(be_, stream_, rounds)).ok());
    }
  }
  void SubmitQuery() {
    const QueryId query = *scheduler_->BeginQuery(lc_, scheduler_->NowNs());
    for (int i = 0; i < kGemms; ++i) {
      TaskSpec spec = Spec(lc_, gemm_, kGemmRounds);
      spec.query = query;
      ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
    }
    ASSERT_TRUE(scheduler_->EndQuery(query).ok());
  }
  // A query of 2 ms every 5 ms.
  void Serve(int queries) {
    for (int i = 0; i < queries; ++i) {
      SubmitQuery();
      Pass(5 * kMs);
    }
  }
  int64_t FusedTasks(KernelId kernel) const {
    return std::count_if(done_.begin(), done_.end(), [&](const CompletionRecord& record) {
      return record.kernel == kernel && record.form == Form::kFused;
    });
  }
  template <class EventOf, class Use>
  void ForEach(const Use& use) const {
    for (const EventRecord& record : events_.records) {
      if (static_cast<EventType>(record.type) == EventOf::kType) {
        use(record, Decode<EventOf>(record));
      }
    }
  }

  CollectingSink events_;
  KernelId gemm_, stream_;
  AppId lc_app_, be_app_;
  QueueId lc_, be_;
  std::vector<CompletionRecord> done_;
};

// What BE work gets in the same time, and that no query is late.
TEST_F(FusedAdaptiveTest, BeWorkGainsWhatFusingGains) {
  int64_t tasks[2] = {};
  for (const bool fuses : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(Open(fuses ? "adaptive" : "adaptive:apart"));
    SubmitBe(400);
    Serve(100);
    tasks[fuses ? 1 : 0] =
        std::count_if(done_.begin(), done_.end(),
                      [&](const CompletionRecord& record) { return record.kernel == stream_; });
    EXPECT_LT(scheduler_->GuaranteeOf(lc_app_)->p99_ns, 20 * kMs);
    if (fuses) {
      EXPECT_GT(FusedTasks(gemm_), 100 * kGemms / 2);
    } else {
      EXPECT_EQ(FusedTasks(gemm_), 0);
    }
  }
  EXPECT_GT(tasks[1], tasks[0] + tasks[0] / 8) << tasks[0] << " tasks apart";
}

// A quota of 16 CapSMs and a reservation of 64: BE work never has more workers than its quota,
// fused or not, and its eviction word says so before each fused launch begins. The LC part has its
// CapSMs.
TEST_F(FusedAdaptiveTest, QuotaAndReservationHoldInFusedLaunches) {
  for (const char* policy : {"adaptive", "tacker"}) {
    SCOPED_TRACE(policy);
    ASSERT_NO_FATAL_FAILURE(Open(policy));
    ASSERT_TRUE(scheduler_->ReserveCapSm({lc_app_, 64, false}).ok());
    ASSERT_TRUE(scheduler_->ReserveCapSm({be_app_, 16, false}).ok());
    SubmitBe(40);
    Serve(60);
    int fused = 0;
    int64_t limited = 0;
    ForEach<Evicted>([&](const EventRecord&, const Evicted& evicted) {
      if (evicted.workers_to_keep == 16 * kWorkersOfSm) ++limited;
    });
    ForEach<Launched>([&](const EventRecord& record, const Launched& launched) {
      if (record.app == be_app_.value) {
        EXPECT_LE(launched.workers, 16 * kWorkersOfSm);
        fused += launched.form == Form::kFused ? 1 : 0;
      } else {
        EXPECT_GE(launched.workers, 64 * kWorkersOfSm);
      }
    });
    EXPECT_GT(fused, 10);
    EXPECT_GE(limited, fused);
    EXPECT_LT(scheduler_->GuaranteeOf(lc_app_)->p99_ns, 20 * kMs);
  }
}

// Eight queries in a row, the last of which has no headroom: the partner of the first leaves in the
// middle, with a quota of 16 CapSMs or without, and no LC kernel behind it takes another one until
// there is headroom again.
TEST_F(FusedAdaptiveTest, ALateQuerySendsThePartnerAwayInTheMiddle) {
  struct Case {
    const char* policy;
    bool promised;
  };
  for (const Case& the : {Case{"adaptive", false}, Case{"tacker", false}, Case{"adaptive", true},
                          Case{"tacker", true}}) {
    SCOPED_TRACE(std::string(the.policy) + (the.promised ? " with promises" : ""));
    ASSERT_NO_FATAL_FAILURE(Open(the.policy));
    if (the.promised) {
      ASSERT_TRUE(scheduler_->ReserveCapSm({lc_app_, 64, false}).ok());
      ASSERT_TRUE(scheduler_->ReserveCapSm({be_app_, 16, false}).ok());
    }
    // With a quota long tasks would run through the query: tacker evicts none for it.
    SubmitBe(400, the.promised && the.policy == std::string("tacker") ? 6 : 100);
    Serve(40);
    done_.clear();
    events_.records.clear();
    SubmitQuery();
    // Until a kernel of it runs beside a partner.
    const auto fused_part = [&] {
      TimeNs launched_ns = 0;
      ForEach<Launched>([&](const EventRecord& record, const Launched& launched) {
        if (record.app == be_app_.value && launched.form == Form::kFused) {
          launched_ns = record.time_ns;
        }
      });
      return launched_ns;
    };
    for (int i = 0; i < 100 && fused_part() == 0; ++i) Pass(20 * kUs);
    ASSERT_GT(fused_part(), 0);
    Pass(20 * kUs);
    const TimeNs burst_ns = scheduler_->NowNs();
    for (int i = 0; i < 12; ++i) SubmitQuery();
    Pass(200 * kUs);
    bool evicted = false;
    ForEach<Evicted>([&](const EventRecord& record, const Evicted& eviction) {
      evicted = evicted || (record.time_ns >= burst_ns && eviction.workers_to_keep == 0);
    });
    EXPECT_TRUE(evicted);
    EXPECT_EQ(FusedTasks(gemm_), 0) << "the LC kernel still runs";
    Pass(20 * kMs);
    EXPECT_GT(FusedTasks(gemm_), 0);
    EXPECT_LE(FusedTasks(gemm_), kGemms);
  }
}

}  // namespace
}  // namespace gpushare::core
