// evict_to_lc, yield_points, relaunch_gap: what evictable BE workers cost their neighbours and
// themselves.
//
// The worker kernel is the shape of the library's: one word {epoch, workers to keep}, read before
// each claim, then claim, then execute; the last worker writes a record to mapped host memory.

#include <algorithm>
#include <memory>

#include "benchmarks/device/device_experiments.h"

namespace experiments {
namespace {

constexpr int kThreads = 256;
constexpr int kWorkersPerSm = 8;
constexpr uint32_t kEndless = 1u << 30;
constexpr uint64_t kBoundNs = 500'000'000;
constexpr int64_t kWaitNs = 1'000'000'000;

struct Stamp {  // in device memory; the last worker leaves it as it found it
  unsigned long long first_start;
  unsigned long long last_end;
  uint32_t finished;
  uint32_t done;
};

struct Record {  // in mapped memory
  uint64_t start_ns;
  uint64_t end_ns;
  uint64_t done;
  uint64_t sequence;
};

struct Work {
  const uint64_t* word;
  uint32_t* counter;
  uint32_t tasks;
  uint32_t epoch;
  int iterations;        // of one block task
  int yield_iterations;  // between two yield points
  Stamp* stamp;
  Record* record;
  uint64_t sequence;
  float* sink;
};

enum Yield { kNever, kBlockVotes, kWarpReads };

__device__ inline bool Evicted(const Work& work) {
  const uint32_t epoch = static_cast<uint32_t>(LoadGpu(work.word) >> 32);
  return static_cast<int32_t>(epoch - work.epoch) >= 0;
}

__device__ inline float Iterate(float x, int count) {
#pragma unroll 1
  for (int i = 0; i < count; ++i) x = __sinf(x) + __cosf(x * 1.01f);
  return x;
}

// One block task. With yield points the block (or each warp by itself) leaves it when evicted.
template <Yield kYield>
__device__ inline float RunBlockTask(const Work& work, float x) {
  if constexpr (kYield == kNever) {
    return Iterate(x, work.iterations);
  } else {
    for (int done = 0; done < work.iterations; done += work.yield_iterations) {
      x = Iterate(x, min(work.yield_iterations, work.iterations - done));
      if constexpr (kYield == kBlockVotes) {
        if (__syncthreads_or(threadIdx.x == 0 && Evicted(work))) break;
      } else {
        const int leave = (threadIdx.x % 32 == 0) && Evicted(work);
        if (__shfl_sync(~0u, leave, 0)) break;
      }
    }
    return x;
  }
}

__device__ void Finish(const Work& work, uint32_t done) {
  atomicMax(&work.stamp->last_end, static_cast<unsigned long long>(GlobalTimer()));
  atomicAdd(&work.stamp->done, done);
  __threadfence();
  if (atomicAdd(&work.stamp->finished, 1u) != gridDim.x - 1) return;
  __threadfence();
  StoreSystem(&work.record->start_ns, atomicExch(&work.stamp->first_start, ~0ull));
  StoreSystem(&work.record->end_ns, atomicExch(&work.stamp->last_end, 0ull));
  StoreSystem(&work.record->done, atomicExch(&work.stamp->done, 0u));
  atomicExch(&work.stamp->finished, 0u);
  PublishSystem(&work.record->sequence, work.sequence);
}

template <Yield kYield>
__global__ void __launch_bounds__(kThreads, kWorkersPerSm) Worker(Work work) {
  __shared__ uint32_t claimed;
  const uint64_t begin = GlobalTimer();
  if (threadIdx.x == 0) {
    atomicMin(&work.stamp->first_start, static_cast<unsigned long long>(begin));
  }
  float x = static_cast<float>(threadIdx.x) * 1e-3f;
  uint32_t done = 0;
  while (true) {
    __syncthreads();
    if (threadIdx.x == 0) {
      const bool leave = Evicted(work) || GlobalTimer() - begin > kBoundNs;
      claimed = leave ? kEndless : atomicAdd(work.counter, 1u);
    }
    __syncthreads();
    if (claimed >= work.tasks) break;
    x = RunBlockTask<kYield>(work, x);
    ++done;
  }
  if (x == 12345.678f) *work.sink = x;
  if (threadIdx.x == 0) Finish(work, done);
}

// An LC kernel whose block takes a whole SM and stays for hold_ns, so that every block needs an SM.
__global__ void WholeSm(uint64_t* starts, uint64_t hold_ns) {
  const uint64_t begin = GlobalTimer();
  if (threadIdx.x == 0) starts[blockIdx.x] = begin;
  while (GlobalTimer() - begin < hold_ns) {
  }
}

// One stream of worker launches with its memory, and the eviction stream.
class WorkerLane {
 public:
  explicit WorkerLane(const Driver& driver) : driver_(driver) {
    Preload(Worker<kNever>);
    Preload(Worker<kBlockVotes>);
    Preload(Worker<kWarpReads>);
    be_stream = MakeStream(0);
    evict_stream = MakeStream(HighestPriority());
    workers = kWorkersPerSm * SmCount();
    word_ = OnDevice<uint64_t>();
    counters_ = OnDevice<uint32_t>(2);
    stamps_ = OnDevice<Stamp>(2);
    sink_ = OnDevice<float>();
    records = Mapped<Record>(2);
    const Stamp empty = {~0ull, 0, 0, 0};
    for (int i = 0; i < 2; ++i) {
      MUST(cudaMemcpy(stamps_ + i, &empty, sizeof(Stamp), cudaMemcpyHostToDevice));
    }
    MUST(cudaDeviceSynchronize());
  }

  // Launches at a new epoch, with slot's counter zeroed on the stream (or, when `zeroed`, before).
  void Launch(Yield yield, uint32_t tasks, int slot = 0, bool zeroed = false) {
    if (!zeroed) MUST(cudaMemsetAsync(counters_ + slot, 0, sizeof(uint32_t), be_stream));
    Work work = {};
    work.word = word_;
    work.counter = counters_ + slot;
    work.tasks = tasks;
    work.epoch = ++epoch_;
    work.iterations = iterations;
    work.yield_iterations = yield_iterations;
    work.stamp = stamps_ + slot;
    work.record = records + slot;
    work.sequence = ++sequence;
    work.sink = sink_;
    if (yield == kNever) Worker<kNever><<<workers, kThreads, 0, be_stream>>>(work);
    if (yield == kBlockVotes) Worker<kBlockVotes><<<workers, kThreads, 0, be_stream>>>(work);
    if (yield == kWarpReads) Worker<kWarpReads><<<workers, kThreads, 0, be_stream>>>(work);
    MUST(cudaGetLastError());
  }

  void ZeroCounters() {
    MUST(cudaMemset(counters_, 0, 2 * sizeof(uint32_t)));
    MUST(cudaDeviceSynchronize());
  }

  // All launches up to `behind` epochs before the newest leave.
  void Evict(cudaStream_t stream, uint32_t behind = 0) {
    MUST(driver_.cuStreamWriteValue64(stream, reinterpret_cast<CUdeviceptr>(word_),
                                      uint64_t{epoch_ - behind} << 32, 0));
  }

  void AwaitRecord(int slot, uint64_t wanted) {
    if (!WaitFor(&records[slot].sequence, wanted, kWaitNs)) Fail("A worker launch does not end.");
  }

  int64_t RecordedNs(int slot = 0) const {
    return static_cast<int64_t>(records[slot].end_ns - records[slot].start_ns);
  }

  // Sets `iterations` so that a block task lasts `target_us` with all workers resident.
  void Calibrate(double target_us) {
    iterations = 2000;
    for (int round = 0; round < 4; ++round) {
      const int tasks_each = target_us > 500 ? 2 : 30;
      Launch(kNever, static_cast<uint32_t>(workers * tasks_each));
      AwaitRecord(0, sequence);
      MUST(cudaStreamSynchronize(be_stream));
      const double took_us = Us(RecordedNs()) / tasks_each;
      if (round == 3) {
        Line("block task: %d iterations, %.1f us (wanted %.1f)", iterations, took_us, target_us);
        SetAnswer("block_task_us", took_us);
        return;
      }
      iterations = std::max(1, static_cast<int>(iterations * target_us / took_us));
    }
  }

  cudaStream_t be_stream = nullptr;
  cudaStream_t evict_stream = nullptr;
  Record* records = nullptr;
  int workers = 0;
  int iterations = 0;
  int yield_iterations = 1;
  uint64_t sequence = 0;

 private:
  const Driver& driver_;
  uint64_t* word_ = nullptr;
  uint32_t* counters_ = nullptr;
  Stamp* stamps_ = nullptr;
  float* sink_ = nullptr;
  uint32_t epoch_ = 0;
};

// A spread of waits, so that tries do not meet the workers at one phase of their block tasks.
int64_t Phase(int i, int64_t range_ns) { return (i * int64_t{7919}) % 101 * range_ns / 101; }

// --- Eviction to LC start --------------------------------------------------------------------

enum class Order { kNoWorkers, kOwnStream, kLcStream, kLaunchFirst };

class EvictToLc {
 public:
  EvictToLc() : driver_(SetUp()), lane_(driver_) {
    MUST(cudaFuncSetAttribute(WholeSm, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
    Preload(WholeSm);
    lc_stream_ = MakeStream(HighestPriority());
    blocks_ = SmCount();
    starts_ = OnDevice<uint64_t>(static_cast<size_t>(blocks_));
  }

  void Run() {
    lane_.Calibrate(27);
    SetAnswer("clock_round_trip_us", Us(MeasureClockOffset().round_trip_ns));
    const struct {
      const char* name;
      Order order;
    } orders[] = {{"no_workers", Order::kNoWorkers},
                  {"evict_on_its_own_stream", Order::kOwnStream},
                  {"evict_on_the_lc_stream", Order::kLcStream},
                  {"launch_then_evict_on_its_own_stream", Order::kLaunchFirst}};
    for (const int carveout : {-1, 100}) {
      MUST(cudaFuncSetAttribute(Worker<kNever>, cudaFuncAttributePreferredSharedMemoryCarveout,
                                carveout));
      for (const auto& item : orders) {
        Case(std::string(carveout < 0 ? "default_carveout/" : "max_carveout/") + item.name,
             item.order);
      }
    }
    EvictionAlone();
  }

 private:
  static constexpr int kShared = 200 * 1024;
  static constexpr int kTries = 100;

  void LaunchLc() {
    WholeSm<<<blocks_, 128, kShared, lc_stream_>>>(starts_, 100'000);
    MUST(cudaGetLastError());
  }

  int64_t ToHost(uint64_t device_ns) const {
    return static_cast<int64_t>(device_ns) - clock_.offset_ns;
  }

  void Case(const std::string& name, Order order) {
    Samples first_us, last_us, left_us, issue_us;
    for (int i = 0; i < kTries + 5; ++i) {
      if (order != Order::kNoWorkers) lane_.Launch(kNever, kEndless);
      SpinNs(300'000 + Phase(i, 200'000));
      const int64_t submit = NowNs();
      if (order == Order::kOwnStream) lane_.Evict(lane_.evict_stream);
      if (order == Order::kLcStream) lane_.Evict(lc_stream_);
      LaunchLc();
      if (order == Order::kLaunchFirst) lane_.Evict(lane_.evict_stream);
      const int64_t issued = NowNs();
      MUST(cudaDeviceSynchronize());
      clock_ = MeasureClockOffset();
      std::vector<uint64_t> starts(static_cast<size_t>(blocks_));
      MUST(cudaMemcpy(starts.data(), starts_, starts.size() * sizeof(uint64_t),
                      cudaMemcpyDeviceToHost));
      if (i < 5) continue;  // the first ones warm up
      const auto [first, last] = std::minmax_element(starts.begin(), starts.end());
      first_us.Add(Us(ToHost(*first) - submit));
      last_us.Add(Us(ToHost(*last) - submit));
      issue_us.Add(Us(issued - submit));
      if (order != Order::kNoWorkers) left_us.Add(Us(ToHost(lane_.records->end_ns) - submit));
    }
    Line("%-52s first %.1f p99 %.1f, last %.1f p99 %.1f, workers gone %.1f p99 %.1f, issue %.1f",
         name.c_str(), first_us.Quantile(0.5), first_us.Quantile(0.99), last_us.Quantile(0.5),
         last_us.Quantile(0.99), left_us.Quantile(0.5), left_us.Quantile(0.99),
         issue_us.Quantile(0.5));
    Json json;
    json.Set("first_block_us", first_us.Summary()).Set("last_block_us", last_us.Summary());
    json.Set("workers_gone_us", left_us.Summary()).Set("issue_us", issue_us.Summary());
    SetAnswer(name, json);
  }

  // What the eviction alone takes: without the LC kernel.
  void EvictionAlone() {
    Samples left_us;
    for (int i = 0; i < kTries; ++i) {
      lane_.Launch(kNever, kEndless);
      SpinNs(300'000 + Phase(i, 200'000));
      const int64_t submit = NowNs();
      lane_.Evict(lane_.evict_stream);
      lane_.AwaitRecord(0, lane_.sequence);
      left_us.Add(Us(NowNs() - submit));
      MUST(cudaDeviceSynchronize());
    }
    SetAnswer("evict_without_lc_us", left_us.Summary());
    Line("eviction without an LC kernel: host sees the record after %.1f p99 %.1f us",
         left_us.Quantile(0.5), left_us.Quantile(0.99));
  }

  const Driver& driver_;
  WorkerLane lane_;
  ClockOffset clock_;
  cudaStream_t lc_stream_ = nullptr;
  int blocks_ = 0;
  uint64_t* starts_ = nullptr;
};

// --- Yield points ----------------------------------------------------------------------------

struct YieldCase {
  const char* name;
  Yield yield;
  double interval_us;
};

constexpr YieldCase kYieldCases[] = {
    {"none", kNever, 0},
    {"block_votes_every_20us", kBlockVotes, 20},
    {"block_votes_every_5us", kBlockVotes, 5},
    {"warp_reads_every_20us", kWarpReads, 20},
    {"warp_reads_every_5us", kWarpReads, 5},
    {"block_votes_every_100us", kBlockVotes, 100},
};
constexpr double kLongTaskUs = 2700;

void SetInterval(WorkerLane& lane, const YieldCase& item) {
  lane.yield_iterations =
      item.yield == kNever
          ? lane.iterations
          : std::max(1, static_cast<int>(lane.iterations * item.interval_us / kLongTaskUs));
}

void ReportYieldCosts(WorkerLane& lane, Json* results) {
  Samples took_us[std::size(kYieldCases)];
  for (int round = 0; round < 16; ++round) {  // interleaved, so that clocks are shared
    for (size_t i = 0; i < std::size(kYieldCases); ++i) {
      SetInterval(lane, kYieldCases[i]);
      lane.Launch(kYieldCases[i].yield, static_cast<uint32_t>(3 * lane.workers));
      lane.AwaitRecord(0, lane.sequence);
      MUST(cudaDeviceSynchronize());
      if (round > 0) took_us[i].Add(Us(lane.RecordedNs()));
    }
  }
  for (size_t i = 0; i < std::size(kYieldCases); ++i) {
    const double ratio = took_us[i].Quantile(0.5) / took_us[0].Quantile(0.5);
    results[i].Set("three_tasks_us", took_us[i].Summary()).Set("overhead", ratio - 1);
    Line("%-26s overhead %+.2f %%", kYieldCases[i].name, (ratio - 1) * 100);
  }
}

Json EvictionLatency(WorkerLane& lane, const YieldCase& item) {
  SetInterval(lane, item);
  const int tries = item.yield == kNever ? 120 : 200;
  Samples latency_us;
  for (int i = 0; i < tries; ++i) {
    lane.Launch(item.yield, kEndless);
    SpinNs(500'000 + Phase(i, 2'700'000));
    const int64_t start = NowNs();
    lane.Evict(lane.evict_stream);
    lane.AwaitRecord(0, lane.sequence);
    latency_us.Add(Us(NowNs() - start));
    MUST(cudaDeviceSynchronize());
  }
  Line("%-26s eviction until the host sees the record: p50 %.1f p99 %.1f us", item.name,
       latency_us.Quantile(0.5), latency_us.Quantile(0.99));
  return latency_us.Summary();
}

// --- Relaunch gap ----------------------------------------------------------------------------

class RelaunchGap {
 public:
  RelaunchGap() : driver_(SetUp()), lane_(driver_), flag_(OnDevice<uint32_t>()) {}

  void Run() {
    lane_.Calibrate(27);
    Report("queued_behind", [this] { Queued(false); });
    Report("queued_behind_a_stream_write", [this] { Queued(true); });
    Report("queued_behind_an_evicted_launch", [this] { QueuedEvicted(); });
    Report("launched_when_host_sees_record", [this] { LaunchedByHost(false); });
    Report("launched_when_event_query_answers", [this] { LaunchedByHost(true); });
  }

 private:
  static constexpr int kPairs = 100;

  template <typename Pair>
  void Report(const char* name, const Pair& pair) {
    Samples gap_us;
    for (int i = 0; i < kPairs + 3; ++i) {
      lane_.ZeroCounters();
      pair();
      MUST(cudaDeviceSynchronize());
      const int64_t gap = static_cast<int64_t>(lane_.records[1].start_ns) -
                          static_cast<int64_t>(lane_.records[0].end_ns);
      if (i >= 3) gap_us.Add(Us(gap));
    }
    SetAnswer(name, gap_us.Summary());
    Line("%-36s gap p50 %.2f p99 %.2f us", name, gap_us.Quantile(0.5), gap_us.Quantile(0.99));
  }

  uint32_t Tasks() const { return static_cast<uint32_t>(8 * lane_.workers); }

  void Queued(bool write) {
    lane_.Launch(kNever, Tasks(), 0, true);
    if (write) {
      MUST(driver_.cuStreamWriteValue32(lane_.be_stream, reinterpret_cast<CUdeviceptr>(flag_), 1,
                                        0));
    }
    lane_.Launch(kNever, Tasks(), 1, true);
  }

  void QueuedEvicted() {
    lane_.Launch(kNever, kEndless, 0, true);
    lane_.Launch(kNever, Tasks(), 1, true);
    SpinNs(200'000);
    lane_.Evict(lane_.evict_stream, 1);
  }

  void LaunchedByHost(bool by_event) {
    static const cudaEvent_t event = [] {
      cudaEvent_t made = nullptr;
      MUST(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
      return made;
    }();
    lane_.Launch(kNever, Tasks(), 0, true);
    const uint64_t first = lane_.sequence;
    if (by_event) {
      MUST(cudaEventRecord(event, lane_.be_stream));
      const int64_t end = NowNs() + kWaitNs;
      while (cudaEventQuery(event) == cudaErrorNotReady && NowNs() < end) {
      }
      cudaGetLastError();
    } else {
      lane_.AwaitRecord(0, first);
    }
    lane_.Launch(kNever, Tasks(), 1, true);
  }

  const Driver& driver_;
  WorkerLane lane_;
  uint32_t* flag_;
};

}  // namespace

void RunEvictToLc() { std::make_unique<EvictToLc>()->Run(); }

void RunYieldPoints() {
  WorkerLane lane(SetUp());
  lane.Calibrate(kLongTaskUs);
  Json results[std::size(kYieldCases)];
  ReportYieldCosts(lane, results);
  for (size_t i = 0; i < std::size(kYieldCases); ++i) {
    results[i].Set("eviction_us", EvictionLatency(lane, kYieldCases[i]));
    SetAnswer(kYieldCases[i].name, results[i]);
  }
}

void RunRelaunchGap() { std::make_unique<RelaunchGap>()->Run(); }

}  // namespace experiments
