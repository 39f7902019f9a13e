// The query models of all LC apps that state the sizes of their inputs (query_model.h).
//
// An app's slot is its number modulo the table, as in opaque_model.h. Invariant: Add and Save
// allocate; a prediction or an observation does not. Threads: the scheduler's only.

#ifndef GPUSHARE_SRC_MODELS_DURATIONS_QUERY_MODELS_H_
#define GPUSHARE_SRC_MODELS_DURATIONS_QUERY_MODELS_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/core/base/limits.h"
#include "src/core/base/types.h"
#include "src/core/seams/cost_model.h"
#include "src/models/durations/query_model.h"

namespace gpushare::models {

struct LearnedQueries {
  std::string app;
  QueryModelState model;
};

class QueryModels {
 public:
  using ByName = std::map<std::string, LearnedQueries>;

  void Add(core::AppId app, const std::string& name);

  // Not trained: unknown app, no size, or too few queries.
  core::Prediction Predict(const core::QueryFeatures& query) const;
  void Observe(const core::QueryFeatures& query, int64_t measured_ns);

  // Sorted by name; loaded models of apps that never came too.
  std::vector<LearnedQueries> Save() const;
  // Also for apps that are known already. Does not throw.
  void Restore(ByName loaded);

 private:
  struct App {
    core::AppId id = {};
    std::string name;
    QueryModel model;
  };

  App* Find(core::AppId app) const {
    App* const found = apps_[app.value % core::kMaxApps].get();
    return found != nullptr && found->id == app ? found : nullptr;
  }

  std::array<std::unique_ptr<App>, core::kMaxApps> apps_;
  ByName loaded_;  // and of apps whose slot another app has taken
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_DURATIONS_QUERY_MODELS_H_
