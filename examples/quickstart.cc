// A best-effort step beside a latency-critical service, in C++. README.md shows what lies between
// the marks. It runs on the simulated device in real time, because its kernels are names of the
// built-in profile and bring no code (own_kernel/ does).
#include <algorithm>
#include <chrono>
#include <gpushare/gpushare.hpp>
#include <iostream>
#include <thread>
#include <vector>

namespace {

gpushare::Kernel FindKernel(const gpushare::Runtime& runtime, const char* name) {
  gpushare::KernelOptions options;
  options.name = name;  // the built-in profile knows the rest
  return runtime.RegisterKernel(options).value();
}

// A latency-critical service: queries with pauses of 1 ms.
class Service {
 public:
  explicit Service(const gpushare::Runtime& runtime) : model_(FindKernel(runtime, "chain1")) {
    gpushare::AppOptions service;
    service.name = "service";
    service.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
    app_ = runtime.CreateApp(service).value();
    queue_ = app_.CreateQueue().value();
  }
  // p99 at most 5 % above what it is alone.
  void Promise(int64_t p99_alone_us) {
    gpushare::AppUpdateOptions promise;
    promise.fields = GPUSHARE_APP_FIELD_P99_BOUND | GPUSHARE_APP_FIELD_P99_ALONE_NS;
    promise.p99_bound = 1.05;
    promise.p99_alone_ns = p99_alone_us * 1000;
    if (gpushare::Status status = app_.Update(promise); !status.ok()) throw gpushare::Error(status);
  }
  int64_t P99OfQueriesUs() const {
    using std::chrono::steady_clock;
    gpushare::TaskOptions request;
    request.kernel = model_.get();
    std::vector<int64_t> latency_us(100);
    for (int64_t& one : latency_us) {
      const steady_clock::time_point begin = steady_clock::now();
      static_cast<void>(queue_.RunLc(request).value());
      const steady_clock::duration taken = steady_clock::now() - begin;
      one = std::chrono::duration_cast<std::chrono::microseconds>(taken).count();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::sort(latency_us.begin(), latency_us.end());
    return latency_us[latency_us.size() * 99 / 100 - 1];
  }

 private:
  gpushare::Kernel model_;
  gpushare::App app_;
  gpushare::Queue queue_;
};

}  // namespace

int main() {
  // README begins
  try {
    gpushare::RuntimeOptions real_time;
    real_time.device = "sim:realtime";  // simulated work takes its time; on a GPU "cuda"
    const gpushare::Runtime runtime = gpushare::Runtime::Create(real_time).value();  // or throws
    Service service(runtime);  // a latency-critical app, in the same file
    const int64_t alone_us = service.P99OfQueriesUs();
    service.Promise(alone_us);  // p99 at most 5 % above it, whatever runs beside

    gpushare::AppOptions training;
    training.name = "training";
    training.app_class = GPUSHARE_CLASS_BEST_EFFORT;
    const gpushare::Queue queue = runtime.CreateApp(training).value().CreateQueue().value();
    gpushare::KernelOptions options;
    options.name = "sincos_27us";  // a name of the built-in profile
    const gpushare::Kernel gradient = runtime.RegisterKernel(options).value();
    gpushare::TaskOptions step;
    step.kernel = gradient.get();
    step.block_tasks = 10'000'000;
    gpushare::Ticket ticket = queue.SubmitBe(step).value();
    const int64_t beside_us = service.P99OfQueriesUs();

    if (gpushare::Status status = ticket.Wait(); !status.ok()) throw gpushare::Error(status);
    std::cout << "p99 alone " << alone_us << " us, beside training " << beside_us << " us; the "
              << "step was evicted " << ticket.Record().value().evictions << " times\n";
  } catch (const gpushare::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  // README ends
  return 0;
}
