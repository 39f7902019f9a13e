// Which warp scheduler does this GPU have? Two experiments, for comparison with the warp-level
// simulator (docs/warp-simulator.md).
//
// order: 32 warps an SM run equal FFMA loops that fill every issue slot. Under round robin they end
//   together; under greedy-then-oldest one after the other, by age.
// pairs: FFMA beside streaming and beside sincos, one block of 256 threads each an SM, sized to one
//   time, in both orders of launch. Saved is 1 - together / one after the other. The backgrounds
//   differ in what they leave of the issue slots: full; half of them (one chain a warp); full with
//   a short sleep after each burst, which is RT-PAWS's budget in software.
//
// One file and the CUDA runtime alone, so that nvcc builds it without the project:
//
//   nvcc -O3 -std=c++17 -arch=sm_90a -o warp_scheduler_benchmark warp_scheduler_benchmark.cu
//   warp_scheduler_benchmark > gpu_warp_scheduler.json         (3 s on an H200; 10 s at most)
//   warp_scheduler_benchmark --dry-run                         (no GPU: prints the plan)
//
// One JSON object on stdout. Exit code 0: measured; 1: a CUDA error; 2: bad use; 77: no GPU.
// Every loop on the GPU is bounded by a parameter, every wait on the host by a second.

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int kThreads = 256;
constexpr int kOrderThreads = 1024;  // 32 warps: eight a scheduler
constexpr int kSchedulers = 4;
constexpr int kWarpThreads = 32;
// Two blocks fit an SM and three do not, so a pair has one block of each kernel on every SM.
constexpr size_t kSharedBytes = 100 << 10;
constexpr size_t kStreamBytes = size_t{256} << 20;  // five times an H200's L2
constexpr double kTargetNs = 8e6;                   // of each kernel alone
constexpr int kRepeats = 5;
constexpr int64_t kBurst = 16;  // loop rounds of 128 FFMA between two sleeps
constexpr unsigned kSleepNs = 200;

void Require(cudaError_t code, const char* step) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s (%d).\n", step, cudaGetErrorString(code), static_cast<int>(code));
  std::exit(1);
}

struct BlockRecord {
  uint64_t begin_ns;
  uint64_t end_ns;
  uint32_t sm;
  float value;  // keeps the arithmetic alive
};

struct Work {
  BlockRecord* records;  // one a block
  unsigned* started;     // mapped host memory: blocks that run
  int64_t rounds;
  const float4* from;
  float4* to;
  size_t mask;  // elements of from and to, a power of two, less one
};

__device__ uint64_t NowNs() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ void Begin(const Work& work) {
  if (threadIdx.x == 0) {
    uint32_t sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    work.records[blockIdx.x].begin_ns = NowNs();
    work.records[blockIdx.x].sm = sm;
    atomicAdd_system(work.started, 1U);
  }
  __syncthreads();
}

__device__ void End(const Work& work, float value) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  work.records[blockIdx.x].end_ns = NowNs();
  work.records[blockIdx.x].value = value;
}

// 128 FFMA in kChains independent chains.
template <int kChains>
__device__ __forceinline__ void FfmaRound(float (&x)[kChains], float a, float b) {
#pragma unroll
  for (int i = 0; i < 128 / kChains; ++i) {
#pragma unroll
    for (int chain = 0; chain < kChains; ++chain) x[chain] = fmaf(x[chain], a, b);
  }
}

template <int kChains>
__device__ float Sum(const float (&x)[kChains]) {
  float sum = 0;
  for (int chain = 0; chain < kChains; ++chain) sum += x[chain];
  return sum;
}

template <int kChains, bool kSleeps>
__global__ void __launch_bounds__(kThreads) Ffma(Work work, float a, float b) {
  Begin(work);
  float x[kChains];
  for (int chain = 0; chain < kChains; ++chain) x[chain] = static_cast<float>(threadIdx.x + chain);
#pragma unroll 1
  for (int64_t round = 0; round < work.rounds; ++round) {
    FfmaRound(x, a, b);
    if (kSleeps && round % kBurst == kBurst - 1) __nanosleep(kSleepNs);
  }
  End(work, Sum(x));
}

// Two special functions and a few other instructions an angle, as the catalogue's sincos.
__global__ void __launch_bounds__(kThreads) Sincos(Work work, float a, float b) {
  Begin(work);
  float sum = 0;
  float angle = static_cast<float>(threadIdx.x) * a;
#pragma unroll 4
  for (int64_t round = 0; round < work.rounds; ++round) {
    sum += __cosf(angle) + __sinf(angle);
    angle = fmaf(angle, a, b);
  }
  End(work, sum);
}

// A copy of 16 bytes a thread, four accesses in flight.
__global__ void __launch_bounds__(kThreads) Streaming(Work work, float, float) {
  Begin(work);
  const size_t stride = static_cast<size_t>(gridDim.x) * kThreads;
  size_t at = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
#pragma unroll 1
  for (int64_t round = 0; round < work.rounds; ++round) {
    float4 values[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) values[i] = work.from[(at + i * stride) & work.mask];
#pragma unroll
    for (int i = 0; i < 4; ++i) work.to[(at + i * stride) & work.mask] = values[i];
    at = (at + 4 * stride) & work.mask;
  }
  End(work, 0);
}

// Each warp records when it ended, in clocks from the block's barrier.
__global__ void __launch_bounds__(kOrderThreads)
    Order(int64_t rounds, int64_t* ends, float* out, float a, float b) {
  float x[8];
  for (int chain = 0; chain < 8; ++chain) x[chain] = static_cast<float>(threadIdx.x + chain);
  __shared__ long long begin;
  if (threadIdx.x == 0) begin = clock64();
  __syncthreads();
#pragma unroll 1
  for (int64_t round = 0; round < rounds; ++round) FfmaRound(x, a, b);
  const float sum = Sum(x);
  if (threadIdx.x % kWarpThreads != 0) return;
  const size_t warp =
      static_cast<size_t>(blockIdx.x) * (kOrderThreads / kWarpThreads) + threadIdx.x / kWarpThreads;
  out[warp] = sum;
  ends[warp] = clock64() - begin;
}

using Kernel = void (*)(Work, float, float);

struct Body {
  const char* name;
  Kernel kernel;
  int64_t first_rounds;  // of the first run, from which the size follows
};

const Body kBackgrounds[] = {{"ffma", Ffma<8, false>, 20000},
                             {"ffma_half", Ffma<1, false>, 10000},
                             {"ffma_sleeps", Ffma<8, true>, 20000}};
const Body kNeighbours[] = {{"streaming", Streaming, 1000}, {"sincos", Sincos, 100000}};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Gpu {
 public:
  Gpu() {
    cudaDeviceProp properties;
    Require(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    sms = properties.multiProcessorCount;
    name = properties.name;
    Require(cudaMalloc(&from_, kStreamBytes), "cudaMalloc");
    Require(cudaMalloc(&to_, kStreamBytes), "cudaMalloc");
    Require(cudaMemset(from_, 0, kStreamBytes), "cudaMemset");
    for (int side = 0; side < 2; ++side) {
      Require(cudaStreamCreateWithFlags(&streams_[side], cudaStreamNonBlocking),
              "cudaStreamCreate");
      Require(cudaMalloc(&records_[side], static_cast<size_t>(sms) * sizeof(BlockRecord)),
              "cudaMalloc");
      Require(cudaHostAlloc(&started_[side], sizeof(unsigned), cudaHostAllocMapped),
              "cudaHostAlloc");
    }
  }

  struct Ran {
    std::vector<BlockRecord> blocks;
    uint64_t begin_ns = ~uint64_t{0};
    uint64_t end_ns = 0;
    double ns() const { return static_cast<double>(end_ns - begin_ns); }
  };

  // Launches one block an SM and waits until all of them run.
  void Launch(int side, const Body& body, int64_t rounds) {
    *static_cast<volatile unsigned*>(started_[side]) = 0;
    const Work work = {
        records_[side], started_[side], rounds, from_, to_, kStreamBytes / sizeof(float4) - 1};
    Require(cudaFuncSetAttribute(body.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(kSharedBytes)),
            "cudaFuncSetAttribute");
    body.kernel<<<sms, kThreads, kSharedBytes, streams_[side]>>>(work, 0.999F, 0.001F);
    Require(cudaGetLastError(), body.name);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (*static_cast<volatile unsigned*>(started_[side]) < static_cast<unsigned>(sms)) {
      if (std::chrono::steady_clock::now() > until) break;  // the records show it
    }
  }

  Ran Finish(int side) {
    Require(cudaStreamSynchronize(streams_[side]), "cudaStreamSynchronize");
    Ran ran;
    ran.blocks.resize(static_cast<size_t>(sms));
    Require(cudaMemcpy(ran.blocks.data(), records_[side], ran.blocks.size() * sizeof(BlockRecord),
                       cudaMemcpyDeviceToHost),
            "cudaMemcpy");
    for (const BlockRecord& block : ran.blocks) {
      ran.begin_ns = std::min(ran.begin_ns, block.begin_ns);
      ran.end_ns = std::max(ran.end_ns, block.end_ns);
    }
    return ran;
  }

  double AloneNs(const Body& body, int64_t rounds) {
    std::vector<double> times;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      Launch(0, body, rounds);
      times.push_back(Finish(0).ns());
    }
    return Median(times);
  }

  int sms = 0;
  std::string name;

 private:
  float4* from_ = nullptr;
  float4* to_ = nullptr;
  cudaStream_t streams_[2] = {};
  BlockRecord* records_[2] = {};
  unsigned* started_[2] = {};
};

struct Sized {
  const Body* body;
  int64_t rounds;
  double alone_ns;
};

Sized OfOneTime(Gpu& gpu, const Body& body) {
  const double first = gpu.AloneNs(body, body.first_rounds);
  const auto rounds =
      static_cast<int64_t>(static_cast<double>(body.first_rounds) * kTargetNs / first) + 1;
  return {&body, rounds, gpu.AloneNs(body, rounds)};
}

// SMs on which both kernels had a block.
int SharedSms(const Gpu::Ran& a, const Gpu::Ran& b) {
  int shared = 0;
  for (const BlockRecord& block : a.blocks) {
    shared += std::any_of(b.blocks.begin(), b.blocks.end(),
                          [&block](const BlockRecord& other) { return other.sm == block.sm; });
  }
  return shared;
}

void PrintTogether(Gpu& gpu, const char* key, const Sized& first, const Sized& second) {
  std::vector<double> saved;
  std::vector<double> first_over;
  std::vector<double> second_over;
  int shared = gpu.sms;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    gpu.Launch(0, *first.body, first.rounds);
    gpu.Launch(1, *second.body, second.rounds);
    const Gpu::Ran a = gpu.Finish(0);
    const Gpu::Ran b = gpu.Finish(1);
    const double both =
        static_cast<double>(std::max(a.end_ns, b.end_ns) - std::min(a.begin_ns, b.begin_ns));
    saved.push_back(1 - both / (first.alone_ns + second.alone_ns));
    first_over.push_back(a.ns() / first.alone_ns);
    second_over.push_back(b.ns() / second.alone_ns);
    shared = std::min(shared, SharedSms(a, b));
  }
  std::printf(
      "\"%s\": {\"first\": \"%s\", \"saved\": %.3f, \"first_over_alone\": %.3f, "
      "\"second_over_alone\": %.3f, \"sms_with_both\": %d}",
      key, first.body->name, Median(saved), Median(first_over), Median(second_over), shared);
}

void PrintPairs(Gpu& gpu) {
  std::vector<Sized> neighbours;
  for (const Body& body : kNeighbours) neighbours.push_back(OfOneTime(gpu, body));
  std::printf(", \"pairs\": [");
  const char* separator = "\n ";
  for (const Body& body : kBackgrounds) {
    const Sized background = OfOneTime(gpu, body);
    for (const Sized& neighbour : neighbours) {
      std::printf("%s{\"pair\": [\"%s\", \"%s\"], \"alone_us\": [%.1f, %.1f], ", separator,
                  body.name, neighbour.body->name, background.alone_ns / 1e3,
                  neighbour.alone_ns / 1e3);
      PrintTogether(gpu, "background_first", background, neighbour);
      std::printf(", ");
      PrintTogether(gpu, "neighbour_first", neighbour, background);
      std::printf("}");
      std::fflush(stdout);
      separator = ",\n ";
    }
  }
  std::printf("]");
}

// Ends of the warps of one scheduler over the last one's: by age (the warp's number) and sorted.
void PrintOrder(const Gpu& gpu) {
  constexpr int kWarps = kOrderThreads / kWarpThreads;
  constexpr int kEach = kWarps / kSchedulers;
  const size_t warps = static_cast<size_t>(gpu.sms) * kWarps;
  int64_t* ends = nullptr;
  float* out = nullptr;
  Require(cudaMalloc(&ends, warps * sizeof(int64_t)), "cudaMalloc");
  Require(cudaMalloc(&out, warps * sizeof(float)), "cudaMalloc");
  for (int run = 0; run < 2; ++run)
    Order<<<gpu.sms, kOrderThreads>>>(5000, ends, out, 0.999F, 0.001F);
  std::vector<int64_t> host(warps);
  Require(cudaMemcpy(host.data(), ends, warps * sizeof(int64_t), cudaMemcpyDeviceToHost), "order");
  std::vector<std::vector<double>> by_age(kEach);
  std::vector<std::vector<double>> sorted(kEach);
  for (int sm = 0; sm < gpu.sms; ++sm) {
    for (int scheduler = 0; scheduler < kSchedulers; ++scheduler) {
      std::vector<double> mine;
      for (int i = 0; i < kEach; ++i) {
        mine.push_back(static_cast<double>(
            host[static_cast<size_t>(sm) * kWarps + i * kSchedulers + scheduler]));
      }
      const double last = *std::max_element(mine.begin(), mine.end());
      for (int i = 0; i < kEach; ++i) by_age[i].push_back(mine[i] / last);
      std::sort(mine.begin(), mine.end());
      for (int i = 0; i < kEach; ++i) sorted[i].push_back(mine[i] / last);
    }
  }
  for (const auto& [key, ranks] :
       {std::make_pair("ends_by_age", by_age), std::make_pair("ends_sorted", sorted)}) {
    std::printf(", \"%s\": [", key);
    for (int i = 0; i < kEach; ++i) std::printf("%s%.3f", i == 0 ? "" : ", ", Median(ranks[i]));
    std::printf("]");
  }
  Require(cudaFree(ends), "cudaFree");
  Require(cudaFree(out), "cudaFree");
}

int DryRun() {
  std::printf(
      "{\"experiment\": \"warp_scheduler\", \"dry_run\": true, \"repeats\": %d, \"runs\": [",
      kRepeats);
  const char* separator = "";
  for (const Body& background : kBackgrounds) {
    for (const Body& neighbour : kNeighbours) {
      for (const char* first : {background.name, neighbour.name}) {
        std::printf("%s\n {\"pair\": [\"%s\", \"%s\"], \"first\": \"%s\"}", separator,
                    background.name, neighbour.name, first);
        separator = ",";
      }
    }
  }
  std::printf("]}\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--dry-run") == 0) return DryRun();
  if (argc != 1) {
    std::fprintf(stderr, "Use: warp_scheduler_benchmark [--dry-run]\n");
    return 2;
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "warp_scheduler_benchmark needs a GPU, and there is none.\n");
    return 77;
  }
  Gpu gpu;
  std::printf("{\"experiment\": \"warp_scheduler\", \"gpu\": \"%s\", \"sms\": %d, \"repeats\": %d",
              gpu.name.c_str(), gpu.sms, kRepeats);
  PrintOrder(gpu);
  PrintPairs(gpu);
  std::printf("}\n");
  return 0;
}
