// The leader of a launch: one thread that relays evictions from the host to the workers.
//
// Workers cannot poll host memory: a read over the link once a block task made them several times
// slower. A stream write to device memory shares the hardware queues with all other streams, and
// was blocked by eight busy ones (docs/measurements.md). The leader polls the host's word and
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

__device__ inline bool HasEnded(const gpushare_worker_launch& launch) {
  return *const_cast<volatile uint64_t*>(&launch.scratch->ended_sequence) == launch.sequence;
}

}  // namespace internal

// Until every worker of the launch has left or was told to. One thread.
__device__ inline void RelayEvictions(const gpushare_worker_launch& launch) {
  const uint64_t give_up_ns = GlobalTimerNs() + kLeaderNs;
  uint64_t relayed = *const_cast<volatile uint64_t*>(launch.eviction_word);
  while (!internal::HasEnded(launch)) {
    const uint64_t word = internal::ReadHostWord(launch.host_eviction_word);
    if (word != relayed) {
      *const_cast<volatile uint64_t*>(launch.eviction_word) = word;
      relayed = word;
    }
    const bool reached =
        static_cast<int32_t>(static_cast<uint32_t>(word >> 32) - launch.epoch) >= 0;
    if (reached && static_cast<uint32_t>(word) == 0) return;
    if (GlobalTimerNs() > give_up_ns) return;
  }
}

}  // namespace gpushare::device

#endif  // GPUSHARE_DEVICE_LEADER_CUH_
