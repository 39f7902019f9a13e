// The leader of a launch: one thread that relays evictions from the host to the workers.
//
// Why a leader: workers cannot poll host memory, because one read over the link for each block task
// made them several times slower. A stream write to device memory shares the hardware queues with
// all other streams, and eight busy streams blocked it (docs/hardware.md). The leader polls the
// host's word and copies it to the device's word, which the workers read. That takes 2.4 us from
// the host's store, whatever else is queued; the LC caller only pays for the store.
//
// Invariants: the launches of a lane run one after another, so that one leader at a time writes the
// lane's word. A leader ends with its launch.

#ifndef GPUSHARE_DEVICE_LEADER_CUH_
#define GPUSHARE_DEVICE_LEADER_CUH_

#include <gpushare/device/launch.h>

#include <cstdint>
#include <gpushare/device/completion.cuh>

namespace gpushare::device {

// The leader takes a launch that lasts longer for hung and ends, so that its own run is bounded.
inline constexpr uint64_t kLeaderNs = 3600ULL * 1000 * 1000 * 1000;

namespace internal {

__device__ inline uint64_t ReadHostWord(const uint64_t* word) {
  uint64_t value;
  asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}

__device__ inline bool TellsAllToLeave(uint64_t word, uint32_t epoch) {
  const auto reached = static_cast<int32_t>(static_cast<uint32_t>(word >> 32) - epoch);
  return (reached >= 0) & (static_cast<uint32_t>(word) == 0);
}

inline constexpr uint32_t kRoundsPerTimerRead = 1024;  // about 2 ms

}  // namespace internal

// Relays evictions until the launch ends or all of its workers are evicted. Called by one thread.
//
// Workers at full issue rate leave a single warp few issue slots, so the loop has few instructions:
// it checks for the end of the launch once in two polls, and reads the timer rarely.
__device__ inline void RelayEvictions(const gpushare_worker_launch& launch) {
  volatile uint64_t* const device_word = launch.eviction_word;
  const volatile uint64_t* const ended_sequence = &launch.scratch->ended_sequence;
  const uint64_t give_up_ns = GlobalTimerNs() + kLeaderNs;
  uint64_t relayed = *device_word;
  do {
    bool is_over = false;
#pragma unroll 1
    for (uint32_t round = internal::kRoundsPerTimerRead; !is_over && round > 0; --round) {
      uint64_t word = internal::ReadHostWord(launch.host_eviction_word);
      if (word != relayed) *device_word = relayed = word;
      const uint64_t ended = *ended_sequence;
      word = internal::ReadHostWord(launch.host_eviction_word);
      if (word != relayed) *device_word = relayed = word;
      is_over = (ended == launch.sequence) | internal::TellsAllToLeave(word, launch.epoch);
    }
    if (is_over) return;
  } while (GlobalTimerNs() <= give_up_ns);
}

}  // namespace gpushare::device

#endif  // GPUSHARE_DEVICE_LEADER_CUH_
