// The rows of a samples file that tell what a graph keeps of its speed beside a neighbour on the
// other SMs, joined with the neighbour's counters and its speed on these SMs.
//
// The host's clock times a library call of some microseconds, which is too coarse: rows of graphs
// alone count. Pure. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_TRAINING_NEIGHBOUR_SAMPLES_H_
#define GPUSHARE_SRC_MODELS_TRAINING_NEIGHBOUR_SAMPLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/models/pairs/neighbour_model.h"
#include "src/models/samples/samples_file.h"

namespace gpushare::models {

struct MeasuredNeighbour {
  std::string kernel;
  std::string neighbour;
  int32_t sms = 0;  // of the kernel
  NeighbourSample sample;
};

// In the order of the rows. A neighbour without counters is left out; one without a curve of its
// workers over SMs gets the speed that its counters tell.
std::vector<MeasuredNeighbour> MeasuredNeighbours(const Samples& samples);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_TRAINING_NEIGHBOUR_SAMPLES_H_
