// Query models by app; see query_models.h.

#include "src/models/durations/query_models.h"

#include <utility>

#include "src/models/durations/prior.h"

namespace gpushare::models {

void QueryModels::Add(core::AppId app, const std::string& name) {
  auto entry = std::make_unique<App>();
  entry->id = app;
  entry->name = name;
  std::unique_ptr<App>& slot = apps_[app.value % core::kMaxApps];
  // What the former app of this slot learned is kept for the next one of its name.
  const bool learned = slot != nullptr && slot->model.samples() > 0;
  if (learned && loaded_.size() < static_cast<size_t>(core::kMaxKernels)) {
    loaded_[slot->name] = {slot->name, slot->model.state()};
  }
  const auto known = loaded_.find(name);
  if (known != loaded_.end()) entry->model.Restore(known->second.model);
  slot = std::move(entry);
}

core::Prediction QueryModels::Predict(const core::QueryFeatures& query) const {
  const App* const app = Find(query.app);
  if (app == nullptr || !(query.input_size > 0)) return {};
  return app->model.Predict(query.input_size, kUnknownDurationNs);
}

void QueryModels::Observe(const core::QueryFeatures& query, int64_t measured_ns) {
  App* const app = Find(query.app);
  if (app == nullptr) return;
  app->model.Observe(query.input_size, static_cast<double>(measured_ns), kUnknownDurationNs);
}

std::vector<LearnedQueries> QueryModels::Save() const {
  ByName all = loaded_;
  for (const auto& app : apps_) {
    if (app == nullptr || app->model.samples() == 0) continue;
    if (all.size() >= static_cast<size_t>(core::kMaxKernels) && all.count(app->name) == 0) continue;
    all[app->name] = {app->name, app->model.state()};
  }
  std::vector<LearnedQueries> out;
  for (auto& [name, one] : all) out.push_back(std::move(one));
  return out;
}

void QueryModels::Restore(ByName loaded) {
  loaded_.swap(loaded);
  for (const auto& app : apps_) {
    if (app == nullptr) continue;
    const auto known = loaded_.find(app->name);
    if (known != loaded_.end()) app->model.Restore(known->second.model);
  }
}

}  // namespace gpushare::models
