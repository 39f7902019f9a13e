// One latency-critical query beside best-effort work, in C++. Without a GPU it runs simulated; with
// one set GPUSHARE_DEVICE=sim, as its kernels are names of the profile and bring no code
// (own_kernel/ does).
#include <gpushare/gpushare.hpp>
#include <iostream>

namespace {

gpushare::Queue MakeQueue(const gpushare::Runtime& runtime, gpushare_app_class app_class,
                          const char* name) {
  gpushare::AppOptions options;
  options.app_class = app_class;
  options.name = name;
  if (app_class == GPUSHARE_CLASS_LATENCY_CRITICAL) {
    options.p99_bound = 1.05;
    options.p99_alone_ns = 2'000'000;  // measured without neighbours
  }
  return runtime.CreateApp(options).value().CreateQueue().value();
}

gpushare::Kernel FindKernel(const gpushare::Runtime& runtime, const char* name) {
  gpushare::KernelOptions options;
  options.name = name;  // the built-in profile knows the rest
  return runtime.RegisterKernel(options).value();
}

void Run() {
  const gpushare::Runtime runtime = gpushare::Runtime::Create().value();
  const gpushare::Queue lc = MakeQueue(runtime, GPUSHARE_CLASS_LATENCY_CRITICAL, "service");
  const gpushare::Queue be = MakeQueue(runtime, GPUSHARE_CLASS_BEST_EFFORT, "training");
  const gpushare::Kernel model = FindKernel(runtime, "chain1");
  const gpushare::Kernel gradient = FindKernel(runtime, "sincos_27us");
  gpushare::TaskOptions step;
  step.kernel = gradient.get();
  step.block_tasks = 100000;
  gpushare::Ticket training = be.SubmitBe(step).value();

  gpushare::TaskOptions request;
  request.kernel = model.get();
  gpushare::Ticket query = lc.SubmitLc(request).value();
  if (gpushare::Status status = query.Wait(); !status.ok()) throw gpushare::Error(status);
  const gpushare::CompletionRecord record = query.Record().value();
  std::cout << "query: " << gpushare_verdict_name(record.verdict) << " in "
            << (record.complete_ns - record.submit_ns) / 1000 << " us\n";

  if (gpushare::Status status = training.Wait(); !status.ok()) throw gpushare::Error(status);
  std::cout << "training step: evicted " << training.Record().value().evictions << " times, on "
            << runtime.Device().value().name << "\n";
}

}  // namespace

int main() {
  try {
    Run();
    return 0;
  } catch (const gpushare::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
