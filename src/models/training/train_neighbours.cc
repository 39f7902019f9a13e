// Fits of neighbours; see train_neighbours.h.

#include "src/models/training/train_neighbours.h"

#include <map>
#include <string>
#include <vector>

#include "src/models/pairs/neighbour_model.h"
#include "src/models/training/neighbour_samples.h"

namespace gpushare::models {

void TrainNeighbours(const Samples& samples, Learned& learned) {
  std::map<std::string, std::vector<NeighbourSample>> rows;
  for (const MeasuredNeighbour& pair : MeasuredNeighbours(samples)) {
    rows[pair.kernel].push_back(pair.sample);
  }
  for (LearnedKernel& kernel : learned.kernels) {
    const auto found = rows.find(kernel.name);
    if (found == rows.end()) continue;
    NeighbourModel model;
    model.Fit(found->second);
    if (model.known()) kernel.neighbours = model.state();
  }
}

}  // namespace gpushare::models
