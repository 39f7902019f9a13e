// An engine's steps beside BE work that a step cannot wait for: it stays out of gaps and has the
// silences. The whole flow on the simulated device, virtual time, one thread.

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "src/core/base/limits.h"
#include "tests/core/flow/open_loop.h"

namespace gpushare::core {
namespace {

constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSoloNs = 2 * kMs;
constexpr int64_t kGapMaxNs = 300 * kUs;

struct Result {
  int64_t p50_ns = 0;
  int64_t p99_ns = 0;
  double idle = 0;  // share of the time that silences have
  double be = 0;    // of the time, after the warm-up
};

class Engine {
 public:
  explicit Engine(int64_t p99_alone_ns, double bound = 1.05)
      : loop("adaptive", {.solo_ns = kSoloNs, .p99_bound = bound, .p99_alone_ns = p99_alone_ns}) {}

  // Busy periods of 20 to 180 steps, with silences that are as long on average.
  void Run(int periods, bool stated) {
    std::uniform_int_distribution<int64_t> gap_ns(50 * kUs, kGapMaxNs);
    std::uniform_int_distribution<int> steps(20, 180);
    std::exponential_distribution<double> silence_ns(1 / (100 * 2.2 * kMs));
    for (int p = 0; p < periods; ++p) {
      for (int left = steps(random); left > 0; --left) {
        loop.Step(!stated ? 0 : left > 1 ? kGapMaxNs : kNoNextQuery);
        if (left > 1) loop.RunFor(gap_ns(random));
      }
      const auto pause_ns = static_cast<int64_t>(silence_ns(random)) + kMs;
      silent_ns += pause_ns;
      loop.RunFor(pause_ns);
    }
  }

  Result Measure(int be, bool stated) {
    Run(15, stated);
    loop.Forget();
    silent_ns = 0;
    const TimeNs begin_ns = loop.scheduler().NowNs();
    const int64_t before = be < 0 ? 0 : loop.done(be);
    Run(60, stated);
    const auto time_ns = static_cast<double>(loop.scheduler().NowNs() - begin_ns);
    const auto done = static_cast<double>(be < 0 ? 0 : loop.done(be) - before);
    return {.p50_ns = loop.QuantileNs(0.5),
            .p99_ns = loop.P99Ns(),
            .idle = static_cast<double>(silent_ns) / time_ns,
            .be = done * static_cast<double>(kBeNs) / time_ns};
  }

  static constexpr int64_t kBeNs = 440 * kUs;
  OpenLoop loop;
  std::mt19937_64 random{3};
  int64_t silent_ns = 0;
};

class EngineTest : public ::testing::TestWithParam<bool> {};

TEST_P(EngineTest, OpaqueWorkHasTheSilencesAndStaysOutOfGaps) {
  const Result alone = Engine(0).Measure(-1, GetParam());
  Engine engine(alone.p99_ns);
  const int be = engine.loop.AddBe({.duration_ns = Engine::kBeNs, .opaque = true});
  const Result shared = engine.Measure(be, GetParam());
  EXPECT_LE(static_cast<double>(shared.p99_ns), 1.05 * static_cast<double>(alone.p99_ns));
  EXPECT_LE(static_cast<double>(shared.p50_ns), 1.001 * static_cast<double>(alone.p50_ns));
  EXPECT_GE(shared.be, 0.9 * shared.idle) << "of " << shared.idle;
  EXPECT_EQ(engine.loop.Guarantee().next_lapsed, 0);
}

// What a step can wait for runs in gaps too.
TEST_P(EngineTest, ShortBlockTasksRunInGapsToo) {
  const Result alone = Engine(0).Measure(-1, GetParam());
  Engine engine(alone.p99_ns);
  const int be = engine.loop.AddBe({.duration_ns = Engine::kBeNs, .block_task_ns = 10 * kUs});
  const Result shared = engine.Measure(be, GetParam());
  EXPECT_LE(static_cast<double>(shared.p99_ns), 1.05 * static_cast<double>(alone.p99_ns));
  EXPECT_GE(shared.be, shared.idle);
}

INSTANTIATE_TEST_SUITE_P(Statements, EngineTest, ::testing::Bool());

// It says that the next query follows within 100 ms, and that comes after 150: BE work has hardly
// less than beside an app that says nothing.
TEST(LapsedStatementTest, AWrongStatementHoldsBeWorkForNoLongerThanItsTime) {
  const auto done = [](int64_t stated_ns, int64_t& lapsed) {
    OpenLoop loop("adaptive", {.solo_ns = kSoloNs, .p99_bound = 1.2, .p99_alone_ns = kSoloNs});
    const int be = loop.AddBe({.duration_ns = 5 * kMs, .block_task_ns = 500 * kUs});
    for (int q = 0; q < 40; ++q) {
      loop.Step(stated_ns);
      loop.RunFor(3 * kMaxNextWithinNs / 2);
    }
    lapsed = loop.Guarantee().next_lapsed;
    return static_cast<double>(loop.done(be));
  };
  int64_t lapsed = 0;
  const double without = done(0, lapsed);
  EXPECT_EQ(lapsed, 0);
  EXPECT_GE(done(kMaxNextWithinNs, lapsed), 0.9 * without);
  EXPECT_GE(lapsed, 39);
}

}  // namespace
}  // namespace gpushare::core
