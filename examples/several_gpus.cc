// A latency-critical service on two GPUs with one queue, best-effort steps where room is, and one
// step on both. It runs on two simulated GPUs, on any machine; docs/several-gpus.md explains it.
#include <gpushare/group/group.hpp>
#include <iostream>

namespace {

constexpr int64_t kMs = 1'000'000;

gpushare::AppOptions App(const char* name, gpushare_app_class app_class) {
  gpushare::AppOptions options;
  options.name = name;
  options.app_class = app_class;
  return options;
}

int Run() {
  gpushare::RuntimeOptions options;
  options.device = "sim";
  options.drive = GPUSHARE_DRIVE_POLL;  // in virtual time, which PollUntil advances
  const auto group = gpushare::Group::OfGpus(2, options).value();
  const auto service = group->CreateLcQueue(App("chat", GPUSHARE_CLASS_LATENCY_CRITICAL)).value();
  const auto training = group->CreateBeQueue(App("training", GPUSHARE_CLASS_BEST_EFFORT)).value();
  const auto decode = group->CreateSteps(App("decode", GPUSHARE_CLASS_LATENCY_CRITICAL)).value();
  gpushare::KernelOptions kernel;
  kernel.name = "chain1";  // 0.67 ms; the built-in profile knows the rest
  gpushare::LcWork query;
  query.kernel = group->RegisterKernel(kernel).value();
  query.repeatable = true;  // it may run again if its GPU is lost
  kernel.name = "sincos_27us";
  gpushare::BeWork step;
  step.kernel = group->RegisterKernel(kernel).value();
  step.task.block_tasks = 200'000;  // 3 ms
  bool ok = true;
  for (int i = 0; i < 60; ++i) ok &= training.Submit(step).ok();
  for (int i = 0; i < 200; ++i) {
    ok &= service.Submit(query).ok() && group->PollUntil(group->NowNs() + kMs / 2).ok();
  }
  ok &= group->Drain(group->NowNs() + 1000 * kMs).ok();
  gpushare::GroupStep both = decode.Begin({}).value();  // on both GPUs, or an error
  // ... on GPUs: enqueue on both.stream(0) and both.stream(1) ...
  ok &= both.End().ok() && both.Wait(group->NowNs() + 1000 * kMs).ok();
  int64_t ended = 0;
  for (int gpu = 0; gpu < group->size(); ++gpu) {
    const gpushare::AppStats served = service.AppOn(gpu).Stats().value();
    const gpushare::AppStats trained = training.AppOn(gpu).Stats().value();
    std::cout << "GPU " << gpu << ": " << served.completed << " queries, p99 "
              << served.latency.p99_ns / 1000 << " us; " << trained.completed << " steps\n";
    ended += served.completed + trained.completed;
  }
  return ok && ended == 260 ? 0 : 1;
}

}  // namespace

int main() try { return Run(); } catch (const gpushare::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
