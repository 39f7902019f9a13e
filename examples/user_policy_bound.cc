// A policy of the application's own that keeps a bound on the p99 of queries beside a BE graph in
// segments. The graph stays on the device while queries run, as long as their app is little behind
// the queue that it would have alone. With an argument it ignores the budget: the bound breaks.
#include <algorithm>
#include <gpushare/gpushare.hpp>
#include <iostream>
#include <random>

namespace {

bool careless = false;

// How much longer `be` may stay until the p99 of an app is beyond its bound; below 0: it leaves.
int64_t RoomNs(const gpushare_snapshot& s, const gpushare_head_view& be) {
  int64_t room_ns = GPUSHARE_NEVER / 2;  // without an end
  for (uint32_t i = 0; i < s.lc_app_count && !careless; ++i) {
    const auto* app = GPUSHARE_AT(gpushare_lc_app_view, s.lc_apps, s.lc_app_stride, i);
    if (app->blocking_budget_ns == GPUSHARE_NEVER) continue;  // it was promised nothing
    int64_t left_ns = app->blocking_budget_ns - be.eviction_p99_ns;
    // Too long for the budget, it may still start if the queries that it makes late fit the
    // hundredth.
    const double late = app->tail_need_per_ns * static_cast<double>(be.eviction_p99_ns);
    if (app->active_queries == 0 && late > 0 && app->tail_credit >= std::max(1.0, late)) continue;
    // The lag shows at a query's end what it has lost: half of the budget is for that.
    if (app->active_queries > 0) left_ns -= app->lag_ns + app->blocking_budget_ns / 2;
    if (app->active_queries > 0 && be.segment_gain < 0) left_ns = -1;  // costs more than it does
    room_ns = std::min(room_ns, left_ns);
  }
  return room_ns;
}

void MakePlan(void* /*user*/, const gpushare_snapshot* s, gpushare_plan* plan) {
  plan->arrangement.segments = GPUSHARE_SEGMENTS_BESIDE_QUERIES;  // so that their gain is measured
  for (uint32_t i = 0; i < s->lc_app_count; ++i) plan->routes[i].fast_path = 1;
  for (uint32_t i = 0; i < s->head_count && i < GPUSHARE_PLAN_ACTIONS_MAX; ++i) {
    const auto* head = GPUSHARE_AT(gpushare_head_view, s->heads, s->head_stride, i);
    const bool lc = head->app_class == GPUSHARE_CLASS_LATENCY_CRITICAL;
    if (!lc && RoomNs(*s, *head) < 0) continue;
    gpushare_planned_launch& launch = plan->launches[plan->launch_count++];
    launch.task = head->task;
    launch.form = lc ? GPUSHARE_FORM_GRAPH : GPUSHARE_FORM_SEGMENTS;
    launch.lane_class = lc ? GPUSHARE_LANE_LC : GPUSHARE_LANE_BE;
  }
  for (uint32_t i = 0; s->query_count > 0 && i < s->running_count; ++i) {  // one BE queue
    const auto* be = GPUSHARE_AT(gpushare_running_view, s->running, s->running_stride, i);
    const int64_t room_ns = RoomNs(*s, be->task);
    if (room_ns < 0) plan->evictions[plan->eviction_count++].task = be->task.task;
    // By then the lag may have used it up.
    if (room_ns >= 0) plan->replan_at_ns = std::min(plan->replan_at_ns, s->now_ns + room_ns + 1);
  }
}

// 3,000 queries of a decoder at random times, half of the device's time; with their p99 alone,
// beside endless steps of a graph, whose share of the device goes to `be_share`. Simulated.
gpushare::AppGuarantee Serve(int64_t p99_alone_ns, double& be_share) {
  gpushare::RuntimeOptions options;
  options.device = "sim";
  options.drive = GPUSHARE_DRIVE_POLL;
  const gpushare::Runtime runtime = gpushare::Runtime::Create(options).value();
  gpushare::PolicyTable policy;
  policy.name = "keep_bound";
  policy.make_plan = MakePlan;
  if (!runtime.SetPolicy(policy).ok()) return {};
  gpushare::AppOptions service, training;
  service.name = "decoder";
  service.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  service.p99_alone_ns = p99_alone_ns;
  service.p99_bound = p99_alone_ns > 0 ? 1.2 : 0;
  training.name = "training";
  training.app_class = GPUSHARE_CLASS_BEST_EFFORT;
  const auto lc = runtime.CreateApp(service).value(), be = runtime.CreateApp(training).value();
  const auto queries = lc.CreateQueue().value(), steps = be.CreateQueue().value();
  gpushare::KernelOptions decode, chain;  // the built-in profile knows the rest
  decode.name = "decode16";               // 542 us
  chain.name = "chain1";                  // 72 kernels in 659 us
  decode.kind = chain.kind = GPUSHARE_TASK_GRAPH;
  const auto decoder = runtime.RegisterKernel(decode).value();
  const auto trainer = runtime.RegisterKernel(chain).value();
  gpushare::TaskOptions query, step;
  query.kernel = decoder.get();
  step.kernel = trainer.get();
  std::mt19937_64 random(7);
  std::exponential_distribution<double> gap_ns(0.5 / 542e3);
  for (int64_t i = 0, at_ns = 0; i < 3000; ++i, at_ns += static_cast<int64_t>(gap_ns(random))) {
    while (p99_alone_ns > 0 && be.Stats().value().queue_depth < 8) steps.SubmitBe(step).value();
    if (!runtime.PollUntil(at_ns).ok() || !queries.SubmitLc(query).ok()) return {};
  }
  be_share = static_cast<double>(be.Stats().value().work_ns) / static_cast<double>(runtime.NowNs());
  return lc.Guarantee().value();
}

}  // namespace

int main(int argc, char** /*argv*/) {
  careless = argc > 1;
  double be_share = 0;
  const double over = Serve(Serve(0, be_share).p99_ns, be_share).p99_over_alone;
  std::cout << "p99 over alone " << over << ", bound 1.2; BE share " << be_share << "\n";
  return over > 0 && over <= 1.2 && be_share >= 0.45 ? 0 : 1;
}
