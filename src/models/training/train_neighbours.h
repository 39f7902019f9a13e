// What each graph keeps of its speed beside a neighbour, fitted to the rows of a samples file
// (neighbour_model.h). Called by TrainProfile. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_TRAINING_TRAIN_NEIGHBOURS_H_
#define GPUSHARE_SRC_MODELS_TRAINING_TRAIN_NEIGHBOURS_H_

#include "src/models/learned/learned.h"
#include "src/models/samples/samples_file.h"

namespace gpushare::models {

// Graphs without enough rows, and those of which `learned` knows nothing, keep what they have.
void TrainNeighbours(const Samples& samples, Learned& learned);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_TRAINING_TRAIN_NEIGHBOURS_H_
