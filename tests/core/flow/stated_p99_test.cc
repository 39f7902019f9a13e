// A target of an app that stated its p99 alone: VGG-16 of the H200 matrix at 80 % of its peak load.
//
// Its p99 alone was measured with 600 queries as 1.59 ms, where random arrivals at that load
// give 2.2 ms in the long run. Planned by the stated value alone, queries ran on 40 to 64 SMs,
// and 4.3 % of them missed their target.

#include <gtest/gtest.h>

#include "tests/core/flow/open_loop.h"

namespace gpushare::core {
namespace {

constexpr int64_t kUs = 1000;
constexpr int64_t kSoloNs = 430 * kUs;
constexpr double kLoad = 0.58;

OpenLoop::Service Service(uint64_t seed, int64_t p99_alone_ns) {
  OpenLoop::Service service{.load = kLoad, .solo_ns = kSoloNs, .p99_alone_ns = p99_alone_ns};
  service.seed = seed;
  service.target_ns = 8 * kSoloNs;
  service.speed = {{36, 0.74F},  {44, 0.81F},  {52, 0.86F},  {60, 0.88F},
                   {68, 0.92F},  {76, 0.93F},  {84, 0.94F},  {100, 0.95F},
                   {108, 0.96F}, {116, 0.98F}, {124, 0.99F}, {132, 1.0F}};
  return service;
}

// Of a queue of random arrivals the stated p99 is 0.72.
TEST(StatedP99Test, AP99ThatIsToldTooLowCostsNoTarget) {
  for (const uint64_t seed : {1, 2, 3}) {
    OpenLoop loop("adaptive", Service(seed, 1'586 * kUs));
    const int be = loop.AddBe({.duration_ns = 1'000 * kUs, .block_task_ns = 33 * kUs});
    ASSERT_NO_FATAL_FAILURE(loop.Run(20'000));
    EXPECT_LE(loop.LateShare(), 0.01) << "seed " << seed;
    EXPECT_GE(loop.Rate(be), 0.5) << "sharing time gives 0.42, seed " << seed;
  }
}

}  // namespace
}  // namespace gpushare::core
