// Errors that poison the CUDA context, and handles and launches that CUDA refuses.

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "benchmarks/faults/cases.h"
#include "benchmarks/faults/fault_kernels.h"
#include "benchmarks/faults/gpu_app.h"
#include "benchmarks/harness/gpu_device.h"

namespace gpushare::benchmarks {
namespace {

constexpr int kHealthyTasks = 8;
constexpr FaultParams kWild = {.address = 0x10};

Kernel FaultKernel(GpuApp& app, const void* symbol) {
  cudaFunction_t function = nullptr;
  Cuda(cudaGetFuncBySymbol(&function, symbol), "cudaGetFuncBySymbol");
  KernelOptions options;
  options.name = "fault";
  options.original_function = function;
  options.threads_per_block = 1;
  options.solo_ns = 10'000;
  return Take(app.runtime.RegisterKernel(options));
}

TaskOptions FaultTask(const Kernel& kernel) {
  TaskOptions task;
  task.kernel = kernel.get();
  task.block_tasks = 1;
  task.arguments = &kWild;
  task.arguments_size_bytes = sizeof(kWild);
  return task;
}

// After the fault: every ticket ends once, the loss is reported, new work is refused, the end is
// bounded.
Json ExpectLost(GpuApp& app, std::vector<Ticket> tickets, int64_t fault_ns) {
  int lost = 0;
  for (Ticket& ticket : tickets) {
    const CompletionRecord record = app.Finish(std::move(ticket));
    Expect(record.verdict != GPUSHARE_VERDICT_PENDING, "A complete ticket has no verdict.");
    lost += record.verdict == GPUSHARE_VERDICT_DEVICE_LOST ? 1 : 0;
  }
  const int64_t found_ns = app.NowNs();
  Expect(app.Stats().device_lost == 1, "The context is poisoned, and device_lost is 0.");
  const auto refused = app.TrySubmitQuery();
  Expect(!refused.ok() && refused.status().code() == GPUSHARE_UNAVAILABLE,
         "A submit to a lost device answers " + refused.status().ToString());
  const double shutdown_ms = app.ShutdownMs(2'000 * kMs);
  return {{"found_ms", Rounded(static_cast<double>(found_ns - fault_ns) / kMs, 1)},
          {"tickets", tickets.size()},
          {"device_lost", lost},
          {"shutdown_ms", Rounded(shutdown_ms, 1)}};
}

std::vector<Ticket> SubmitHealthy(GpuApp& app) {
  std::vector<Ticket> tickets;
  for (int i = 0; i < kHealthyTasks; ++i) tickets.push_back(app.SubmitQuery());
  return tickets;
}

Json StickyBe(const void* symbol) {
  GpuApp app(GpuApp::Options{.policy = "priority"});
  app.ExpectHealthy();
  const Kernel kernel = FaultKernel(app, symbol);
  std::vector<Ticket> tickets = SubmitHealthy(app);
  const int64_t fault_ns = app.NowNs();
  tickets.push_back(Take(app.be.SubmitBe(FaultTask(kernel))));
  return ExpectLost(app, std::move(tickets), fault_ns);
}

Json StickyLc(const void* symbol) {
  GpuApp app;
  app.ExpectHealthy();
  const Kernel kernel = FaultKernel(app, symbol);
  std::vector<Ticket> tickets = SubmitHealthy(app);
  const int64_t fault_ns = app.NowNs();
  tickets.push_back(Take(app.lc.SubmitLc(FaultTask(kernel))));
  return ExpectLost(app, std::move(tickets), fault_ns);
}

// Other code in the process poisons the context; the library finds it at its next work.
Json StickyForeign() {
  GpuApp app;
  app.ExpectHealthy();
  cudaStream_t stream = nullptr;
  Cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  const int64_t fault_ns = app.NowNs();
  Cuda(LaunchTrap(stream), "the launch of the trap");
  cudaStreamSynchronize(stream);
  std::vector<Ticket> tickets;
  for (int i = 0; i < kHealthyTasks; ++i) {
    Result<Ticket> ticket = app.TrySubmitQuery();
    if (!ticket.ok()) break;  // refused, because the loss is known already
    tickets.push_back(*std::move(ticket));
  }
  return ExpectLost(app, std::move(tickets), fault_ns);
}

Json TrapInBe() { return StickyBe(TrapSymbol()); }
Json TrapInLc() { return StickyLc(TrapSymbol()); }
Json WildWriteInBe() { return StickyBe(WildWriteSymbol()); }
Json WildWriteInLc() { return StickyLc(WildWriteSymbol()); }

// A function of the driver, which this program does not link.
template <class Function>
Function DriverFunction(const char* name) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  void* const function = library == nullptr ? nullptr : dlsym(library, name);
  Expect(function != nullptr, std::string("The driver has no ") + name + ".");
  return reinterpret_cast<Function>(function);
}

constexpr char kPtx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry nothing(.param .u64 a)\n{\n ret;\n}\n";

// A CUfunction of a second context on the same GPU.
void* ForeignFunction() {
  const auto create = DriverFunction<int (*)(void**, unsigned, int)>("cuCtxCreate_v2");
  const auto load = DriverFunction<int (*)(void**, const void*)>("cuModuleLoadData");
  const auto find = DriverFunction<int (*)(void**, void*, const char*)>("cuModuleGetFunction");
  const auto pop = DriverFunction<int (*)(void**)>("cuCtxPopCurrent_v2");
  void* context = nullptr;
  void* module = nullptr;
  void* function = nullptr;
  Cuda(create(&context, 0, 0), "cuCtxCreate");
  Cuda(load(&module, kPtx), "cuModuleLoadData");
  Cuda(find(&function, module, "nothing"), "cuModuleGetFunction");
  Cuda(pop(&context), "cuCtxPopCurrent");
  return function;
}

// Refused at its registration, or a failed task; the device goes on.
Json ForeignContext() {
  GpuApp app(GpuApp::Options{.policy = "priority"});
  KernelOptions options;
  options.name = "foreign";
  options.original_function = ForeignFunction();
  options.threads_per_block = 32;
  auto kernel = app.runtime.RegisterKernel(options);
  Json figures = {{"registration", gpushare_status_name(kernel.status().code())}};
  if (kernel.ok()) {
    const uint64_t argument = 0;
    TaskOptions task;
    task.kernel = kernel->get();
    task.block_tasks = 1;
    task.arguments = &argument;
    task.arguments_size_bytes = sizeof(argument);
    const CompletionRecord record = app.Finish(Take(app.be.SubmitBe(task)));
    figures["verdict"] = gpushare_verdict_name(record.verdict);
    figures["error_code"] = record.error_code;
  }
  app.ExpectHealthy();
  app.ShutdownMs(2'000 * kMs);
  return figures;
}

// CUDA does not promise to find this; the process may die.
Json DestroyedEvent() {
  GpuApp app;
  cudaEvent_t event = nullptr;
  Cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  Cuda(cudaEventDestroy(event), "cudaEventDestroy");
  const Kernel kernel = app.WaitKernel("signals", 100'000);
  const WaitParams wait = {.wait_ns = 100'000};
  TaskOptions task = GpuApp::WaitTask(kernel, wait, 1);
  task.signal_event = event;
  const CompletionRecord record = app.Finish(Take(app.lc.SubmitLc(task)));
  app.ExpectHealthy();
  app.ShutdownMs(2'000 * kMs);
  return {{"verdict", gpushare_verdict_name(record.verdict)}, {"error_code", record.error_code}};
}

// Launches that no GPU can run are refused with a sentence, and nothing is left behind.
Json BadLaunches() {
  GpuApp app;
  cudaFunction_t function = nullptr;
  Cuda(cudaGetFuncBySymbol(&function, WaitSymbol()), "cudaGetFuncBySymbol");
  KernelOptions options;
  options.name = "too_wide";
  options.original_function = function;
  options.threads_per_block = 4096;
  const auto wide = app.runtime.RegisterKernel(options);
  Expect(!wide.ok(), "A block of 4096 threads was registered.");
  options.name = "too_large";
  options.threads_per_block = 256;
  options.dynamic_shared_memory_bytes = 1 << 20;
  const auto large = app.runtime.RegisterKernel(options);
  Expect(!large.ok(), "1 MB of shared memory was registered.");
  const Kernel wait = app.WaitKernel("short_arguments", 100'000);
  TaskOptions task;
  task.kernel = wait.get();
  task.block_tasks = 1;
  const auto none = app.lc.SubmitLc(task);
  Json figures = {{"too_wide", gpushare_status_name(wide.status().code())},
                  {"too_large", gpushare_status_name(large.status().code())},
                  {"without_arguments", gpushare_status_name(none.status().code())}};
  app.ExpectHealthy();
  app.ShutdownMs(2'000 * kMs);
  return figures;
}

}  // namespace

std::vector<FaultCase> ErrorCases() {
  static constexpr char kLost[] = "every ticket ends, device_lost is reported, submits are refused";
  return {
      {"sticky_trap_be", kLost, 20, TrapInBe},
      {"sticky_trap_lc", kLost, 20, TrapInLc},
      {"sticky_wild_write_be", kLost, 20, WildWriteInBe},
      {"sticky_wild_write_lc", kLost, 20, WildWriteInLc},
      {"sticky_foreign_kernel", kLost, 20, StickyForeign},
      {"bad_handle_context", "it is refused or its task fails, the device goes on", 20,
       ForeignContext},
      {"bad_handle_event", "CUDA does not detect it: documented", 20, DestroyedEvent, true},
      {"bad_launch", "it is refused with a sentence, the device goes on", 20, BadLaunches},
  };
}

}  // namespace gpushare::benchmarks
