// A policy of the application's own that fuses: a query's Tensor-core kernel takes a BE kernel with
// it, where a registered fused kernel of the two is shorter than one after the other.
#include <gpushare/gpushare.hpp>  // with the C table of gpushare_policy.h
#include <iostream>

namespace {

// What fusing the two heads saves, in ns; 0: no fused kernel has them as its parts.
double GainNs(const gpushare_snapshot& s, const gpushare_head_view& lc,
              const gpushare_head_view& be) {
  for (uint32_t i = 0; i < s.fused_count; ++i) {
    const auto* f = GPUSHARE_AT(gpushare_fused_view, s.fused, s.fused_stride, i);
    if (f->tensor_kernel_id != lc.kernel_id || f->cuda_kernel_id != be.kernel_id) continue;
    const auto tc = static_cast<double>(lc.remaining_ns);
    const auto cd = static_cast<double>(be.remaining_ns);
    return tc + cd - tc * gpushare_fused_ratio(f, cd / tc);
  }
  return 0;
}

void MakePlan(void* /*user*/, const gpushare_snapshot* s, gpushare_plan* plan) {
  bool fuses = false;  // BE work runs with a query or, as its grid, between queries
  for (uint32_t i = 0; i < s->head_count && plan->launch_count < GPUSHARE_PLAN_ACTIONS_MAX; ++i) {
    const auto* head = GPUSHARE_AT(gpushare_head_view, s->heads, s->head_stride, i);
    const bool lc = head->app_class == GPUSHARE_CLASS_LATENCY_CRITICAL;
    if (!lc && s->query_count > 0) continue;
    gpushare_planned_launch& launch = plan->launches[plan->launch_count++];
    launch.task = head->task;
    launch.form = GPUSHARE_FORM_ORIGINAL;
    launch.lane_class = lc ? GPUSHARE_LANE_LC : GPUSHARE_LANE_BE;
    double best_ns = 0;
    for (uint32_t j = i + 1; lc && !fuses && j < s->head_count; ++j) {  // BE heads are behind
      const auto* be = GPUSHARE_AT(gpushare_head_view, s->heads, s->head_stride, j);
      if (be->app_class != GPUSHARE_CLASS_BEST_EFFORT) continue;
      if (GainNs(*s, *head, *be) <= best_ns) continue;
      best_ns = GainNs(*s, *head, *be);
      launch.form = GPUSHARE_FORM_FUSED;
      launch.fused_with = be->task;
    }
    fuses = fuses || best_ns > 0;
  }
}

}  // namespace

int main() {
  gpushare::RuntimeOptions options;
  options.device = "sim";
  options.drive = GPUSHARE_DRIVE_POLL;
  const gpushare::Runtime runtime = gpushare::Runtime::Create(options).value();
  gpushare::PolicyTable policy;
  policy.name = "fuse";
  policy.make_plan = MakePlan;
  if (!runtime.SetPolicy(policy).ok()) return 1;
  gpushare::KernelOptions gemm, sincos;  // the built-in profile knows the rest
  gemm.name = "gemm_mma";
  sincos.name = "sincos_27us";
  gpushare::TaskOptions request, step;
  const auto tensor = runtime.RegisterKernel(gemm).value();
  const auto cuda = runtime.RegisterKernel(sincos).value();
  gpushare::FusedKernelOptions pair;  // on a GPU also its function: GPUSHARE_FUSED_KERNEL
  pair.name = "gemm_with_sincos";
  pair.tensor_part = request.kernel = tensor.get();
  pair.cuda_part = step.kernel = cuda.get();
  pair.opportune_duration_ratio = 1.2;  // parts that are equally long alone
  const auto fused = runtime.RegisterFusedKernel(pair).value();
  request.block_tasks = step.block_tasks = 5000;
  gpushare::AppOptions service, training;
  service.name = "service";
  service.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  training.name = "training";
  training.app_class = GPUSHARE_CLASS_BEST_EFFORT;
  const auto be = runtime.CreateApp(training).value().CreateQueue().value().SubmitBe(step);
  auto query = runtime.CreateApp(service).value().CreateQueue().value().SubmitLc(request).value();
  if (!query.Wait().ok() || !runtime.Drain().ok()) return 1;
  const auto record = query.Record().value();
  std::cout << "the query ran as " << gpushare_form_name(record.form) << "\n";
  return record.form == GPUSHARE_FORM_FUSED ? 0 : 1;
}
