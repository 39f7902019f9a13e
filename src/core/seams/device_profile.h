// The constants of one GPU model: sizes, latencies, link rates and the device's split candidates.
//
// Filled from a profile file (src/models/profile/profile.cc); the simulated device runs on them,
// the cost model uses them as priors. Units are in the names.

#ifndef GPUSHARE_SRC_CORE_SEAMS_DEVICE_PROFILE_H_
#define GPUSHARE_SRC_CORE_SEAMS_DEVICE_PROFILE_H_

#include <cstdint>
#include <string>

namespace gpushare::core {

struct DeviceProfile {
  std::string name = "simulated";
  // Identity of the GPU that was measured; a profile of another GPU is rejected whole.
  std::string gpu_model;
  int32_t sm_count = 132;
  int32_t sm_granularity = 8;  // SMs of one group of a partition
  // Groups that the hardware grants; 0: as many as the SMs hold. An H200 grants 15 of its 132 SMs
  // and leaves 12 over, because a group lies within one cluster of SMs.
  int32_t sm_groups = 0;
  // Which side of a partition gets what whole groups leave over. LC graphs whose kernels run in
  // clusters are slower there (an H200: 0.67 of the whole GPU's speed on 40 + 12 SMs and 0.92 on
  // 48, docs/results/mechanisms.md); workers are not.
  bool remainder_for_lc = false;
  int32_t registers_per_sm = 65536;
  int32_t shared_memory_per_sm_bytes = 233472;
  int32_t threads_per_sm = 2048;
  int32_t blocks_per_sm = 32;
  int32_t clock_mhz = 1980;     // of the SMs under light load; counters turn into times with it
  int32_t hardware_queues = 8;  // streams beyond this share one and can block each other

  int64_t launch_issue_ns = 2800;    // host time of one launch call
  int64_t launch_latency_ns = 4500;  // launch call to first block, idle lane
  int64_t graph_launch_latency_ns = 6000;
  int64_t completion_latency_ns = 2000;  // last block to word seen by the host
  int64_t eviction_write_issue_ns = 630;
  int64_t eviction_write_latency_ns = 4000;  // write issued to workers see the word
  int64_t event_record_ns = 110;
  int64_t host_function_latency_ns = 6000;
  int64_t submit_overhead_ns = 500;  // what the library adds on the LC fast path, host time
  // What a kernel node cut out of an LC graph costs its query: on an H200 the GPU idles 3.9 us
  // between two launches that are queued, and 8.5 us where the host must see the end of the first,
  // as behind a fused launch (docs/hardware.md, "Graphs in segments").
  int64_t cut_node_ns = 12'400;

  double pinned_bytes_per_ns = 55.5;        // each way alone
  double duplex_bytes_per_ns = 101.6;       // both ways together
  double pageable_h2d_bytes_per_ns = 10.0;  // in total, however many at once
  double pageable_d2h_bytes_per_ns = 19.0;
  int64_t copy_latency_ns = 7200;  // pinned, before the first byte moves
  // What a pinned copy takes of a kernel that uses the share d of the DRAM's peak: its speed is
  // 1 / (1 + slowdown x d) beside it.
  double copy_in_slowdown = 0;   // to the device
  double copy_out_slowdown = 0;  // from the device

  int32_t Groups() const {
    if (sm_groups > 0) return sm_groups;
    return sm_granularity > 0 ? sm_count / sm_granularity : 0;
  }
  // SMs that whole groups leave over.
  int32_t Remainder() const { return sm_count - Groups() * sm_granularity; }
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_DEVICE_PROFILE_H_
