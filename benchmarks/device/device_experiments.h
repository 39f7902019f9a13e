// What the device experiments share: a report that survives failures, statistics, host time, the
// driver's entry points, places (green contexts) and mapped memory.
//
// Each experiment runs alone in a process, on its main thread (helper threads where it says so).
// An error ends the process, after printing what was measured up to then. CUDA's headers are
// included by the compiler's command line (CMakeLists.txt), and libcuda is reached through the
// runtime only.

#ifndef GPUSHARE_BENCHMARKS_DEVICE_DEVICE_EXPERIMENTS_H_
#define GPUSHARE_BENCHMARKS_DEVICE_DEVICE_EXPERIMENTS_H_

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace experiments {

// --- Reports ---------------------------------------------------------------------------------

// One JSON object, built field by field; numbers that are not finite become null.
class Json {
 public:
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Json& Set(const std::string& key, T value) {
    return Raw(key, Number(static_cast<double>(value)));
  }
  Json& Set(const std::string& key, const std::string& text);
  Json& Set(const std::string& key, const char* text) { return Set(key, std::string(text)); }
  Json& Set(const std::string& key, const Json& object) { return Raw(key, object.Text()); }
  Json& Set(const std::string& key, const std::vector<double>& numbers);
  std::string Text() const { return "{" + fields_ + "}"; }

 private:
  static std::string Number(double value);
  Json& Raw(const std::string& key, const std::string& json);
  std::string fields_;
};

// The answer of the experiment that this process runs. Thread-safe.
void SetAnswer(const std::string& key, const Json& value);
void SetAnswer(const std::string& key, double value);
// A line for people, on stderr.
void Line(const char* format, ...) __attribute__((format(printf, 1, 2)));
// Prints the report with an error and ends the process.
[[noreturn]] void Fail(const std::string& message);

class Samples {
 public:
  void Add(double value) { values_.push_back(value); }
  size_t size() const { return values_.size(); }
  double Quantile(double q) const;  // 0 when there is none
  Json Summary() const;             // {n, min, p50, p99, max}

 private:
  std::vector<double> values_;
};

// --- Host time -------------------------------------------------------------------------------

int64_t NowNs();  // CLOCK_MONOTONIC
void SpinNs(int64_t ns);
inline double Us(int64_t ns) { return static_cast<double>(ns) * 1e-3; }
// Waits until *word is `value`, at most bound_ns.
bool WaitFor(const volatile uint64_t* word, uint64_t value, int64_t bound_ns);

#ifdef __CUDACC__

// --- Errors and the driver -------------------------------------------------------------------

void Must(cudaError_t code, const char* what, int line);
void Must(CUresult code, const char* what, int line);
#define MUST(call) ::experiments::Must((call), #call, __LINE__)

// The formatter never settles on this list.
// clang-format off
#define GPUSHARE_EXPERIMENT_DRIVER_CALLS(X) \
  X(cuDeviceGetDevResource) \
  X(cuDevSmResourceSplitByCount) \
  X(cuDevResourceGenerateDesc) \
  X(cuGreenCtxCreate) \
  X(cuGreenCtxDestroy) \
  X(cuGreenCtxStreamCreate) \
  X(cuGreenCtxGetDevResource) \
  X(cuCtxFromGreenCtx) \
  X(cuCtxSetCurrent) \
  X(cuCtxGetCurrent) \
  X(cuKernelGetFunction) \
  X(cuLaunchKernel) \
  X(cuStreamWriteValue32) \
  X(cuStreamWriteValue64) \
  X(cuStreamGetPriority) \
  X(cuGraphClone) \
  X(cuGraphGetNodes) \
  X(cuGraphNodeGetType) \
  X(cuGraphKernelNodeGetParams) \
  X(cuGraphKernelNodeSetParams) \
  X(cuGraphMemsetNodeGetParams) \
  X(cuGraphMemcpyNodeGetParams) \
  X(cuGraphNodeSetParams) \
  X(cuGraphInstantiateWithFlags) \
  X(cuGraphExecKernelNodeSetParams) \
  X(cuGraphExecMemsetNodeSetParams) \
  X(cuGraphLaunch)
// clang-format on

struct Driver {
#define GPUSHARE_EXPERIMENT_MEMBER(name) decltype(&::name) name = nullptr;
  GPUSHARE_EXPERIMENT_DRIVER_CALLS(GPUSHARE_EXPERIMENT_MEMBER)
#undef GPUSHARE_EXPERIMENT_MEMBER
};

// Initialises device 0 and its primary context and loads the driver's entry points.
const Driver& SetUp();
int SmCount();

// --- Places ----------------------------------------------------------------------------------

struct Split {
  std::vector<CUdevResource> groups;
  CUdevResource remainder;
  int remainder_sms = 0;
};
Split MakeSplit(const Driver& driver);

struct Place {
  CUresult code = CUDA_SUCCESS;  // of the call that failed
  const char* failed = "";
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  int sms = 0;  // as the driver reports
  double create_us = 0;
};
Place MakePlace(const Driver& driver, std::vector<CUdevResource> resources);
// Groups [first, first + count), and the remainder if asked.
Place MakePlace(const Driver& driver, const Split& split, int first, int count, bool remainder);
cudaStream_t MakeStream(int priority);
// A kernel that answers each new request, words[0] of mapped memory, in words[32] with the device's
// time in words[16]; ends at the request ~0 or after bound_ns.
void LaunchAnswerTime(cudaStream_t stream, uint64_t* words, uint64_t bound_ns);
cudaStream_t MakeStream(const Driver& driver, const Place& place, int priority);
int HighestPriority();

// --- Memory, zeroed --------------------------------------------------------------------------

void* AllocateMapped(size_t bytes);
void* AllocateDevice(size_t bytes);
template <typename T>
T* Mapped(size_t count = 1) {
  return static_cast<T*>(AllocateMapped(count * sizeof(T)));
}
template <typename T>
T* OnDevice(size_t count = 1) {
  return static_cast<T*>(AllocateDevice(count * sizeof(T)));
}

// %globaltimer minus CLOCK_MONOTONIC, from the fastest of some exchanges with a spinning kernel.
// The clocks drift: measure near the times that are compared, with the device idle.
struct ClockOffset {
  int64_t offset_ns = 0;
  int64_t round_trip_ns = 0;
};
ClockOffset MeasureClockOffset(int exchanges = 50);

// Loads a kernel now: loading later would wait for kernels that spin.
template <typename Kernel>
void Preload(Kernel* kernel) {
  cudaFuncAttributes attributes;
  MUST(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)));
}

// --- Device code -----------------------------------------------------------------------------

__device__ inline uint64_t GlobalTimer() {
  uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}
__device__ inline uint32_t SmId() {
  uint32_t id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
}
__device__ inline uint64_t LoadGpu(const uint64_t* word) {
  uint64_t value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
__device__ inline uint64_t LoadSystem(const uint64_t* word) {
  uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
__device__ inline void StoreGpu(uint64_t* word, uint64_t value) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
__device__ inline void StoreSystem(uint64_t* word, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
__device__ inline void PublishSystem(uint64_t* word, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

#endif  // __CUDACC__

// --- The experiments -------------------------------------------------------------------------

void RunGraphPlace();
void RunEvictSignal();
void RunEvictToLc();
void RunYieldPoints();
void RunCompletion();
void RunThreads();
void RunClock();
void RunLanes();
void RunRelaunchGap();
void RunSmSet();

// Prints the report of this process: at its end (empty error), or early.
void PrintReport(const std::string& error);
void BeginReport(const std::string& name, const std::string& question);

}  // namespace experiments

#endif  // GPUSHARE_BENCHMARKS_DEVICE_DEVICE_EXPERIMENTS_H_
