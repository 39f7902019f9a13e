// Hands the samples of this Tick to the model. See learn.h.

#include "src/core/flow/learn/learn.h"

namespace gpushare::core {

void Learn(Flow& flow) {
  for (Sample& sample : flow.samples) {
    if (sample.has_beside) sample.observation.beside = absl::MakeConstSpan(&sample.beside, 1);
    if (sample.fused.kernel != nullptr) sample.observation.fused = &sample.fused;
    flow.model->Observe(sample.observation);
  }
  for (const QuerySample& sample : flow.query_samples) {
    flow.model->ObserveQuery(sample.query, sample.measured_ns);
  }
  flow.query_samples.Clear();
}

}  // namespace gpushare::core
