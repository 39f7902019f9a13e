// The p99 alone that the library finds by itself, beside BE work and at no cost for it: that of the
// shadow (evidence/shadow.h), compared with the p99 without BE work on the same arrivals.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/core/flow/open_loop.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

constexpr int kQueries = 8'000;  // the window has all of them

struct Case {
  const char* name;
  OpenLoop::Service service;
  OpenLoop::Be be;
};

class P99EstimateTest : public ::testing::TestWithParam<Case> {};

TEST_P(P99EstimateTest, IsWithinATenthOfTheP99WithoutBe) {
  for (const double load : {0.3, 0.5, 0.7}) {
    for (const uint64_t seed : {1, 2}) {
      OpenLoop::Service service = GetParam().service;
      service.load = load;
      service.seed = seed;
      OpenLoop alone("adaptive", service);
      ASSERT_NO_FATAL_FAILURE(alone.Run(kQueries));
      OpenLoop beside("adaptive", service);
      beside.AddBe(GetParam().be);
      ASSERT_NO_FATAL_FAILURE(beside.Run(kQueries));
      const auto p99_ns = static_cast<double>(alone.P99Ns());
      const auto estimate_ns = static_cast<double>(beside.Guarantee().shadow_p99_ns);
      EXPECT_NEAR(estimate_ns / p99_ns, 1, 0.1) << "load " << load << ", seed " << seed;
    }
  }
}

OpenLoop::Service Bound(double bound, int64_t solo_ns, int32_t nodes = 1, int32_t sms = 0) {
  OpenLoop::Service service{.solo_ns = solo_ns, .p99_bound = bound};
  service.nodes = nodes;
  service.sms = sms;
  return service;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, P99EstimateTest,
    ::testing::Values(
        Case{"tight", Bound(1.05, 667 * kUs), {.duration_ns = 5 * kMs, .block_task_ns = 27 * kUs}},
        Case{"loose", Bound(2, 667 * kUs), {.duration_ns = 5 * kMs, .block_task_ns = 27 * kUs}},
        Case{"nodes",
             Bound(1.5, 667 * kUs, 30),
             {.duration_ns = 5 * kMs, .block_task_ns = 27 * kUs}},
        Case{"small",
             Bound(2, 667 * kUs, 30, 33),
             {.duration_ns = 5 * kMs, .block_task_ns = 27 * kUs}},
        Case{"short", Bound(1.5, 200 * kUs), {.duration_ns = 5 * kMs, .block_task_ns = 267 * kUs}},
        Case{"graph", Bound(1.2, 667 * kUs), {.duration_ns = 2500 * kUs, .nodes = 50}}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace gpushare::core
