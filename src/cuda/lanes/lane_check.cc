// Launches a probe, evicts it and waits for its end. See lane_check.h.

#include "src/cuda/lanes/lane_check.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "src/cuda/driver/errors.h"
#include "src/cuda/lanes/lane_probe.h"

namespace gpushare::cuda {
namespace {

// The value of every byte of the lane's words before the probe. The probe's epoch is just above
// that word, and far below the epochs of later launches (device.h: words move by less than 2^31).
constexpr unsigned char kIdleByte = 0x80;
constexpr uint32_t kProbeEpoch = 0x80808081;

// A worker sees an eviction after 2.4 us and leaves at the end of its block task
// (docs/hardware.md). A stream write behind busy queues takes more than 1 ms.
constexpr int64_t kEvictionNs = 1'000'000;
// The first launch of a process loads the probe, and other work may fill the device. So each lane
// waits this long for the probe to start, and all lanes together at most for the allowance.
constexpr int64_t kStartNs = 5'000'000;
constexpr uint32_t kBlockTaskNs = 5'000;
// 10 ms in all: well above the waits for start and eviction, and the bound of a probe that is never
// evicted.
constexpr uint32_t kBlockTasks = 2'000;

uint64_t Read(const volatile uint64_t& word) {
  const uint64_t value = word;
  std::atomic_thread_fence(std::memory_order_acquire);
  return value;
}

}  // namespace

absl::Status LaneCheck::Open() {
  auto counters = DeviceMemory::Make(context_, sizeof(uint32_t) * words_);
  if (!counters.ok()) return counters.status();
  auto running = MappedMemory::Make(context_, sizeof(uint64_t) * words_);
  if (!running.ok()) return running.status();
  counters_ = *std::move(counters);
  running_ = *std::move(running);
  function_ = static_cast<CUfunction>(LaneProbeFunction());
  if (function_ == nullptr) {
    return absl::UnavailableError("The library has no lane probe for this GPU.");
  }
  return GPUSHARE_CU(context_.api(), cuFuncLoad(function_));
}

void LaneCheck::Leak() {
  counters_.Leak();
  running_.Leak();
}

absl::Status LaneCheck::ResetDeviceWord(const CudaLane& lane, unsigned char byte) const {
  return GPUSHARE_CU(context_.api(),
                     cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(lane.words.eviction_word), byte,
                                     sizeof(uint64_t), lane.stream));
}

absl::Status LaneCheck::Launch(CudaLane& lane, size_t set, uint64_t sequence, uint64_t mark) {
  const size_t slot = lane.Slot(sequence);
  gpushare_worker_launch header = {};
  header.eviction_word = lane.words.eviction_word;
  header.host_eviction_word = lane.words.host_eviction_word_on_device;
  header.counter = counters_.At<uint32_t>(set);
  header.scratch = lane.words.scratch + slot;
  header.completion = lane.words.records_on_device + slot;
  header.sequence = sequence;
  header.epoch = kProbeEpoch;
  header.block_count = kBlockTasks;
  header.grid_x = kBlockTasks;
  header.grid_y = header.grid_z = 1;
  header.claim_batch = 1;
  LaneProbeParams params = {running_.Device<uint64_t>(set), mark, kBlockTaskNs, 0};
  void* addresses[] = {&header, &params};
  GPUSHARE_CU_RETURN(context_.api(), cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(header.counter),
                                                     0, sizeof(uint32_t), lane.stream));
  constexpr unsigned int kLeaderAndWorker = 2;
  return GPUSHARE_CU(context_.api(),
                     cuLaunchKernel(function_, kLeaderAndWorker, 1, 1, kLaneProbeThreads, 1, 1, 0,
                                    lane.stream, addresses, nullptr));
}

absl::Status LaneCheck::Run(CudaLane& lane, core::LaneIndex index, size_t set) {
  uint64_t idle_word = 0;
  std::memset(&idle_word, kIdleByte, sizeof(idle_word));
  std::atomic<uint64_t>& host_word = *lane.words.host_eviction_word;
  host_word.store(idle_word, std::memory_order_release);
  if (absl::Status status = ResetDeviceWord(lane, kIdleByte); !status.ok()) return status;
  const uint64_t sequence = lane.launched.load(std::memory_order_relaxed) + 1;
  const uint64_t mark = ++mark_;
  if (absl::Status status = Launch(lane, set, sequence, mark); !status.ok()) return status;
  // The scheduler does not know this launch, so the poller must not report it.
  lane.launched.store(sequence, std::memory_order_relaxed);
  lane.reported.store(sequence, std::memory_order_relaxed);

  const volatile uint64_t& running = *running_.Host<volatile uint64_t>(set);
  const core::TimeNs launched_ns = clock_.NowNs();
  core::TimeNs deadline_ns = launched_ns + std::min(kStartNs, start_allowance_ns_);
  while (Read(running) != mark && clock_.NowNs() < deadline_ns) {
  }
  const bool started = Read(running) == mark;
  start_allowance_ns_ = std::max<int64_t>(0, start_allowance_ns_ - (clock_.NowNs() - launched_ns));
  if (!blocked_for_test_) {
    host_word.store(uint64_t{kProbeEpoch} << 32, std::memory_order_release);
  }
  const volatile uint64_t& ended = lane.words.records[lane.Slot(sequence)].sequence;
  const core::TimeNs evicted_ns = clock_.NowNs();
  deadline_ns = evicted_ns + kEvictionNs;
  while (started && Read(ended) != sequence && clock_.NowNs() < deadline_ns) {
  }
  const bool seen =
      Read(ended) == sequence && lane.words.records[lane.Slot(sequence)].block_tasks_left > 0;
  // Reset the device's word behind the probe. Keep the host's word while the probe may still need
  // it: it is far below any launch's epoch.
  if (absl::Status status = ResetDeviceWord(lane, 0); !status.ok()) return status;
  if (Read(ended) == sequence) host_word.store(0, std::memory_order_release);
  if (seen || !started) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("Lane ", index, " has a blocked eviction word: a launch on it did not leave ",
                   kEvictionNs, " ns after its eviction, which is the limit."));
}

}  // namespace gpushare::cuda
