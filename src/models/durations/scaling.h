// Speed of a kernel on fewer SMs and beside a neighbour in another partition.
//
// Speed over SM count is not monotone (hardware.md: decode runs at 0.96 on 84 SMs and 0.80 on 124),
// so a measured table is interpolated and no shape is assumed. Partitions share DRAM and L2 only: a
// compute-bound neighbour costs nothing, and two that together ask for more than the whole
// bandwidth share it by weight (hardware.md, "Spatial overlap": streaming beside decode on 84 and
// 48 SMs leaves decode 0.47 of its speed). Pure functions; threads: any.

#ifndef GPUSHARE_SRC_MODELS_DURATIONS_SCALING_H_
#define GPUSHARE_SRC_MODELS_DURATIONS_SCALING_H_

#include <cstdint>

#include "src/core/seams/kernel.h"

namespace gpushare::models {

// One side of a neighbourhood: a kernel alone on `sms` of the device's `sm_count` SMs.
struct Side {
  const core::KernelDesc* kernel = nullptr;
  int32_t sms = 0;
};

// Speed on `sms` SMs relative to the whole device: the kernel's table, else what its counters tell
// (thesis_scaling.h), else in proportion.
double SpeedOnSms(const core::KernelDesc& kernel, int32_t sms, int32_t sm_count);

// What a kernel asks for on the whole device at full speed: by its record, without one by its
// counters. Of a graph the mean over its nodes, weighted by time, because a neighbour may run
// beside any of them: this walks all nodes.
core::ResourceDemand MeanDemand(const core::KernelDesc& kernel);

// Factor from 0 to 1 on `self`'s speed while `neighbour` runs on other SMs.
double SpeedBesideNeighbour(const Side& self, const Side& neighbour, int32_t sm_count);
// The same, for a caller that keeps the mean demands of both.
double SpeedBesideNeighbour(const Side& self, const core::ResourceDemand& ours,
                            const Side& neighbour, const core::ResourceDemand& theirs,
                            int32_t sm_count);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_DURATIONS_SCALING_H_
