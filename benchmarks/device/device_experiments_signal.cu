// evict_signal: how fast a running kernel sees an eviction, by way of writing it. clock:
// %globaltimer against CLOCK_MONOTONIC.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "benchmarks/device/device_experiments.h"

namespace experiments {
namespace {

constexpr int kTries = 200;
constexpr int kBlockedToGiveUp = 3;  // a way that is blocked stays so until the BE streams end
constexpr int64_t kBlockedNs = 20'000'000;
constexpr uint64_t kKernelBoundNs = 3'000'000'000;
constexpr int kWordStride = 16;  // words; 128 bytes

// The ways of writing an eviction; each has a word, an answer and a stream of its own.
enum Way { kLeader, kStreamWrite, kStreamWriteNoBarrier, kCopy, kWays };
constexpr const char* kWayNames[kWays] = {"leader", "stream_write", "stream_write_no_barrier",
                                          "copy"};

// Lane w of warp 0 is the worker that watches word w; warp 1 watches the host's stop word and
// relays it to device memory, so that the busy kernels do not load the bus.
__global__ void Observe(const uint64_t* words, uint64_t* answers, const uint64_t* stop,
                        uint64_t* stop_relayed, uint64_t bound_ns) {
  __shared__ volatile int stopped;
  const uint64_t begin = GlobalTimer();
  if (threadIdx.x == 0) stopped = 0;
  __syncthreads();
  if (threadIdx.x == 32) {
    while (LoadSystem(stop) == 0 && GlobalTimer() - begin < bound_ns) __nanosleep(5000);
    StoreGpu(stop_relayed, 1);
    stopped = 1;
  }
  if (threadIdx.x >= kWays) return;
  uint64_t last = 0;
  while (stopped == 0) {  // bounded by the loop of warp 1
    const uint64_t value = LoadGpu(words + threadIdx.x * kWordStride);
    if (value == last) continue;
    last = value;
    StoreSystem(answers + threadIdx.x * kWordStride, value);
  }
}

// The leader: relays a mapped host word to a device word.
__global__ void Lead(const uint64_t* request, uint64_t* word, const uint64_t* stop_relayed,
                     uint64_t bound_ns) {
  const uint64_t begin = GlobalTimer();
  uint64_t last = 0;
  while (LoadGpu(stop_relayed) == 0 && GlobalTimer() - begin < bound_ns) {
    const uint64_t value = LoadSystem(request);
    if (value == last) continue;
    last = value;
    StoreGpu(word, value);
  }
}

// A BE kernel: runs until it is stopped, and tells the host that it runs.
__global__ void Busy(uint64_t* running, const uint64_t* stop_relayed, uint64_t bound_ns) {
  const uint64_t begin = GlobalTimer();
  StoreSystem(running, 1);
  while (LoadGpu(stop_relayed) == 0 && GlobalTimer() - begin < bound_ns) __nanosleep(2000);
}

// A stream that never ran anything might cost nothing.
__global__ void Touch() {}

enum class Where { kPrimary, kManyGreen, kOneGreen };

class SignalBench {
 public:
  SignalBench() : driver_(SetUp()) {
    Preload(Observe);
    Preload(Lead);
    Preload(Busy);
    const Split split = MakeSplit(driver_);
    for (int i = 0; i + 1 < static_cast<int>(split.groups.size()); ++i) {
      greens_.push_back(MakePlace(driver_, split, i, 1, false));
    }
    one_green_ = MakePlace(driver_, split, 0, 8, false);
    observer_stream_ = MakeStream(HighestPriority());
    words_ = OnDevice<uint64_t>(kWays * kWordStride);
    relayed_ = OnDevice<uint64_t>();
    answers_ = Mapped<uint64_t>(kWays * kWordStride);
    stop_ = Mapped<uint64_t>();
    request_ = Mapped<uint64_t>();
    source_ = Mapped<uint64_t>();
    running_ = Mapped<uint64_t>(2 * kBusyMax);
  }

  void Run() {
    const struct {
      Where where;
      const char* name;
    } places[] = {{Where::kPrimary, "busy_in_primary"},
                  {Where::kManyGreen, "busy_in_15_green"},
                  {Where::kOneGreen, "busy_in_one_green"}};
    for (const auto& place : places) {
      for (const int idle : {0, 60}) {
        for (const int busy : {0, 2, 4, 8, 16, 32}) {
          if (busy == 0 && place.where != Where::kPrimary) continue;
          const std::string name = std::string(place.name) + "/idle" + std::to_string(idle) +
                                   "/busy" + std::to_string(busy);
          SetAnswer(name, RunCase(name, place.where, idle, busy));
        }
      }
    }
  }

 private:
  static constexpr int kBusyMax = 32;

  cudaStream_t BusyStream(Where where, int index) {
    const Place& place = where == Where::kOneGreen
                             ? one_green_
                             : greens_[static_cast<size_t>(index) % greens_.size()];
    if (where == Where::kPrimary) return MakeStream(0);
    if (place.code != CUDA_SUCCESS) Fail("A green context is refused.");
    return MakeStream(driver_, place, 0);
  }

  // Only the streams that a way needs exist beside the idle and the busy ones: they all share the
  // same hardware queues. The way's stream comes first, as the library's reserved lane would.
  Json RunCase(const std::string& name, Where where, int idle, int busy) {
    Json json;
    std::string line;
    for (int i = 0; i < kWays; ++i) {
      const Way way = static_cast<Way>(i);
      way_stream_ = MakeStream(HighestPriority());
      std::vector<cudaStream_t> streams;
      for (int k = 0; k < idle; ++k) {
        streams.push_back(MakeStream(0));
        Touch<<<1, 1, 0, streams.back()>>>();
      }
      std::vector<cudaStream_t> busy_streams;
      for (int k = 0; k < busy; ++k) busy_streams.push_back(BusyStream(where, k));
      Start(way, busy_streams);
      int running = 0;
      for (int k = 0; k < 2 * busy; ++k) running += static_cast<int>(running_[k]);
      if (way == kLeader) line += "running " + std::to_string(running);
      Json measured = Measure(way, &line).Set("busy_running", running);
      json.Set(kWayNames[way], measured.Set("ended_us_after_stop", Stop(busy_streams)));
      streams.insert(streams.end(), busy_streams.begin(), busy_streams.end());
      streams.push_back(way_stream_);
      for (const cudaStream_t stream : streams) MUST(cudaStreamDestroy(stream));
    }
    Line("%-34s %s", name.c_str(), line.c_str());
    return json;
  }

  void Start(Way way, const std::vector<cudaStream_t>& busy_streams) {
    *static_cast<volatile uint64_t*>(stop_) = 0;
    *static_cast<volatile uint64_t*>(request_) = 0;
    std::fill_n(answers_, kWays * kWordStride, uint64_t{0});
    std::fill_n(running_, 2 * kBusyMax, uint64_t{0});
    MUST(cudaMemset(words_, 0, kWays * kWordStride * sizeof(uint64_t)));
    MUST(cudaMemset(relayed_, 0, sizeof(uint64_t)));
    MUST(cudaDeviceSynchronize());
    sequence_ = 0;
    Observe<<<1, 64, 0, observer_stream_>>>(words_, answers_, stop_, relayed_, kKernelBoundNs);
    if (way == kLeader) {
      Lead<<<1, 1, 0, way_stream_>>>(request_, words_ + kLeader * kWordStride, relayed_,
                                     kKernelBoundNs);
    }
    for (int queued = 0; queued < 2; ++queued) {
      for (size_t i = 0; i < busy_streams.size(); ++i) {
        Busy<<<1, 32, 0, busy_streams[i]>>>(running_ + 2 * i + queued, relayed_, kKernelBoundNs);
      }
    }
    MUST(cudaGetLastError());
    SpinNs(2'000'000);
  }

  // Ends all kernels, and waits until the streams are empty; returns how long that took.
  double Stop(const std::vector<cudaStream_t>& busy_streams) {
    const int64_t start = NowNs();
    *static_cast<volatile uint64_t*>(stop_) = 1;
    MUST(cudaDeviceSynchronize());
    for (const cudaStream_t stream : busy_streams) MUST(cudaStreamSynchronize(stream));
    return Us(NowNs() - start);
  }

  CUresult Issue(Way way, uint64_t value) {
    const CUdeviceptr word = reinterpret_cast<CUdeviceptr>(words_ + way * kWordStride);
    switch (way) {
      case kLeader:
        *static_cast<volatile uint64_t*>(request_) = value;
        return CUDA_SUCCESS;
      case kStreamWrite:
        return driver_.cuStreamWriteValue64(way_stream_, word, value, 0);
      case kStreamWriteNoBarrier:
        return driver_.cuStreamWriteValue64(way_stream_, word, value,
                                            CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
      default:
        *static_cast<volatile uint64_t*>(source_) = value;
        return cudaMemcpyAsync(reinterpret_cast<void*>(word), source_, sizeof(uint64_t),
                               cudaMemcpyHostToDevice, way_stream_) == cudaSuccess
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_UNKNOWN;
    }
  }

  Json Measure(Way way, std::string* line) {
    Samples latency_us, issue_us;
    int blocked = 0;
    for (int i = 0; i < kTries && blocked < kBlockedToGiveUp; ++i) {
      const uint64_t value = ++sequence_;
      const int64_t start = NowNs();
      const CUresult code = Issue(way, value);
      const int64_t issued = NowNs();
      if (code != CUDA_SUCCESS) {
        *line += std::string(" | ") + kWayNames[way] + " REFUSED " + std::to_string(code);
        return Json().Set("code", static_cast<int>(code));
      }
      issue_us.Add(Us(issued - start));
      if (WaitFor(answers_ + way * kWordStride, value, kBlockedNs)) {
        latency_us.Add(Us(NowNs() - start));
      } else {
        ++blocked;
      }
      SpinNs(2'000 + 137 * (i % 29));  // no lockstep with the poll of the leader
    }
    char text[120];
    std::snprintf(text, sizeof(text), " | %s %.1f %.1f max %.0f%s", kWayNames[way],
                  latency_us.Quantile(0.5), latency_us.Quantile(0.99), latency_us.Quantile(1),
                  blocked > 0 ? " BLOCKED" : "");
    *line += text;
    Json json = latency_us.Summary();
    return json.Set("blocked", blocked).Set("issue_p50", issue_us.Quantile(0.5));
  }

  const Driver& driver_;
  std::vector<Place> greens_;
  Place one_green_;
  cudaStream_t observer_stream_ = nullptr;
  cudaStream_t way_stream_ = nullptr;
  uint64_t* words_ = nullptr;
  uint64_t* relayed_ = nullptr;
  uint64_t* answers_ = nullptr;
  uint64_t* stop_ = nullptr;
  uint64_t* request_ = nullptr;
  uint64_t* source_ = nullptr;
  uint64_t* running_ = nullptr;
  uint64_t sequence_ = 0;
};

// --- The clock -------------------------------------------------------------------------------

constexpr int64_t kClockRunNs = 10'000'000'000;
constexpr int kReadings = 4096;

__global__ void ReadClock(uint64_t* readings) {
  for (int i = 0; i < kReadings; ++i) readings[i] = GlobalTimer();
}

void ReportSteps() {
  uint64_t* const device = OnDevice<uint64_t>(kReadings);
  ReadClock<<<1, 1>>>(device);
  ReadClock<<<1, 1>>>(device);
  MUST(cudaDeviceSynchronize());
  std::vector<uint64_t> readings(kReadings);
  MUST(cudaMemcpy(readings.data(), device, kReadings * sizeof(uint64_t), cudaMemcpyDeviceToHost));
  Samples steps;
  int backwards = 0;
  for (int i = 1; i < kReadings; ++i) {
    if (readings[i] < readings[i - 1]) ++backwards;
    if (readings[i] > readings[i - 1])
      steps.Add(static_cast<double>(readings[i] - readings[i - 1]));
  }
  Json json = steps.Summary();
  SetAnswer("step_ns", json.Set("readings", kReadings).Set("backwards", backwards));
  Line("step: min %.0f, p50 %.0f, max %.0f ns over %d readings, %d backwards", steps.Quantile(0),
       steps.Quantile(0.5), steps.Quantile(1), kReadings, backwards);
}

struct Exchange {
  double host_ns = 0;  // since the first
  double offset_ns = 0;
  double round_trip_ns = 0;
};

// One sample every 2 ms: the fastest of five exchanges.
std::vector<Exchange> Sample() {
  uint64_t* const words = Mapped<uint64_t>(64);
  volatile uint64_t* const request = words;
  volatile uint64_t* const time = words + 16;
  const cudaStream_t stream = MakeStream(0);
  LaunchAnswerTime(stream, words, kClockRunNs + 1'500'000'000);
  MUST(cudaGetLastError());
  std::vector<Exchange> samples;
  const int64_t origin = NowNs();
  uint64_t value = 0;
  int64_t first_offset = 0;
  while (NowNs() - origin < kClockRunNs) {
    Exchange best;
    best.round_trip_ns = INFINITY;
    for (int i = 0; i < 5; ++i) {
      const int64_t start = NowNs();
      *request = ++value;
      if (!WaitFor(words + 32, value, 1'000'000'000)) Fail("The clock kernel does not answer.");
      const int64_t end = NowNs();
      const int64_t offset = static_cast<int64_t>(*time) - (start + end) / 2;
      if (value == 1) first_offset = offset;  // differences keep the precision of a double
      if (static_cast<double>(end - start) < best.round_trip_ns) {
        best = {static_cast<double>(start - origin), static_cast<double>(offset - first_offset),
                static_cast<double>(end - start)};
      }
    }
    samples.push_back(best);
    SpinNs(2'000'000);
  }
  *request = ~uint64_t{0};
  MUST(cudaStreamSynchronize(stream));
  return samples;
}

void ReportDrift(const std::vector<Exchange>& samples) {
  double mean_x = 0, mean_y = 0, xy = 0, xx = 0;
  for (const Exchange& sample : samples) {
    mean_x += sample.host_ns / static_cast<double>(samples.size());
    mean_y += sample.offset_ns / static_cast<double>(samples.size());
  }
  for (const Exchange& sample : samples) {
    xy += (sample.host_ns - mean_x) * (sample.offset_ns - mean_y);
    xx += (sample.host_ns - mean_x) * (sample.host_ns - mean_x);
  }
  const double slope = xy / xx;
  Samples residual_ns, round_trip_ns;
  std::vector<double> each_second;
  for (const Exchange& sample : samples) {
    residual_ns.Add(std::abs(sample.offset_ns - mean_y - slope * (sample.host_ns - mean_x)));
    round_trip_ns.Add(sample.round_trip_ns);
    if (sample.host_ns >= 1e9 * static_cast<double>(each_second.size())) {
      each_second.push_back(sample.offset_ns);
    }
  }
  SetAnswer("drift_ppm", slope * 1e6);
  SetAnswer("residual_of_line_ns", residual_ns.Summary());
  SetAnswer("round_trip_ns", round_trip_ns.Summary());
  SetAnswer("offset_by_second_ns", Json().Set("ns", each_second));
  Line(
      "%zu samples: drift %.3f ppm, residual p50 %.0f p99 %.0f max %.0f ns, round trip p50 %.0f ns",
      samples.size(), slope * 1e6, residual_ns.Quantile(0.5), residual_ns.Quantile(0.99),
      residual_ns.Quantile(1), round_trip_ns.Quantile(0.5));
}

}  // namespace

void RunEvictSignal() {
  const char* const connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  SetAnswer("max_connections", connections == nullptr ? 0 : std::atof(connections));
  Line("us, p50 p99 max; a way is given up after %d tries of 20 ms", kBlockedToGiveUp);
  std::make_unique<SignalBench>()->Run();
}

void RunClock() {
  SetUp();
  ReportSteps();
  ReportDrift(Sample());
}

}  // namespace experiments
