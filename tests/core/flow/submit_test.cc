// Which submissions and queries are refused by the state of their queue, app and runtime.

#include "src/core/flow/submit.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

using ::testing::HasSubstr;

class SubmitTest : public SimulatedSchedulerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy("adaptive")));
    kernel_ = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
    lc_ = AddQueue(AppClass::kLatencyCritical, "service");
    be_ = AddQueue(AppClass::kBestEffort, "train");
    other_lc_ = AddQueue(AppClass::kLatencyCritical, "other");
  }
  TaskSpec Spec(QueueId queue, QueryId query = {}) const {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel_;
    spec.work.block_tasks = 64;
    spec.query = query;
    return spec;
  }
  template <class Result>
  static void ExpectRefused(const Result& result, absl::StatusCode code, const std::string& why) {
    EXPECT_EQ(result.status().code(), code);
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(why));
  }

  KernelId kernel_;
  QueueId lc_, be_, other_lc_;
};

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST_F(SubmitTest, AQueryBeginsOnAnOpenQueueOfAnLcApp) {
  EXPECT_TRUE(scheduler_->BeginQuery(lc_, 0).ok());
  ExpectRefused(scheduler_->BeginQuery(QueueId{}, 0), kInvalid, "does not exist or is released");
  ExpectRefused(scheduler_->BeginQuery(QueueId{lc_.value + 77}, 0), kInvalid, "does not exist");
  ExpectRefused(scheduler_->BeginQuery(be_, 0), kInvalid,
                "App 'train' is best-effort and has no queries");
  ASSERT_TRUE(scheduler_->ReleaseQueue(other_lc_).ok());
  ExpectRefused(scheduler_->BeginQuery(other_lc_, 0), kInvalid, "does not exist or is released");
}

TEST_F(SubmitTest, AQueryArrivesNotBeforeTheClockBegan) {
  EXPECT_TRUE(scheduler_->BeginQuery(lc_, 1).ok());
  ExpectRefused(scheduler_->BeginQuery(lc_, -1), kInvalid, "arrives at -1 ns");
}

TEST_F(SubmitTest, ATaskIsSubmittedToAQueueOfItsClass) {
  EXPECT_TRUE(scheduler_->SubmitLc(Spec(lc_)).ok());
  EXPECT_TRUE(scheduler_->SubmitBe(Spec(be_)).ok());
  ExpectRefused(scheduler_->SubmitLc(Spec(be_)), kInvalid, "use submit_be");
  ExpectRefused(scheduler_->SubmitBe(Spec(lc_)), kInvalid, "use submit_lc");
  ExpectRefused(scheduler_->SubmitBe(Spec(QueueId{})), kInvalid, "does not exist");
}

TEST_F(SubmitTest, ATaskIsOfAnOpenQueryOfItsOwnQueue) {
  const QueryId query = *scheduler_->BeginQuery(lc_, 0);
  EXPECT_TRUE(scheduler_->SubmitLc(Spec(lc_, query)).ok());
  ExpectRefused(scheduler_->SubmitLc(Spec(other_lc_, query)), kInvalid, "on another queue");
  ExpectRefused(scheduler_->SubmitLc(Spec(lc_, QueryId{query.value + 77})), kInvalid,
                "was not begun or is ended already");
  ASSERT_TRUE(scheduler_->EndQuery(query).ok());
  ExpectRefused(scheduler_->SubmitLc(Spec(lc_, query)), kInvalid, "is ended already");
  EXPECT_EQ(scheduler_->EndQuery(query).code(), kInvalid) << "ended twice";
  EXPECT_EQ(scheduler_->EndQuery(QueryId{}).code(), kInvalid);
}

TEST_F(SubmitTest, ARuntimeThatIsShutDownTakesNothing) {
  ASSERT_TRUE(scheduler_->Shutdown(kNever).ok());
  constexpr auto kShut = absl::StatusCode::kFailedPrecondition;
  ExpectRefused(scheduler_->SubmitLc(Spec(lc_)), kShut, "is shut down");
  ExpectRefused(scheduler_->SubmitBe(Spec(be_)), kShut, "is shut down");
  ExpectRefused(scheduler_->BeginQuery(lc_, 0), kShut, "is shut down");
  ExpectRefused(scheduler_->RegionBegin(be_, kMs, nullptr), kShut, "is shut down");
}

}  // namespace
}  // namespace gpushare::core
