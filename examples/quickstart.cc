// A best-effort step beside a latency-critical query, in C++. README.md shows what lies between the
// marks. Without a GPU it runs simulated. With one, set GPUSHARE_DEVICE=sim: its kernels are names
// of the built-in profile and bring no code (own_kernel/ does).
#include <gpushare/gpushare.hpp>
#include <iostream>

namespace {

gpushare::Kernel FindKernel(const gpushare::Runtime& runtime, const char* name) {
  gpushare::KernelOptions options;
  options.name = name;  // the built-in profile knows the rest
  return runtime.RegisterKernel(options).value();
}

// One query of a latency-critical app, waited for.
void AnswerQuery(const gpushare::Runtime& runtime) {
  gpushare::AppOptions service;
  service.name = "service";
  service.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  service.p99_bound = 1.05;
  service.p99_alone_ns = 2'000'000;  // measured without neighbours
  const gpushare::Queue queue = runtime.CreateApp(service).value().CreateQueue().value();
  const gpushare::Kernel model = FindKernel(runtime, "chain1");
  gpushare::TaskOptions request;
  request.kernel = model.get();
  gpushare::Ticket ticket = queue.SubmitLc(request).value();
  if (gpushare::Status status = ticket.Wait(); !status.ok()) throw gpushare::Error(status);
  const gpushare::CompletionRecord record = ticket.Record().value();
  std::cout << "query: " << gpushare_verdict_name(record.verdict) << " in "
            << (record.complete_ns - record.submit_ns) / 1000 << " us\n";
}

}  // namespace

int main() {
  // README begins
  try {
    const gpushare::Runtime runtime = gpushare::Runtime::Create().value();  // throws on an error
    gpushare::AppOptions training;
    training.name = "training";
    training.app_class = GPUSHARE_CLASS_BEST_EFFORT;
    const gpushare::Queue queue = runtime.CreateApp(training).value().CreateQueue().value();

    gpushare::KernelOptions options;
    options.name = "sincos_27us";  // a name of the built-in profile
    const gpushare::Kernel gradient = runtime.RegisterKernel(options).value();
    gpushare::TaskOptions step;
    step.kernel = gradient.get();
    step.block_tasks = 100000;
    gpushare::Ticket ticket = queue.SubmitBe(step).value();
    AnswerQuery(runtime);  // a latency-critical app, in the same file

    if (gpushare::Status status = ticket.Wait(); !status.ok()) throw gpushare::Error(status);
    const gpushare::CompletionRecord record = ticket.Record().value();
    std::cout << "training step: evicted " << record.evictions << " times, "
              << record.measured_ns / 1000 << " us of device time\n";
  } catch (const gpushare::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  // README ends
  return 0;
}
