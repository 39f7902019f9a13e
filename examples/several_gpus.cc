// A latency-critical service on two GPUs with one queue, best-effort steps where room is, and one
// step on both GPUs. It runs on two simulated GPUs in virtual time, on any machine.
// docs/several-gpus.md explains each choice.
#include <gpushare/group/group.hpp>
#include <iostream>

namespace {

constexpr int kQueries = 200;
constexpr int kSteps = 60;
constexpr int64_t kMs = 1'000'000;

gpushare::AppOptions App(const char* name, gpushare_app_class app_class) {
  gpushare::AppOptions options;
  options.name = name;
  options.app_class = app_class;
  return options;
}

void Check(const gpushare::Status& status) {
  if (!status.ok()) throw gpushare::Error(status);
}

int Run() {
  gpushare::RuntimeOptions options;
  options.device = "sim";
  options.drive = GPUSHARE_DRIVE_POLL;
  const auto group = gpushare::Group::OfGpus(2, options).value();
  gpushare::KernelOptions kernel;
  kernel.name = "chain1";  // the built-in profile knows the rest
  gpushare::LcWork query;
  query.kernel = group->RegisterKernel(kernel).value();
  query.repeatable = true;  // it may run again if its GPU is lost
  kernel.name = "sincos_27us";
  gpushare::BeWork step;
  step.kernel = group->RegisterKernel(kernel).value();
  step.task.block_tasks = 200'000;  // 3 ms
  step.repeatable = true;

  const auto service =
      group->CreateLcQueue(App("service", GPUSHARE_CLASS_LATENCY_CRITICAL)).value();
  const auto training = group->CreateBeQueue(App("training", GPUSHARE_CLASS_BEST_EFFORT)).value();
  const auto decode = group->CreateSteps(App("decode", GPUSHARE_CLASS_LATENCY_CRITICAL)).value();
  for (int i = 0; i < kSteps; ++i) Check(training.Submit(step));
  for (int i = 0; i < kQueries; ++i) {  // of 0.67 ms each
    Check(service.Submit(query));
    Check(group->PollUntil(group->NowNs() + kMs / 2));
  }
  Check(group->Drain(group->NowNs() + 1000 * kMs));
  gpushare::GroupStep both = decode.Begin({}).value();  // on both GPUs, or an error
  // ... on a GPU: enqueue on both.stream(0) and both.stream(1) ...
  Check(both.End());
  Check(both.Wait(group->NowNs() + 1000 * kMs));

  int64_t queries = 0;
  int64_t steps = 0;
  for (int gpu = 0; gpu < group->size(); ++gpu) {
    const gpushare::AppStats served = service.AppOn(gpu).Stats().value();
    const gpushare::AppStats trained = training.AppOn(gpu).Stats().value();
    std::cout << "GPU " << gpu << ": " << served.completed << " queries, p99 "
              << served.latency.p99_ns / 1000 << " us; " << trained.completed << " BE steps\n";
    queries += served.completed;
    steps += trained.completed;
  }
  return queries == kQueries && steps == kSteps ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return Run();
  } catch (const gpushare::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
