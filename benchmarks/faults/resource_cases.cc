// What runs out: device memory, file descriptors, slots of tasks.

#include <cuda_runtime_api.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "benchmarks/faults/cases.h"
#include "benchmarks/faults/gpu_app.h"
#include "benchmarks/harness/gpu_device.h"

namespace gpushare::benchmarks {
namespace {

// Takes device memory until not even 1 MB is left.
class Hog {
 public:
  Hog() {
    for (size_t bytes = size_t{1} << 33; bytes >= size_t{1} << 20; bytes /= 2) {
      void* block = nullptr;
      while (cudaMalloc(&block, bytes) == cudaSuccess) blocks_.push_back(block);
    }
    cudaGetLastError();  // the refusals
  }
  ~Hog() { Free(); }
  Hog(const Hog&) = delete;
  Hog& operator=(const Hog&) = delete;
  void Free() {
    for (void* block : blocks_) cudaFree(block);
    blocks_.clear();
  }

 private:
  std::vector<void*> blocks_;
};

double FreeMb() {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  Cuda(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  return static_cast<double>(free_bytes) / (1 << 20);
}

// With no memory a runtime opens or is refused with a sentence; with memory it opens.
Json MemoryAtCreate() {
  OpenGpu();
  Json figures;
  {
    Hog hog;
    figures["free_mb"] = Rounded(FreeMb(), 1);
    RuntimeOptions options;
    options.device = "cuda";
    const auto runtime = Runtime::Create(options);
    figures["create"] = gpushare_status_name(runtime.status().code());
    figures["message"] = runtime.status().message();
    Expect(runtime.ok() || runtime.status().code() == GPUSHARE_RESOURCE_EXHAUSTED,
           "Without device memory the creation answers " + runtime.status().ToString());
  }
  GpuApp app;
  app.ExpectHealthy();
  app.ShutdownMs(2'000 * kMs);
  return figures;
}

// A runtime that has its memory goes on without more of it.
Json MemoryInUse() {
  GpuApp app;
  const std::unique_ptr<soak::Task> task = app.MakeBe(1);
  app.RunBe(*task);
  Hog hog;
  Json figures = {{"free_mb", Rounded(FreeMb(), 1)}};
  app.RunQueries(20, 1);
  for (int i = 0; i < 10; ++i) app.RunBe(*task);
  const CaptureFunction capture = [](void* stream, int32_t) {
    return LaunchWait({.wait_ns = 10'000}, 132, 256, static_cast<CUstream_st*>(stream));
  };
  KernelOptions options;
  options.name = "graph";
  const auto graph = app.runtime.RegisterGraph(options, capture);
  figures["graph"] = gpushare_status_name(graph.status().code());
  Expect(graph.ok() || graph.status().code() == GPUSHARE_RESOURCE_EXHAUSTED,
         "Without device memory the registration of a graph answers " + graph.status().ToString());
  hog.Free();
  options.name = "graph_again";
  Require(app.runtime.RegisterGraph(options, capture).status());
  app.ExpectHealthy();
  app.ShutdownMs(2'000 * kMs);
  return figures;
}

// Where no descriptor is left, the eventfd is refused and the task goes on.
Json EventFds() {
  GpuApp app;
  app.ExpectHealthy();
  const rlimit before = [] {
    rlimit limit = {};
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit;
  }();
  const int next = dup(0);
  close(next);
  const rlimit few = {static_cast<rlim_t>(next + 8), before.rlim_max};
  Expect(setrlimit(RLIMIT_NOFILE, &few) == 0, "The limit of descriptors cannot be lowered.");
  std::vector<Ticket> tickets;
  std::vector<int> fds;
  int refused = 0;
  for (int i = 0; i < 16; ++i) {
    Ticket ticket = app.SubmitQuery();
    const auto fd = ticket.EventFd();
    if (fd.ok()) {
      fds.push_back(Take(fd));
    } else {
      Expect(fd.status().code() == GPUSHARE_RESOURCE_EXHAUSTED,
             "Without a descriptor the eventfd answers " + fd.status().ToString());
      ++refused;
    }
    tickets.push_back(std::move(ticket));
  }
  Expect(refused > 0, "No eventfd was refused.");
  for (Ticket& ticket : tickets) {
    Expect(app.Finish(std::move(ticket)).verdict == GPUSHARE_VERDICT_OK, "A query is not OK.");
  }
  for (const int fd : fds) {
    pollfd ready = {fd, POLLIN, 0};
    Expect(poll(&ready, 1, 1000) == 1, "An eventfd is not readable after its completion.");
    close(fd);
  }
  setrlimit(RLIMIT_NOFILE, &before);
  app.ExpectHealthy();
  app.ShutdownMs(2'000 * kMs);
  return {{"made", fds.size()}, {"refused", refused}};
}

// A full app refuses more and loses nothing.
Json TaskSlots() {
  GpuApp app;
  std::vector<Ticket> tickets;
  Status last;
  for (int i = 0; i < 5000 && last.ok(); ++i) {
    Result<Ticket> ticket = app.TrySubmitQuery();
    last = ticket.status();
    if (ticket.ok()) tickets.push_back(*std::move(ticket));
  }
  Expect(last.code() == GPUSHARE_RESOURCE_EXHAUSTED, "A full app answers " + last.ToString());
  const size_t accepted = tickets.size();
  for (Ticket& ticket : tickets) {
    Expect(app.Finish(std::move(ticket)).verdict == GPUSHARE_VERDICT_OK, "A query is not OK.");
  }
  app.ExpectHealthy();
  app.ShutdownMs(2'000 * kMs);
  return {{"accepted", accepted}};
}

}  // namespace

std::vector<FaultCase> ResourceCases() {
  return {
      {"memory_at_create", "the creation is refused with a sentence, and works later", 30,
       MemoryAtCreate},
      {"memory_in_use", "what is registered goes on, a registration is refused", 30, MemoryInUse},
      {"eventfds", "an eventfd is refused, its task goes on", 20, EventFds},
      {"task_slots", "a submit is refused, nothing accepted is lost", 20, TaskSlots},
  };
}

}  // namespace gpushare::benchmarks
