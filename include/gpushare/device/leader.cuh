// The leader of a launch: one thread that relays evictions from the host to the workers.
//
// Workers cannot poll host memory: a read over the link once a block task made them several times
// slower. A stream write to device memory shares the hardware queues with all other streams, and
// was blocked by eight busy ones (docs/hardware.md). The leader polls the host's word and
// copies it to the device's, where the workers read it: 2.4 us from the host's store, whatever else
// is queued, and the store is all that an LC caller pays. Invariants: the launches of a lane run
// one after another, so one leader writes a lane's word at a time; the leader ends with its launch.

#ifndef GPUSHARE_DEVICE_LEADER_CUH_
#define GPUSHARE_DEVICE_LEADER_CUH_

#include <gpushare/device/launch.h>

#include <cstdint>
#include <gpushare/device/completion.cuh>

namespace gpushare::device {

// A launch that lasts longer is taken for hung: the leader ends, so that it never outlives a bound.
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

// Until every worker of the launch has left or was told to. One thread.
//
// Workers at full issue rate may leave a lone warp few issue slots, so the loop has few
// instructions: two polls share one look at the end of the launch, and the timer is read rarely.
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
