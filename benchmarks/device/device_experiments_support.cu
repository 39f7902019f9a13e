// Reports, host time, driver entry points and places of the device experiments (see the header).

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "benchmarks/device/device_experiments.h"

namespace experiments {
namespace {

struct State {
  std::mutex mutex;
  std::string name, question;
  Json answer;
  bool printed = false;
};

State& TheState() {
  static State* const state = new State;  // the process ends with _Exit
  return *state;
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += (c == '\n') ? ' ' : c;
  }
  return quoted + "\"";
}

// Answers each new value of *request with the time at which it was seen.
__global__ void AnswerTime(const uint64_t* request, uint64_t* time, uint64_t* answer,
                           uint64_t bound_ns) {
  const uint64_t begin = GlobalTimer();
  uint64_t last = 0;
  while (GlobalTimer() - begin < bound_ns) {
    const uint64_t value = LoadSystem(request);
    if (value == last) continue;
    StoreSystem(time, GlobalTimer());
    PublishSystem(answer, value);
    last = value;
    if (value == ~uint64_t{0}) return;
  }
}

}  // namespace

std::string Json::Number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[40];
  std::snprintf(text, sizeof(text), "%.10g", value);
  return text;
}

Json& Json::Raw(const std::string& key, const std::string& json) {
  if (!fields_.empty()) fields_ += ",";
  fields_ += Quoted(key) + ":" + json;
  return *this;
}

Json& Json::Set(const std::string& key, const std::string& text) { return Raw(key, Quoted(text)); }

Json& Json::Set(const std::string& key, const std::vector<double>& numbers) {
  std::string list = "[";
  for (const double number : numbers) list += (list.size() > 1 ? "," : "") + Number(number);
  return Raw(key, list + "]");
}

void BeginReport(const std::string& name, const std::string& question) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.name = name;
  state.question = question;
}

void SetAnswer(const std::string& key, const Json& value) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.answer.Set(key, value);
}

void SetAnswer(const std::string& key, double value) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.answer.Set(key, value);
}

void PrintReport(const std::string& error) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (state.printed) return;
  state.printed = true;
  Json report;
  report.Set("experiment", state.name).Set("question", state.question).Set("answer", state.answer);
  if (!error.empty()) report.Set("error", error);
  std::printf("%s\n", report.Text().c_str());
  std::fflush(stdout);
  if (!error.empty()) std::fprintf(stderr, "   ERROR: %s\n", error.c_str());
}

void Line(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "   ");
  std::vfprintf(stderr, format, arguments);
  std::fprintf(stderr, "\n");
  va_end(arguments);
}

void Fail(const std::string& message) {
  PrintReport(message);
  std::_Exit(1);
}

double Samples::Quantile(double q) const {
  if (values_.empty()) return 0;
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(q * sorted.size()))];
}

Json Samples::Summary() const {
  Json json;
  json.Set("n", size()).Set("min", Quantile(0)).Set("p50", Quantile(0.5));
  return json.Set("p99", Quantile(0.99)).Set("max", Quantile(1));
}

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void SpinNs(int64_t ns) {
  const int64_t end = NowNs() + ns;
  while (NowNs() < end) {
  }
}

bool WaitFor(const volatile uint64_t* word, uint64_t value, int64_t bound_ns) {
  const int64_t end = NowNs() + bound_ns;
  while (*word != value) {
    if (NowNs() > end) return *word == value;
  }
  return true;
}

void Must(cudaError_t code, const char* what, int line) {
  if (code == cudaSuccess) return;
  Fail(std::string(what) + " answers " + std::to_string(code) + " (" + cudaGetErrorName(code) +
       ") in line " + std::to_string(line) + ".");
}

void Must(CUresult code, const char* what, int line) {
  if (code == CUDA_SUCCESS) return;
  Fail(std::string(what) + " answers " + std::to_string(code) + " in line " + std::to_string(line) +
       ".");
}

const Driver& SetUp() {
  static Driver driver;
  MUST(cudaSetDeviceFlags(cudaDeviceScheduleSpin));
  MUST(cudaSetDevice(0));
  MUST(cudaFree(nullptr));
#define GPUSHARE_EXPERIMENT_LOAD(name)                                                     \
  {                                                                                        \
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;            \
    void* entry = nullptr;                                                                 \
    const cudaError_t code =                                                               \
        cudaGetDriverEntryPointByVersion(#name, &entry, 13000, cudaEnableDefault, &found); \
    if (code != cudaSuccess || found != cudaDriverEntryPointSuccess || entry == nullptr) { \
      Fail("The driver has no " #name " of CUDA 13.0.");                                   \
    }                                                                                      \
    driver.name = reinterpret_cast<decltype(driver.name)>(entry);                          \
  }
  GPUSHARE_EXPERIMENT_DRIVER_CALLS(GPUSHARE_EXPERIMENT_LOAD)
#undef GPUSHARE_EXPERIMENT_LOAD
  return driver;
}

int SmCount() {
  int sms = 0;
  MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  return sms;
}

Split MakeSplit(const Driver& driver) {
  CUdevResource all;
  MUST(driver.cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  unsigned count = 0;
  MUST(driver.cuDevSmResourceSplitByCount(nullptr, &count, &all, nullptr, 0, 8));
  Split split;
  split.groups.resize(count);
  split.remainder = CUdevResource{};
  MUST(driver.cuDevSmResourceSplitByCount(split.groups.data(), &count, &all, &split.remainder, 0,
                                          8));
  split.groups.resize(count);
  if (split.remainder.type == CU_DEV_RESOURCE_TYPE_SM) {
    split.remainder_sms = static_cast<int>(split.remainder.sm.smCount);
  }
  return split;
}

Place MakePlace(const Driver& driver, std::vector<CUdevResource> resources) {
  Place place;
  const auto tried = [&place](CUresult code, const char* what) {
    place.code = code;
    if (code != CUDA_SUCCESS) place.failed = what;
    return code == CUDA_SUCCESS;
  };
  CUdevResourceDesc description = nullptr;
  const int64_t start = NowNs();
  if (!tried(driver.cuDevResourceGenerateDesc(&description, resources.data(),
                                              static_cast<unsigned>(resources.size())),
             "cuDevResourceGenerateDesc") ||
      !tried(driver.cuGreenCtxCreate(&place.green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM),
             "cuGreenCtxCreate")) {
    return place;
  }
  place.create_us = Us(NowNs() - start);
  CUdevResource granted;
  if (tried(driver.cuCtxFromGreenCtx(&place.context, place.green), "cuCtxFromGreenCtx") &&
      tried(driver.cuGreenCtxGetDevResource(place.green, &granted, CU_DEV_RESOURCE_TYPE_SM),
            "cuGreenCtxGetDevResource")) {
    place.sms = static_cast<int>(granted.sm.smCount);
  }
  return place;
}

Place MakePlace(const Driver& driver, const Split& split, int first, int count, bool remainder) {
  std::vector<CUdevResource> resources(split.groups.begin() + first,
                                       split.groups.begin() + first + count);
  if (remainder && split.remainder_sms > 0) resources.push_back(split.remainder);
  return MakePlace(driver, std::move(resources));
}

int HighestPriority() {
  int least = 0;
  int greatest = 0;
  MUST(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  return greatest;
}

cudaStream_t MakeStream(int priority) {
  cudaStream_t stream = nullptr;
  MUST(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
  return stream;
}

cudaStream_t MakeStream(const Driver& driver, const Place& place, int priority) {
  CUstream stream = nullptr;
  MUST(driver.cuGreenCtxStreamCreate(&stream, place.green, CU_STREAM_NON_BLOCKING, priority));
  return stream;
}

void* AllocateMapped(size_t bytes) {
  void* memory = nullptr;
  MUST(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
  std::fill_n(static_cast<char*>(memory), bytes, char{0});
  return memory;
}

void* AllocateDevice(size_t bytes) {
  void* memory = nullptr;
  MUST(cudaMalloc(&memory, bytes));
  MUST(cudaMemset(memory, 0, bytes));
  MUST(cudaDeviceSynchronize());
  return memory;
}

void LaunchAnswerTime(cudaStream_t stream, uint64_t* words, uint64_t bound_ns) {
  AnswerTime<<<1, 1, 0, stream>>>(words, words + 16, words + 32, bound_ns);
}

ClockOffset MeasureClockOffset(int exchanges) {
  static uint64_t* const words = Mapped<uint64_t>(64);
  volatile uint64_t* const request = words;
  volatile uint64_t* const time = words + 16;
  volatile uint64_t* const answer = words + 32;
  *request = 0;
  *answer = 0;
  static const cudaStream_t stream = MakeStream(HighestPriority());
  LaunchAnswerTime(stream, words, 1'000'000'000);
  MUST(cudaGetLastError());
  ClockOffset best;
  best.round_trip_ns = INT64_MAX;
  for (uint64_t i = 1; i <= static_cast<uint64_t>(exchanges); ++i) {
    const int64_t start = NowNs();
    *request = i;
    if (!WaitFor(answer, i, 500'000'000)) Fail("The clock kernel does not answer.");
    const int64_t end = NowNs();
    if (i > 1 && end - start < best.round_trip_ns) {
      best.round_trip_ns = end - start;
      best.offset_ns = static_cast<int64_t>(*time) - (start + end) / 2;
    }
  }
  *request = ~uint64_t{0};
  MUST(cudaStreamSynchronize(stream));
  return best;
}

}  // namespace experiments
