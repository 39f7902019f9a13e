// completion, threads, lanes: what launching costs the host and completing costs the GPU.

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "benchmarks/device/device_experiments.h"

namespace experiments {
namespace {

constexpr uint64_t kBoundNs = 1'000'000'000;
constexpr int64_t kWaitNs = 1'500'000'000;

// --- Completion ------------------------------------------------------------------------------

constexpr int kChain = 72;
constexpr int kRepeats = 20;

// Holds a stream until the host lets it go, and says when that was.
__global__ void Gate(const uint64_t* go, uint64_t value, uint64_t* time) {
  const uint64_t begin = GlobalTimer();
  while (LoadSystem(go) != value && GlobalTimer() - begin < kBoundNs) {
  }
  StoreSystem(time, GlobalTimer());
}

__global__ void StampTime(uint64_t* time, uint64_t* answer, uint64_t value) {
  StoreSystem(time, GlobalTimer());
  PublishSystem(answer, value);
}

// A kernel of a chain. With `record` its last block writes a record to mapped memory.
__global__ void __launch_bounds__(256)
    ChainKernel(int iterations, float* sink, uint32_t* finished, uint64_t* record, uint64_t value) {
  float x = static_cast<float>(threadIdx.x) * 1e-3f;
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) x = __sinf(x) + __cosf(x * 1.01f);
  if (x == 12345.678f) *sink = x;
  if (record == nullptr) return;
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicAdd(finished, 1u) != gridDim.x - 1) return;
  *finished = 0;
  __threadfence_system();
  StoreSystem(record + 1, GlobalTimer());
  PublishSystem(record, value);
}

enum class Mark {
  kNothing,
  kWriteAtEnd,
  kWriteEvery8,
  kWriteEach,
  kWriteEachNoBarrier,
  kEventEach,
  kTimingEventEach,
  kRecordEach,
};

struct MarkCase {
  const char* name;
  Mark mark;
};

constexpr MarkCase kMarkCases[] = {
    {"nothing", Mark::kNothing},
    {"stream_write_at_end", Mark::kWriteAtEnd},
    {"stream_write_every_8", Mark::kWriteEvery8},
    {"stream_write_each", Mark::kWriteEach},
    {"stream_write_each_no_barrier", Mark::kWriteEachNoBarrier},
    {"event_each", Mark::kEventEach},
    {"timing_event_each", Mark::kTimingEventEach},
    {"last_block_record_each", Mark::kRecordEach},
};

class Completion {
 public:
  Completion() : driver_(SetUp()) {
    stream_ = MakeStream(0);
    words_ = Mapped<uint64_t>(16 * 16);
    go_ = words_;
    gate_time_ = words_ + 16;
    end_time_ = words_ + 32;
    end_answer_ = words_ + 48;
    written_ = words_ + 64;
    record_ = words_ + 80;
    finished_ = OnDevice<uint32_t>();
    sink_ = OnDevice<float>();
    for (int i = 0; i < kChain; ++i) {
      MUST(cudaEventCreateWithFlags(&events_[i], cudaEventDisableTiming));
      MUST(cudaEventCreate(&timing_events_[i]));
    }
  }

  void Run() {
    Chains("kernels_of_8us", CalibratedIterations(8.0));
    Chains("kernels_of_2.5us", CalibratedIterations(2.5));
    Chains("empty_kernels", 0);
    SetAnswer("write_without_barrier_code", no_barrier_code_);
    if (no_barrier_code_ != CUDA_SUCCESS) Line("writes without a barrier are refused");
    HostViews();
    PollCosts();
  }

 private:
  void Kernel(int iterations, bool with_record) {
    ChainKernel<<<2 * SmCount(), 256, 0, stream_>>>(iterations, sink_, finished_,
                                                    with_record ? record_ : nullptr, ++value_);
  }

  void Write(bool barrier) {
    if (no_barrier_code_ != CUDA_SUCCESS && !barrier) return;
    const CUresult code = driver_.cuStreamWriteValue32(
        stream_, reinterpret_cast<CUdeviceptr>(written_), static_cast<cuuint32_t>(value_),
        barrier ? 0 : CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
    if (barrier) return MUST(code);
    no_barrier_code_ = code;  // an answer, too: told at the end
  }

  void Chain(int iterations, Mark mark) {
    for (int i = 0; i < kChain; ++i) {
      Kernel(iterations, mark == Mark::kRecordEach);
      if (mark == Mark::kWriteEach || (mark == Mark::kWriteEvery8 && i % 8 == 7)) Write(true);
      if (mark == Mark::kWriteEachNoBarrier) Write(false);
      if (mark == Mark::kEventEach) MUST(cudaEventRecord(events_[i], stream_));
      if (mark == Mark::kTimingEventEach) MUST(cudaEventRecord(timing_events_[i], stream_));
    }
    if (mark == Mark::kWriteAtEnd) Write(true);
  }

  // Gated: all is queued before the first kernel runs, so the result is the GPU's own time.
  double GatedUs(int iterations, Mark mark) {
    const uint64_t mine = ++value_;
    Gate<<<1, 1, 0, stream_>>>(go_, mine, gate_time_);
    Chain(iterations, mark);
    StampTime<<<1, 1, 0, stream_>>>(end_time_, end_answer_, mine);
    MUST(cudaGetLastError());
    *static_cast<volatile uint64_t*>(go_) = mine;
    MUST(cudaStreamSynchronize(stream_));
    return Us(static_cast<int64_t>(*end_time_ - *gate_time_));
  }

  double HostUs(int iterations, Mark mark) {
    const int64_t start = NowNs();
    Chain(iterations, mark);
    MUST(cudaGetLastError());
    MUST(cudaStreamSynchronize(stream_));
    return Us(NowNs() - start);
  }

  // Loops until a kernel of the bare chain takes `target_us`, its launch included.
  int CalibratedIterations(double target_us) {
    GatedUs(0, Mark::kNothing);
    const double empty_us = GatedUs(0, Mark::kNothing) / kChain;
    const double loops_us = GatedUs(400, Mark::kNothing) / kChain - empty_us;
    const double more_us = target_us - empty_us;
    return more_us <= 0 || loops_us <= 0 ? 1 : static_cast<int>(400 * more_us / loops_us);
  }

  void Chains(const char* name, int iterations) {
    constexpr size_t kCases = std::size(kMarkCases);
    Samples gated[kCases], host[kCases];
    for (int round = 0; round < kRepeats + 2; ++round) {
      for (size_t i = 0; i < kCases; ++i) {
        const double gated_us = GatedUs(iterations, kMarkCases[i].mark);
        const double host_us = HostUs(iterations, kMarkCases[i].mark);
        if (round < 2) continue;
        gated[i].Add(gated_us);
        host[i].Add(host_us);
      }
    }
    Json json;
    json.Set("iterations", iterations);
    for (size_t i = 0; i < kCases; ++i) {
      const double extra_us = (gated[i].Quantile(0.5) - gated[0].Quantile(0.5)) / kChain;
      json.Set(kMarkCases[i].name, Json()
                                       .Set("gpu_us", gated[i].Quantile(0.5))
                                       .Set("host_us", host[i].Quantile(0.5))
                                       .Set("extra_gpu_us_a_kernel", extra_us));
      Line("%-18s %-30s GPU %.1f us (%+.2f a kernel), from the host %.1f us", name,
           kMarkCases[i].name, gated[i].Quantile(0.5), extra_us, host[i].Quantile(0.5));
    }
    SetAnswer(name, json);
  }

  // From the time that the kernel's last block stamps until the host sees it, in three ways.
  void HostViews() {
    SetAnswer("clock_round_trip_us", Us(MeasureClockOffset().round_trip_ns));
    HostView("sees_stream_write", [this](uint64_t value) {
      Write(true);
      return WaitFor(written_, value & 0xffffffffu, kWaitNs);
    });
    HostView("sees_event", [this](uint64_t) {
      MUST(cudaEventRecord(events_[0], stream_));
      const int64_t end = NowNs() + kWaitNs;
      while (cudaEventQuery(events_[0]) == cudaErrorNotReady) {
        if (NowNs() > end) return false;
      }
      return true;
    });
    HostView("sees_record", [this](uint64_t value) { return WaitFor(record_, value, kWaitNs); });
  }

  void HostView(const char* name, const std::function<bool(uint64_t)>& wait) {
    Samples us;
    for (int i = 0; i < 205; ++i) {
      Kernel(2000, true);
      if (!wait(value_)) Fail("The host does not see the end of a kernel.");
      const int64_t seen = NowNs();
      MUST(cudaStreamSynchronize(stream_));
      const int64_t ended = static_cast<int64_t>(record_[1]) - MeasureClockOffset().offset_ns;
      if (i >= 5) us.Add(Us(seen - ended));
    }
    SetAnswer(name, us.Summary());
    Line("%-20s %.2f p99 %.2f us after the last block's stamp", name, us.Quantile(0.5),
         us.Quantile(0.99));
  }

  void PollCosts() {
    constexpr int kPolls = 100'000;
    int64_t start = NowNs();
    uint64_t sum = 0;
    for (int i = 0; i < kPolls; ++i) sum += *static_cast<volatile uint64_t*>(written_);
    SetAnswer("poll_mapped_word_ns", static_cast<double>(NowNs() - start) / kPolls);
    const double word_ns = static_cast<double>(NowNs() - start) / kPolls;
    constexpr int kQueries = 2000;
    Gate<<<1, 1, 0, stream_>>>(go_, ++value_, gate_time_);
    MUST(cudaEventRecord(events_[0], stream_));
    start = NowNs();
    for (int i = 0; i < kQueries; ++i) sum += cudaEventQuery(events_[0]);
    const double pending_ns = static_cast<double>(NowNs() - start) / kQueries;
    cudaGetLastError();
    *static_cast<volatile uint64_t*>(go_) = value_;
    MUST(cudaStreamSynchronize(stream_));
    start = NowNs();
    for (int i = 0; i < kQueries; ++i) sum += cudaEventQuery(events_[0]);
    const double done_ns = static_cast<double>(NowNs() - start) / kQueries;
    SetAnswer("event_query_pending_ns", pending_ns);
    SetAnswer("event_query_done_ns", done_ns);
    Line("poll of a mapped word %.1f ns, event query pending %.0f ns, done %.0f ns%s", word_ns,
         pending_ns, done_ns, sum == 0 ? "." : "");
  }

  const Driver& driver_;
  cudaStream_t stream_ = nullptr;
  uint64_t* words_ = nullptr;
  uint64_t* go_ = nullptr;
  uint64_t* gate_time_ = nullptr;
  uint64_t* end_time_ = nullptr;
  uint64_t* end_answer_ = nullptr;
  uint64_t* written_ = nullptr;
  uint64_t* record_ = nullptr;
  uint32_t* finished_ = nullptr;
  float* sink_ = nullptr;
  CUresult no_barrier_code_ = CUDA_SUCCESS;
  cudaEvent_t events_[kChain] = {};
  cudaEvent_t timing_events_[kChain] = {};
  uint64_t value_ = 0;
};

// --- Threads ---------------------------------------------------------------------------------

constexpr int kLaunches = 4000;
constexpr int kBatch = 100;  // launches between two synchronisations, so that no queue fills up

__global__ void Count(unsigned long long* count) { atomicAdd(count, 1ull); }

struct ThreadWork {
  cudaStream_t stream = nullptr;
  CUcontext context = nullptr;          // set current; null: the primary one stays
  unsigned long long* count = nullptr;  // launches
  uint64_t* word = nullptr;             // stream writes
  Samples call_us;
  int errors = 0;
  int first_error = 0;
};

class Threads {
 public:
  Threads() : driver_(SetUp()) {
    MUST(driver_.cuCtxGetCurrent(&primary_));
    const Split split = MakeSplit(driver_);
    for (int i = 0; i < 2; ++i) {
      greens_[i] = MakePlace(driver_, split, 8 * i, 4, false);
      if (greens_[i].code != CUDA_SUCCESS) Fail("A green context of four groups is refused.");
    }
    for (cudaStream_t& stream : primary_streams_) stream = MakeStream(0);
    for (int i = 0; i < 2; ++i) {
      green_streams_[i] = MakeStream(driver_, greens_[i], 0);
      same_green_streams_[i] = MakeStream(driver_, greens_[0], 0);
    }
  }

  void Run() {
    cudaStream_t* const p = primary_streams_;
    cudaStream_t* const g = green_streams_;
    Report("one_thread_primary", {Launcher(p[0])});
    Report("one_thread_green_stream", {Launcher(g[0])});
    Report("one_thread_green_current", {Launcher(g[0], greens_[0].context)});
    Report("two_threads_primary", {Launcher(p[0]), Launcher(p[1])});
    Report("two_threads_primary_same_stream", {Launcher(p[0]), Launcher(p[0])});
    Report("two_threads_primary_and_green_stream", {Launcher(p[0]), Launcher(g[0])});
    Report("two_threads_two_green_streams", {Launcher(g[0]), Launcher(g[1])});
    Report("two_threads_two_streams_of_one_green",
           {Launcher(same_green_streams_[0]), Launcher(same_green_streams_[1])});
    Report("two_threads_each_its_green_current",
           {Launcher(g[0], greens_[0].context), Launcher(g[1], greens_[1].context)});
    Report("launches_primary_and_writes_primary", {Launcher(p[0]), Writer(p[1])});
    Report("launches_green_stream_and_writes_primary", {Launcher(g[0]), Writer(p[1])});
    Report("writes_alone", {Writer(p[1])});
    Report("three_threads_primary_green_writes", {Launcher(p[0]), Launcher(g[0]), Writer(p[1])});
  }

 private:
  ThreadWork Launcher(cudaStream_t stream, CUcontext context = nullptr) {
    ThreadWork work;
    work.stream = stream;
    work.context = context;
    work.count = OnDevice<unsigned long long>();
    return work;
  }

  ThreadWork Writer(cudaStream_t stream) {
    ThreadWork work;
    work.stream = stream;
    work.word = OnDevice<uint64_t>();
    return work;
  }

  int Call(const ThreadWork& work, int i) {
    if (work.word != nullptr) {
      return driver_.cuStreamWriteValue64(work.stream, reinterpret_cast<CUdeviceptr>(work.word),
                                          static_cast<cuuint64_t>(i), 0);
    }
    Count<<<1, 32, 0, work.stream>>>(work.count);
    return cudaGetLastError();
  }

  // One thread's calls; returns without a Fail, so that the other thread's result is told too.
  void RunThread(ThreadWork* work, std::atomic<int>* waiting) {
    const auto note = [work](int code) {
      if (code == 0) return;
      if (work->errors++ == 0) work->first_error = code;
    };
    note(cudaSetDevice(0));
    if (work->context != nullptr) note(driver_.cuCtxSetCurrent(work->context));
    waiting->fetch_sub(1);
    while (waiting->load() > 0) {
    }
    for (int i = 0; i < kLaunches && work->errors < 10; ++i) {
      const int64_t start = NowNs();
      const int code = Call(*work, i);
      work->call_us.Add(Us(NowNs() - start));
      note(code);
      if (i % kBatch == kBatch - 1) note(cudaStreamSynchronize(work->stream));
    }
    driver_.cuCtxSetCurrent(primary_);
  }

  void Report(const char* name, std::vector<ThreadWork> works) {
    std::atomic<int> waiting{static_cast<int>(works.size())};
    std::vector<std::thread> threads;
    for (ThreadWork& work : works) {
      threads.emplace_back([this, &work, &waiting] { RunThread(&work, &waiting); });
    }
    for (std::thread& thread : threads) thread.join();
    MUST(cudaDeviceSynchronize());
    Json json;
    for (size_t i = 0; i < works.size(); ++i) {
      ThreadWork& work = works[i];
      unsigned long long counted = 0;
      if (work.count != nullptr) {
        MUST(cudaMemcpy(&counted, work.count, sizeof(counted), cudaMemcpyDeviceToHost));
      }
      Json one = work.call_us.Summary();
      one.Set("errors", work.errors).Set("first_error", work.first_error);
      if (work.count != nullptr) one.Set("blocks_lost", 32.0 * kLaunches - counted);
      json.Set("thread" + std::to_string(i), one);
      Line("%-42s %s call p50 %.2f p99 %.2f max %.0f us, errors %d (%d)", name,
           work.word != nullptr ? "write " : "launch", work.call_us.Quantile(0.5),
           work.call_us.Quantile(0.99), work.call_us.Quantile(1), work.errors, work.first_error);
    }
    SetAnswer(name, json);
  }

  const Driver& driver_;
  CUcontext primary_ = nullptr;
  Place greens_[2];
  cudaStream_t primary_streams_[2] = {};
  cudaStream_t green_streams_[2] = {};
  cudaStream_t same_green_streams_[2] = {};
};

// --- Lanes -----------------------------------------------------------------------------------

class Lanes {
 public:
  Lanes() : driver_(SetUp()), words_(Mapped<uint64_t>(64)) {
    split_ = MakeSplit(driver_);
    place_ = MakePlace(driver_, split_, 0, 8, false);
    if (place_.code != CUDA_SUCCESS) Fail("A green context of eight groups is refused.");
    sink_ = OnDevice<unsigned long long>();
  }

  void Run() {
    CountStreams("streams_of_one_green", true);
    CountStreams("streams_of_the_primary", false);
    Latencies("lc_in_primary", false);
    Latencies("lc_in_green", true);
  }

 private:
  static constexpr int kStreamsTried = 512;

  cudaStream_t TryStream(bool green, int priority, int* code) {
    CUstream stream = nullptr;
    if (green) {
      *code =
          driver_.cuGreenCtxStreamCreate(&stream, place_.green, CU_STREAM_NON_BLOCKING, priority);
    } else {
      *code = cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority);
    }
    return *code == 0 ? stream : nullptr;
  }

  void CountStreams(const char* name, bool green) {
    size_t free_before = 0, free_after = 0, total = 0;
    MUST(cudaMemGetInfo(&free_before, &total));
    std::vector<cudaStream_t> streams;
    Samples create_us;
    int code = 0;
    int wrong_priority = 0;
    for (int i = 0; i < kStreamsTried; ++i) {
      const int priority = -(i % (1 - HighestPriority()));
      const int64_t start = NowNs();
      const cudaStream_t stream = TryStream(green, priority, &code);
      if (stream == nullptr) break;
      create_us.Add(Us(NowNs() - start));
      streams.push_back(stream);
      int granted = 1;
      driver_.cuStreamGetPriority(stream, &granted);
      if (granted != priority) ++wrong_priority;
      Count<<<1, 1, 0, stream>>>(sink_);
    }
    const int launch_error = cudaGetLastError();
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemGetInfo(&free_after, &total));
    const double memory = static_cast<double>(free_before) - static_cast<double>(free_after);
    for (const cudaStream_t stream : streams) MUST(cudaStreamDestroy(stream));
    Json json;
    json.Set("tried", kStreamsTried).Set("made", streams.size()).Set("code", code);
    json.Set("launch_error", launch_error).Set("wrong_priority", wrong_priority);
    json.Set("memory_bytes", memory).Set("create_us", create_us.Summary());
    SetAnswer(name, json);
    Line(
        "%-24s %zu of %d made (code %d), %d with another priority, create p50 %.1f p99 %.1f us, "
        "%.1f MiB",
        name, streams.size(), kStreamsTried, code, wrong_priority, create_us.Quantile(0.5),
        create_us.Quantile(0.99), memory / (1 << 20));
  }

  void Latencies(const char* name, bool green) {
    std::vector<cudaStream_t> idle;
    int code = 0;
    const cudaStream_t lc = TryStream(green, HighestPriority(), &code);
    if (lc == nullptr) Fail("An LC stream is refused.");
    Json json;
    for (const size_t count : {0, 4, 60, 200}) {
      while (idle.size() < count) {
        // Half of them in the green context, as the library's lanes would be.
        const cudaStream_t stream = TryStream(idle.size() % 2 == 1, 0, &code);
        if (stream == nullptr) break;
        idle.push_back(stream);
        Count<<<1, 1, 0, stream>>>(sink_);  // a stream that never ran may cost nothing
      }
      MUST(cudaDeviceSynchronize());
      json.Set("idle" + std::to_string(idle.size()), Latency(name, lc, idle.size()));
    }
    SetAnswer(name, json);
    for (const cudaStream_t stream : idle) MUST(cudaStreamDestroy(stream));
    MUST(cudaStreamDestroy(lc));
  }

  Json Latency(const char* name, cudaStream_t lc, size_t idle) {
    Samples seen_us, issue_us;
    for (int i = 0; i < 1020; ++i) {
      const uint64_t mine = ++value_;
      const int64_t start = NowNs();
      StampTime<<<1, 1, 0, lc>>>(words_ + 16, words_, mine);
      const int64_t issued = NowNs();
      if (!WaitFor(words_, mine, kWaitNs)) Fail("An LC kernel does not run.");
      const int64_t seen = NowNs();
      if (i % 20 == 19) MUST(cudaStreamSynchronize(lc));
      SpinNs(20'000);
      if (i < 20) continue;
      seen_us.Add(Us(seen - start));
      issue_us.Add(Us(issued - start));
    }
    MUST(cudaStreamSynchronize(lc));
    Line("%-14s %3zu idle streams: launch call %.2f p99 %.2f, word seen %.2f p99 %.2f us", name,
         idle, issue_us.Quantile(0.5), issue_us.Quantile(0.99), seen_us.Quantile(0.5),
         seen_us.Quantile(0.99));
    return Json().Set("issue_us", issue_us.Summary()).Set("seen_us", seen_us.Summary());
  }

  const Driver& driver_;
  Split split_;
  Place place_;
  uint64_t* words_;
  unsigned long long* sink_ = nullptr;
  uint64_t value_ = 0;
};

}  // namespace

void RunCompletion() { std::make_unique<Completion>()->Run(); }

void RunThreads() { std::make_unique<Threads>()->Run(); }

void RunLanes() { std::make_unique<Lanes>()->Run(); }

}  // namespace experiments
