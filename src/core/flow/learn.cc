// Hands the samples of this Tick to the model. See learn.h.

#include "src/core/flow/learn.h"

namespace gpushare::core {

void Learn(Flow& flow) {
  for (int i = 0; i < flow.sample_count; ++i) {
    Sample& sample = flow.samples[static_cast<size_t>(i)];
    if (sample.has_beside) sample.observation.beside = absl::MakeConstSpan(&sample.beside, 1);
    flow.model->Observe(sample.observation);
  }
}

}  // namespace gpushare::core
