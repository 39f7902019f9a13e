// What the online cost model's parts learned, as the value that a profile keeps, and back.
//
// OnlineModel calls Collect for Save and Take for Load; Apply when a kernel is registered for which
// a profile held something. Invariants: Take is all or nothing; what was loaded for kernels that
// never came is collected again. Collect and Take allocate. Threads: the scheduler's only.

#ifndef GPUSHARE_SRC_MODELS_ONLINE_LEARNED_EXCHANGE_H_
#define GPUSHARE_SRC_MODELS_ONLINE_LEARNED_EXCHANGE_H_

#include <string>

#include "src/models/learned/learned.h"
#include "src/models/online/model_set.h"

namespace gpushare::models {

// Sorted, so that one state gives one text.
Learned Collect(const ModelSet& models);

// Replaces what the parts learned. On bad_alloc nothing has changed.
void Take(ModelSet& models, Learned learned);

// Restores what was loaded for a kernel of the model's name, before the model is put into the set.
void ApplyPending(const ModelSet& models, KernelModel& model);
// Restores the loaded pairs of which one kernel has this name, once it is in the set.
void ApplyPendingPairs(ModelSet& models, const std::string& name);
// The same of runs on the same SMs, once the co-schedules know both kernels.
void ApplyPendingCoRuns(ModelSet& models, const std::string& name);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_ONLINE_LEARNED_EXCHANGE_H_
