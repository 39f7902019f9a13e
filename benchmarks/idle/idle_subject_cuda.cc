// The library on a GPU, through its C ABI. The kernels only wait. See idle_subject.h.

#include <cuda_runtime_api.h>
#include <gpushare/gpushare.h>

#include <chrono>
#include <memory>
#include <utility>

#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/gpu_kernels.h"
#include "benchmarks/idle/idle_subject.h"

namespace gpushare::benchmarks {
namespace {

void Api(gpushare_status status) {
  if (status != GPUSHARE_OK) Fail(gpushare_last_error_message());
}

class CudaSubject final : public IdleSubject {
 public:
  explicit CudaSubject(const SubjectOptions& given) {
    gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
    options.device = "cuda";
    options.latency = given.spin ? GPUSHARE_LATENCY_SPIN : GPUSHARE_LATENCY_BALANCED;
    options.caller_spin_ns = given.callers_sleep ? -1 : 0;
    Api(gpushare_runtime_create(&options, &runtime_));
    Open(service_, "service", GPUSHARE_CLASS_LATENCY_CRITICAL);
    Open(region_, "region", GPUSHARE_CLASS_LATENCY_CRITICAL);
    Open(waiting_, "waiting", GPUSHARE_CLASS_LATENCY_CRITICAL);
    Open(training_, "training", GPUSHARE_CLASS_BEST_EFFORT);
    query_ = Register("query");
    step_ = Register("step");
    short_ = Register("short");
    train_ = Register("train");
    Cuda(cudaStreamCreateWithFlags(&bare_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  ~CudaSubject() override {
    cudaStreamDestroy(bare_);
    for (gpushare_kernel* kernel : {query_, step_, short_, train_}) gpushare_kernel_release(kernel);
    for (const Tenant& tenant : {service_, region_, waiting_, training_}) {
      gpushare_queue_release(tenant.queue);
      gpushare_app_release(tenant.app);
    }
    gpushare_runtime_release(runtime_);
  }

  uint64_t Submit(Job job, void (*done)(void*), void* user, bool with_ticket,
                  uint64_t awaited) override {
    const gpushare_ticket awaits = {awaited};
    WaitParams wait;
    gpushare_task_options task = TaskOf(job, wait);
    if (awaited != 0) {
      task.wait_tickets = &awaits;
      task.wait_ticket_count = 1;
    }
    if (done != nullptr) {
      task.callback = [](void* given, const gpushare_completion_record*) {
        const std::unique_ptr<Call> own(static_cast<Call*>(given));
        own->done(own->user);
      };
      task.callback_user = new Call{done, user};
    }
    gpushare_ticket ticket = {0};
    gpushare_ticket* const out = with_ticket ? &ticket : nullptr;
    gpushare_queue* const queue = awaited != 0 ? waiting_.queue : service_.queue;
    Api(job == Job::kBe ? gpushare_submit_be(training_.queue, &task, out)
                        : gpushare_submit_lc(queue, &task, out));
    return ticket.value;
  }
  int64_t LaunchBare() override {
    WaitParams wait = {.wait_ns = static_cast<uint64_t>(kQueryNs)};
    void* arguments[] = {&wait};
    const auto begin = std::chrono::steady_clock::now();
    Cuda(cudaLaunchKernel(WaitSymbol(), dim3(1), dim3(32), arguments, 0, bare_),
         "cudaLaunchKernel");
    return std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  }
  void Wait(uint64_t ticket) override {
    Api(gpushare_ticket_wait(runtime_, {ticket}, GPUSHARE_NEVER));
    Api(gpushare_ticket_release(runtime_, {ticket}));
  }
  void RunLc(Job job) override {
    WaitParams wait;
    const gpushare_task_options task = TaskOf(job, wait);
    Api(gpushare_run_lc(service_.queue, &task, GPUSHARE_NEVER, nullptr, nullptr));
  }
  uint64_t BeginRegion() override {
    gpushare_region_options options = GPUSHARE_REGION_OPTIONS_INIT;
    options.bound_ns = 1'000'000;
    void* stream = nullptr;
    gpushare_ticket ticket = {0};
    Api(gpushare_region_begin(region_.queue, &options, &ticket, &stream));
    return ticket.value;
  }
  void EndRegion(uint64_t region) override { Api(gpushare_region_end(runtime_, {region})); }
  void Drain() override { Api(gpushare_runtime_drain(runtime_, GPUSHARE_NEVER)); }

 private:
  struct Call {
    void (*done)(void*);
    void* user;
  };
  struct Tenant {
    gpushare_app* app = nullptr;
    gpushare_queue* queue = nullptr;
  };

  // Points to `wait`.
  gpushare_task_options TaskOf(Job job, WaitParams& wait) const {
    const auto [kernel, wait_ns] = [&]() -> std::pair<gpushare_kernel*, int64_t> {
      switch (job) {
        case Job::kQuery:
          return {query_, kQueryNs};
        case Job::kStep:
          return {step_, kStepNs};
        case Job::kBe:
          return {train_, kBeNs};
        case Job::kShort:
          return {short_, kShortNs};
      }
      return {short_, kShortNs};
    }();
    wait = {.wait_ns = static_cast<uint64_t>(wait_ns)};
    gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
    task.kernel = kernel;
    task.block_tasks = 1;
    task.arguments = &wait;
    task.arguments_size_bytes = sizeof(wait);
    return task;
  }
  void Open(Tenant& tenant, const char* name, gpushare_app_class app_class) {
    gpushare_app_options options = GPUSHARE_APP_OPTIONS_INIT;
    options.name = name;
    options.app_class = app_class;
    Api(gpushare_app_create(runtime_, &options, &tenant.app));
    Api(gpushare_queue_create(tenant.app, &tenant.queue));
  }
  gpushare_kernel* Register(const char* name) {
    gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
    options.name = name;
    cudaFunction_t function = nullptr;
    Cuda(cudaGetFuncBySymbol(&function, WaitSymbol()), "cudaGetFuncBySymbol");
    options.original_function = function;
    options.threads_per_block = 32;
    gpushare_kernel* kernel = nullptr;
    Api(gpushare_kernel_register(runtime_, &options, &kernel));
    return kernel;
  }

  gpushare_runtime* runtime_ = nullptr;
  Tenant service_, region_, waiting_, training_;
  gpushare_kernel* query_ = nullptr;
  gpushare_kernel* step_ = nullptr;
  gpushare_kernel* short_ = nullptr;
  gpushare_kernel* train_ = nullptr;
  cudaStream_t bare_ = nullptr;
};

}  // namespace

std::unique_ptr<IdleSubject> MakeCudaSubject(const SubjectOptions& options) {
  return std::make_unique<CudaSubject>(options);
}

std::string GpuModel() { return OpenGpu().model; }

}  // namespace gpushare::benchmarks
