// An app that states another promise or weight while it runs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/core/flow/open_loop.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kNodeNs = 150 * kUs;
constexpr int kNodes = 50;

struct Model {
  double load = 0;
  int64_t solo_ns = 0;
};
constexpr Model kSmall{0.16, 667 * kUs};
constexpr Model kLarge{3 * 0.16, 3 * 667 * kUs};  // each query takes three times as long

// A service whose model changes, with and without BE work, on the same arrivals.
class ModelSwap {
 public:
  explicit ModelSwap(bool with_be)
      : with_be_(with_be),
        loop_("adaptive", {.solo_ns = kSmall.solo_ns,
                           .p99_bound = 1.05,
                           .p99_alone_ns = with_be ? P99AloneNs(kSmall) : 0}) {
    if (with_be) be_ = loop_.AddBe({.duration_ns = kNodes * kNodeNs, .nodes = kNodes});
  }

  // The p99 of random arrivals at the model's load.
  static int64_t P99AloneNs(const Model& model) {
    OpenLoop alone("adaptive", {.load = model.load, .solo_ns = model.solo_ns, .p99_bound = 1.05});
    alone.Run(4'000);
    return alone.P99Ns();
  }

  void Serve(const Model& model, int queries, bool restate) {
    loop_.SetLoad(model.load);
    loop_.Swap(model.solo_ns);
    if (restate) loop_.Update({.promise = {.p99_alone_ns = P99AloneNs(model)}});
    loop_.Forget();
    const TimeNs begin_ns = loop_.scheduler().NowNs();
    const int64_t done = with_be_ ? loop_.done(be_) : 0;
    loop_.Run(queries);
    if (!with_be_) return;
    const auto passed_ns = static_cast<double>(loop_.scheduler().NowNs() - begin_ns);
    be_share_ = static_cast<double>((loop_.done(be_) - done) * kNodes * kNodeNs) / passed_ns;
  }
  // Of the last model: the share of the device that BE work had, and the p99.
  double be_share() const { return be_share_; }
  AppGuarantee Guarantee() const { return loop_.Guarantee(); }
  const std::vector<std::string>& reports() const { return loop_.reports(); }
  auto P99Ns() const { return static_cast<double>(loop_.P99Ns()); }

 private:
  bool with_be_;
  OpenLoop loop_;
  int be_ = 0;
  double be_share_ = 0;
};

// Judged by the p99 of the other model all queries are late whatever BE work does, and BE work is
// held for nothing.
TEST(AppUpdateTest, AfterAModelSwapTheNewP99AloneGivesBeItsShareBack) {
  ModelSwap alone(false);
  ModelSwap stated(true);
  const auto serve = [&](const Model& model, int queries) {
    alone.Serve(model, queries, false);
    stated.Serve(model, queries, true);
  };
  serve(kSmall, 4'000);
  const double share = stated.be_share();
  const double over_alone = stated.P99Ns() / alone.P99Ns();
  serve(kLarge, 10'000);
  EXPECT_GE(stated.be_share(), 0.48) << "0.52 are left";
  EXPECT_LE(stated.P99Ns(), 1.05 * alone.P99Ns());
  serve(kSmall, 12'000);  // the share varies by 0.2 of it from 4,000 queries to the next
  EXPECT_GE(stated.be_share(), 0.85 * share);
  EXPECT_LE(stated.P99Ns() / alone.P99Ns(), over_alone + 0.05);
}

// No update comes. A query takes longer than the stated bound allows, whatever BE work does.
TEST(AppUpdateTest, WhereTheBoundIsMissedEvenAloneBeIsNotHeldForIt) {
  ModelSwap alone(false);
  ModelSwap beside(true);
  const auto serve = [&](const Model& model, int queries) {
    alone.Serve(model, queries, false);
    beside.Serve(model, queries, false);
  };
  serve(kSmall, 4'000);
  const double share = beside.be_share();
  const double over_alone = beside.P99Ns() / alone.P99Ns();
  EXPECT_FALSE(beside.Guarantee().bound_lost);
  EXPECT_THAT(beside.reports(), IsEmpty());
  serve(kLarge, 10'000);
  EXPECT_TRUE(beside.Guarantee().bound_lost);
  EXPECT_GE(beside.Guarantee().late_share, 0.9) << "the stated bound is missed";
  EXPECT_THAT(beside.reports(), ElementsAre(HasSubstr("misses its p99 bound even alone")));
  EXPECT_GE(beside.be_share(), 0.48) << "0.52 are left";
  EXPECT_LE(beside.P99Ns(), 1.05 * alone.P99Ns()) << "the bound over the estimate is kept";
  serve(kSmall, 12'000);
  EXPECT_FALSE(beside.Guarantee().bound_lost);
  EXPECT_GE(beside.be_share(), 0.85 * share);
  EXPECT_LE(beside.P99Ns() / alone.P99Ns(), over_alone + 0.05);
}

// Each query misses the target, whatever BE work does. What opaque work has on credit is then as
// beside a bound on the p99 that the library finds.
TEST(AppUpdateTest, WhereTheTargetIsMissedEvenAloneItsLateQueriesHoldNoBe) {
  const auto share = [](const OpenLoop::Service& service) {
    OpenLoop loop("adaptive", service);
    const int be = loop.AddBe({.duration_ns = kMs, .opaque = true});
    loop.Run(6'000);
    const AppGuarantee guarantee = loop.Guarantee();
    const bool lost = service.target_ns > 0;
    EXPECT_EQ(guarantee.target_lost, lost);
    EXPECT_FALSE(guarantee.bound_lost);
    if (lost) {
      EXPECT_EQ(guarantee.late_share, 1);
      EXPECT_THAT(loop.reports(), ElementsAre(HasSubstr("misses its target even alone")));
      loop.Update({.promise = {.target_ns = 100 * kMs}});
      EXPECT_FALSE(loop.Guarantee().target_lost);
    }
    return loop.Rate(be);
  };
  const double beside_bound = share(
      {.load = 0.3, .p99_bound = 1.05, .p99_alone_ns = ModelSwap::P99AloneNs({0.3, 667 * kUs})});
  EXPECT_GT(beside_bound, 0);
  EXPECT_GE(share({.load = 0.3, .target_ns = 300 * kUs}), 0.8 * beside_bound) << beside_bound;
}

class WeightUpdateTest : public SimulatedSchedulerTest {
 protected:
  struct Tenant {
    WeightUpdateTest* test = nullptr;
    AppId app;
    TaskSpec spec;
  };
  void Start(Tenant& tenant, const char* name) {
    tenant.test = this;
    tenant.app = *scheduler_->CreateApp({.name = name});
    tenant.spec.queue = *scheduler_->CreateQueue(tenant.app);
    tenant.spec.kernel = *scheduler_->RegisterKernel(EvictableKernel(name, 25 * kUs));
    tenant.spec.work.block_tasks = 8 * 132 * 40;
    tenant.spec.detached = true;
    tenant.spec.callback_user = &tenant;
    tenant.spec.callback = [](void* user, const CompletionRecord&) {
      auto* const of = static_cast<Tenant*>(user);
      if (!of->test->ending_) of->test->Feed(*of);
    };
    for (int i = 0; i < 3; ++i) Feed(tenant);
  }
  void Feed(Tenant& tenant) { EXPECT_TRUE(scheduler_->SubmitBe(tenant.spec).ok()); }
  double ShareOver(int64_t ns) {
    const auto work = [&](const Tenant& tenant) {
      return static_cast<double>(scheduler_->StatsOf(tenant.app)->work_ns);
    };
    const double first = work(first_);
    const double second = work(second_);
    EXPECT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + ns).ok());
    return (work(first_) - first) / (work(first_) - first + work(second_) - second);
  }
  void TearDown() override {
    ending_ = true;
    SimulatedSchedulerTest::TearDown();
  }

  Tenant first_, second_;
  bool ending_ = false;
};

TEST_F(WeightUpdateTest, AWeightCountsFromTheUpdateOn) {
  ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy("adaptive")));
  Start(first_, "first");
  Start(second_, "second");
  EXPECT_NEAR(ShareOver(2'000 * kMs), 0.5, 0.02);
  ASSERT_TRUE(scheduler_->UpdateApp(first_.app, {.weight = 3}).ok());
  EXPECT_NEAR(ShareOver(2'000 * kMs), 0.75, 0.02);
  ASSERT_TRUE(scheduler_->UpdateApp(first_.app, {.weight = 1}).ok());
  EXPECT_NEAR(ShareOver(2'000 * kMs), 0.5, 0.02) << "the past is no debt";
}

}  // namespace
}  // namespace gpushare::core
