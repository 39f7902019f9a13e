// The durations of library calls from their parameters, fitted to the rows of a samples file
// (library_model.h). Called by TrainProfile. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_TRAINING_TRAIN_LIBRARY_H_
#define GPUSHARE_SRC_MODELS_TRAINING_TRAIN_LIBRARY_H_

#include "src/models/learned/learned.h"
#include "src/models/samples/samples_file.h"

namespace gpushare::models {

// Samples without library calls change nothing.
void TrainLibrary(const Samples& samples, Learned& learned);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_TRAINING_TRAIN_LIBRARY_H_
