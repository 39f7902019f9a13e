// Promises over random mixes of one LC app and several BE apps: every BE task ends, no bound is
// missed by more than 0.03, and a looser bound never gives less BE by more than 0.03. The whole
// flow on the simulated device, virtual time, one thread.
//
// GPUSHARE_MIXES sets the number of mixes. A failing mix names its number, which is its seed.

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/core/flow/open_loop.h"

namespace gpushare::core {
namespace {

constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000 * kUs;
constexpr double kMissMax = 0.03;

int Mixes() {
  const char* const asked = std::getenv("GPUSHARE_MIXES");
  return asked == nullptr ? 40 : std::atoi(asked);
}

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  double Between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  int64_t LogBetween(int64_t low, int64_t high) {
    return static_cast<int64_t>(
        std::exp(Between(std::log(static_cast<double>(low)), std::log(static_cast<double>(high)))));
  }
  template <class T>
  T One(const std::vector<T>& of) {
    return of[std::uniform_int_distribution<size_t>(0, of.size() - 1)(random_)];
  }

 private:
  std::mt19937_64 random_;
};

struct Mix {
  OpenLoop::Service service;
  std::vector<OpenLoop::Be> be;
};

// `p99_alone_ns` is that of the service alone, which the mix may state.
Mix MixOf(int number, const std::function<int64_t(const OpenLoop::Service&)>& p99_alone_ns) {
  Draw draw(static_cast<uint64_t>(number));
  Mix mix;
  mix.service = {.load = draw.Between(0.05, 0.7),
                 .solo_ns = draw.LogBetween(200 * kUs, 2 * kMs),
                 .seed = static_cast<uint64_t>(number)};
  const int64_t alone_ns = p99_alone_ns(mix.service);
  mix.service.p99_bound = draw.One<double>({1.02, 1.05, 1.1, 1.2, 1.5, 2});
  if (draw.Between(0, 1) < 0.7) mix.service.p99_alone_ns = alone_ns;
  const int tenants = draw.One<int>({1, 1, 2, 3});
  for (int i = 0; i < tenants; ++i) {
    OpenLoop::Be be;
    const bool evictable = draw.Between(0, 1) < 0.4;
    be.duration_ns = draw.LogBetween(evictable ? kMs : 50 * kUs, 20 * kMs);
    be.block_task_ns = evictable ? draw.LogBetween(10 * kUs, 300 * kUs) : 0;
    be.tasks = draw.One<int>({5, 50, 2'000});
    mix.be.push_back(be);
  }
  return mix;
}

// By how much the mix misses its bound over so many queries. Every BE task must end.
double MissOf(int number, int queries) {
  int64_t alone_ns = 0;
  const Mix mix = MixOf(number, [&](const OpenLoop::Service& service) {
    OpenLoop alone("adaptive", service);
    alone.Run(queries);
    return alone_ns = alone.P99Ns();
  });
  OpenLoop loop("adaptive", mix.service);
  for (const OpenLoop::Be& be : mix.be) loop.AddBe(be);
  loop.Run(queries);
  const double ratio = static_cast<double>(loop.P99Ns()) / static_cast<double>(alone_ns);
  loop.RunFor(300'000 * kMs);
  for (size_t i = 0; i < mix.be.size(); ++i) {
    EXPECT_EQ(loop.done(static_cast<int>(i)), mix.be[i].tasks) << "mix " << number << ", BE " << i;
  }
  EXPECT_TRUE(loop.scheduler().CheckInvariants().ok());
  return ratio - mix.service.p99_bound;
}

// The p99 of 2,000 queries is their twentieth latency, and one burst of arrivals moves it. A mix
// that misses its bound over them must keep it over ten times as many.
TEST(Bounds, InRandomMixesEveryBeTaskEndsAndEveryBoundIsKept) {
  constexpr int kQueries = 2'000;
  int again = 0;
  for (int mix = 0; mix < Mixes(); ++mix) {
    if (MissOf(mix, kQueries) <= kMissMax) continue;
    ++again;
    EXPECT_LE(MissOf(mix, 10 * kQueries), kMissMax) << "mix " << mix;
  }
  RecordProperty("mixes_run_again", again);
  std::printf("%d of %d mixes run again with more queries\n", again, Mixes());
}

// An estimate of a load from a few queries takes a split that the load saturates, and a task that
// nothing evicts keeps it. These mixes then miss their bounds by a factor of up to 68.
TEST(Bounds, ALoadThatIsHardlyKnownTakesNoSplitThatItMaySaturate) {
  for (const int mix : {104, 222, 462, 559, 675, 710})
    EXPECT_LE(MissOf(mix, 2'000), kMissMax) << mix;
}

TEST(Bounds, ALooserOneNeverGivesLessBe) {
  constexpr int kQueries = 1'500;
  const std::vector<OpenLoop::Be> kinds = {{.duration_ns = 8 * kMs, .block_task_ns = 200 * kUs},
                                           {.duration_ns = 100 * kUs},
                                           {.duration_ns = 900 * kUs},
                                           {.duration_ns = 5 * kMs}};
  for (const double load : {0.1, 0.5}) {
    OpenLoop alone("adaptive", {.load = load});
    alone.Run(kQueries);
    for (const OpenLoop::Be& be : kinds) {
      double most = 0;
      for (const double bound : {1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 1.75, 2.0}) {
        OpenLoop loop("adaptive",
                      {.load = load, .p99_bound = bound, .p99_alone_ns = alone.P99Ns()});
        const int app = loop.AddBe(be);
        loop.Run(kQueries);
        const double ratio = static_cast<double>(loop.P99Ns()) / static_cast<double>(alone.P99Ns());
        EXPECT_GE(loop.Rate(app), most - kMissMax)
            << "load " << load << ", BE of " << be.duration_ns << " ns, bound " << bound;
        EXPECT_LE(ratio, bound + kMissMax)
            << "load " << load << ", BE of " << be.duration_ns << " ns, bound " << bound;
        most = std::max(most, loop.Rate(app));
      }
    }
  }
}

TEST(Bounds, ThatOfTheMedianIsKeptUnderALooseOneOnTheP99) {
  constexpr int kQueries = 3'000;
  const OpenLoop::Be uncuttable = {.duration_ns = 500 * kUs};
  for (const double load : {0.1, 0.3, 0.5}) {
    OpenLoop alone("adaptive", {.load = load});
    alone.Run(kQueries);
    const auto median_beside = [&](double p50_bound) {
      OpenLoop loop(
          "adaptive",
          {.load = load, .p99_bound = 2, .p50_bound = p50_bound, .p99_alone_ns = alone.P99Ns()});
      loop.AddBe(uncuttable);
      loop.Run(kQueries);
      return static_cast<double>(loop.QuantileNs(0.5)) / static_cast<double>(alone.QuantileNs(0.5));
    };
    EXPECT_LE(median_beside(1.1), 1.1 + kMissMax) << load;
    EXPECT_GT(median_beside(0), 1.2) << load;
  }
}

}  // namespace
}  // namespace gpushare::core
