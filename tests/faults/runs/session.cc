#include "tests/faults/runs/session.h"

#include <algorithm>
#include <cstdio>

namespace gpushare::fault_runs {
namespace {

constexpr const char* kLcKernels[] = {"chain1", "decode16"};
constexpr const char* kBeKernels[] = {"sincos_27us", "streaming_59us", "ffma"};

}  // namespace

bool Session::Call(const char* what, gpushare_status status,
                   std::initializer_list<gpushare_status> expected) {
  if (status == GPUSHARE_OK) return true;
  if (std::find(expected.begin(), expected.end(), status) == expected.end()) {
    ledger_.Problem(std::string(what) + " answers " + gpushare_status_name(status) + ": " +
                    gpushare_last_error_message());
  }
  Say(std::string(what) + ": " + gpushare_last_error_message());
  return false;
}

void Session::Say(const std::string& text) {
  if (verbose_) std::printf("  %12lld ns  %s\n", static_cast<long long>(NowNs()), text.c_str());
}

int64_t Session::NowNs() {
  int64_t now_ns = 0;
  if (runtime_ != nullptr) gpushare_now_ns(runtime_, &now_ns);
  return now_ns;
}

bool Session::Open(const RunPlan& plan, const gpushare_runtime_options& options) {
  clock_jumps_ = plan.clock_jumps;
  const gpushare_status status = gpushare_runtime_create(&options, &runtime_);
  if (!Call("gpushare_runtime_create", status,
            {GPUSHARE_RESOURCE_EXHAUSTED, GPUSHARE_UNAVAILABLE})) {
    return false;
  }
  MakeApps();
  return MakeKernels();
}

bool Session::MakeKernels() {
  const auto enroll = [&](const char* name, std::vector<gpushare_kernel*>& kernels) {
    gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
    options.name = name;
    gpushare_kernel* kernel = nullptr;
    const gpushare_status status = gpushare_kernel_register(runtime_, &options, &kernel);
    if (Call("gpushare_kernel_register", status,
             {GPUSHARE_RESOURCE_EXHAUSTED, GPUSHARE_UNAVAILABLE})) {
      kernels.push_back(kernel);
    }
  };
  for (const char* const name : kLcKernels) enroll(name, lc_kernels_);
  for (const char* const name : kBeKernels) enroll(name, be_kernels_);
  return !lc_kernels_.empty() && !be_kernels_.empty();
}

void Session::MakeApps() {
  for (int i = 0; i < 4; ++i) {
    const bool lc = i < 2;
    const std::string name = "app" + std::to_string(i);
    gpushare_app_options options = GPUSHARE_APP_OPTIONS_INIT;
    options.name = name.c_str();
    options.app_class = lc ? GPUSHARE_CLASS_LATENCY_CRITICAL : GPUSHARE_CLASS_BEST_EFFORT;
    options.tasks_max = random_.Chance(0.3) ? static_cast<int32_t>(1 + random_.Below(16)) : 0;
    if (lc && random_.Chance(0.5)) options.p99_bound = random_.Between(1, 1.5);
    if (lc && random_.Chance(0.5)) options.p99_alone_ns = 2 * kMs;
    if (lc && random_.Chance(0.5)) options.target_ns = 1 + random_.Below(10 * kMs);
    if (options.target_ns > 0 && random_.Chance(0.3)) options.drop_late = 1;
    if (!lc) options.weight = random_.Between(0.1, 9);
    gpushare_app* app = nullptr;
    if (!Call("gpushare_app_create", gpushare_app_create(runtime_, &options, &app), {})) continue;
    apps_.push_back(app);
    for (int q = 0; q < 2; ++q) {
      gpushare_queue* queue = nullptr;
      if (Call("gpushare_queue_create", gpushare_queue_create(app, &queue), {})) {
        sources_.push_back({queue, lc});
      }
    }
  }
}

void Session::Shutdown() {
  stopping_ = true;
  const int64_t patience_ns = random_.Chance(0.7) ? 2 * kS : random_.Below(5 * kMs);
  const int64_t deadline_ns = NowNs() + patience_ns;
  Say("shutdown within " + std::to_string(patience_ns) + " ns");
  Call("gpushare_runtime_shutdown", gpushare_runtime_shutdown(runtime_, deadline_ns),
       {GPUSHARE_DEADLINE_EXCEEDED});
  if (!clock_jumps_) ledger_.shutdown_late_ns = std::max<int64_t>(0, NowNs() - deadline_ns);
}

void Session::Release() {
  for (const Source& source : sources_) {
    Call("gpushare_queue_release", gpushare_queue_release(source.queue), {});
  }
  for (gpushare_app* app : apps_) Call("gpushare_app_release", gpushare_app_release(app), {});
  for (gpushare_kernel* kernel : lc_kernels_) {
    Call("gpushare_kernel_release", gpushare_kernel_release(kernel), {});
  }
  for (gpushare_kernel* kernel : be_kernels_) {
    Call("gpushare_kernel_release", gpushare_kernel_release(kernel), {});
  }
  Call("gpushare_runtime_release", gpushare_runtime_release(runtime_), {});
  runtime_ = nullptr;
}

}  // namespace gpushare::fault_runs
