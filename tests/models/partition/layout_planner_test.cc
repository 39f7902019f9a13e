// The planner behind the core's seam: what an application asks of it, and what it promises.

#include "src/models/partition/layout_planner.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/models/partition/task_set.h"

namespace gpushare::models::partition {
namespace {

core::PartitionRequest::Job Job(const std::string& app, int64_t period_ns,
                                std::vector<core::WorstCase> worst_cases) {
  core::PartitionRequest::Job job;
  job.app = app;
  job.options.period_ns = period_ns;
  job.options.worst_cases = std::move(worst_cases);
  return job;
}

core::PartitionRequest Request(std::vector<core::PartitionRequest::Job> jobs) {
  core::PartitionRequest request;
  request.jobs = std::move(jobs);
  request.sms = 64;
  request.grain = 8;
  return request;
}

core::PartitionLayout PlanOf(const core::PartitionRequest& request) {
  const auto layout = LayoutPlanner().Plan(request);
  EXPECT_TRUE(layout.ok()) << layout.status();
  return layout.ok() ? *layout : core::PartitionLayout();
}

TEST(LayoutPlannerTest, EachAppHasThePartitionThatKeepsItsDeadline) {
  const auto layout = PlanOf(
      Request({Job("a", 1000, {{8, 2000}, {16, 900}, {24, 500}}), Job("b", 5000, {{8, 100}})}));
  ASSERT_TRUE(layout.admitted) << layout.reason;
  ASSERT_EQ(layout.partitions.size(), 2u);
  for (const auto& partition : layout.partitions) {
    ASSERT_EQ(partition.jobs.size(), 1u);
    const bool first = partition.jobs[0].job == 0;
    EXPECT_EQ(partition.sms, first ? 16 : 8);
    EXPECT_EQ(partition.jobs[0].worst_ns, first ? 900 : 100);
    EXPECT_EQ(partition.jobs[0].response_ns, first ? 900 : 100);
  }
}

TEST(LayoutPlannerTest, AppsShareWhereThatNeedsFewerSms) {
  auto request = Request({Job("a", 1000, {{8, 300}}), Job("b", 1000, {{8, 300}})});
  EXPECT_EQ(PlanOf(request).partitions.size(), 2u) << "an overrun would delay the other app";
  request.shares = true;
  const auto layout = PlanOf(request);
  ASSERT_EQ(layout.partitions.size(), 1u);
  EXPECT_EQ(layout.partitions[0].sms, 8);
  EXPECT_EQ(layout.partitions[0].jobs[0].response_ns, 600) << "the other job may go first";
}

TEST(LayoutPlannerTest, TheOverheadIsChargedToEachJobAndNotToItsBudget) {
  auto request = Request({Job("a", 1000, {{8, 600}})});
  request.overhead_ns = 300;
  const auto layout = PlanOf(request);
  ASSERT_TRUE(layout.admitted);
  EXPECT_EQ(layout.partitions[0].jobs[0].worst_ns, 600);
  EXPECT_EQ(layout.partitions[0].jobs[0].response_ns, 900);
  request.overhead_ns = 401;
  const auto refused = PlanOf(request);
  EXPECT_FALSE(refused.admitted);
  EXPECT_NE(refused.reason.find("'a' takes up to 1001 ns"), std::string::npos) << refused.reason;
}

TEST(LayoutPlannerTest, TheOverheadMakesNoStatedWorstCaseIllegal) {
  auto request = Request({Job("a", kTaskNsMax, {{8, kTaskNsMax}, {16, 1000}})});
  request.overhead_ns = 100;
  const auto layout = PlanOf(request);
  ASSERT_TRUE(layout.admitted) << layout.reason;
  EXPECT_EQ(layout.partitions[0].sms, 16);
  EXPECT_EQ(layout.partitions[0].jobs[0].worst_ns, 1000);
}

TEST(LayoutPlannerTest, WorstCasesBeyondTheDeviceAreCheckedToo) {
  const auto refused = LayoutPlanner().Plan(Request({Job("a", 1000, {{8, 100}, {72, -5}})}));
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
  EXPECT_NE(refused.status().message().find("-5"), std::string::npos) << refused.status();
  EXPECT_FALSE(LayoutPlanner().Plan(Request({Job("a", 1000, {{72, 90}, {8, 100}})})).ok());
}

TEST(LayoutPlannerTest, ANoSaysWhatIsMissing) {
  std::vector<core::PartitionRequest::Job> jobs;
  for (int i = 0; i < 9; ++i) jobs.push_back(Job("app" + std::to_string(i), 1000, {{8, 600}}));
  const auto layout = PlanOf(Request(jobs));
  EXPECT_FALSE(layout.admitted);
  EXPECT_NE(layout.reason.find("needs 72 SMs, and the plan has 64"), std::string::npos)
      << layout.reason;
  const auto late = PlanOf(Request({Job("late", 1000, {{128, 10}})}));
  EXPECT_NE(late.reason.find("has no worst case at 64 SMs or fewer"), std::string::npos)
      << late.reason;
}

TEST(LayoutPlannerTest, RefusesACurveThatDoesNotAscend) {
  EXPECT_FALSE(LayoutPlanner().Plan(Request({Job("a", 1000, {{16, 5}, {8, 9}})})).ok());
  EXPECT_FALSE(LayoutPlanner().Plan(Request({Job("a", 1000, {{8, -5}})})).ok());
}

}  // namespace
}  // namespace gpushare::models::partition
