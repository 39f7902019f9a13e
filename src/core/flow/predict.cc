// The predict stage: fresh tasks, and the tables of the snapshot. See predict.h.

#include "src/core/flow/predict.h"

#include <new>
#include <string>
#include <utility>

#include "src/core/flow/planning/head_views.h"
#include "src/core/flow/planning/overlap_tables.h"
#include "src/core/flow/planning/pair_table.h"
#include "src/core/flow/verbs/predict_task.h"

namespace gpushare::core {
namespace {

// Apps in dense order, by class: the rows of the snapshot and of the pair table. Also writes the
// constant fields of a BE app's row.
void IndexApps(Flow& flow) {
  flow.lc_apps.Clear();
  flow.be_apps.Clear();
  flow.buffers.be_apps.Clear();
  flow.drops_late = false;
  flow.lc_ranked = flow.lc_may_yield = false;
  for (int slot = 0; slot < flow.tables.app_slots(); ++slot) {
    App& app = flow.tables.app_slot(slot);
    app.plan_index = App::kNoIndex;
    if (app.id.load() == 0) continue;
    const bool lc = app.options.app_class == AppClass::kLatencyCritical;
    auto& apps = lc ? flow.lc_apps : flow.be_apps;
    app.plan_index = apps.size();
    apps.Add(&app);
    flow.drops_late = flow.drops_late || (lc && app.options.drop_late);
    if (lc) {
      flow.lc_may_yield = flow.lc_may_yield || app.options.Yields();
      flow.lc_ranked = flow.lc_ranked || app.options.priority != flow.lc_apps[0]->options.priority;
      continue;
    }
    BeAppView& view = flow.buffers.be_apps.Add();
    view.app = AppId{app.id.load(std::memory_order_relaxed)};
    view.weight = app.options.weight;
  }
}

// Queues what the model has for the log. Without memory for the sentence it is lost.
void ReportOfModel(Flow& flow) {
  try {
    std::string sentence = flow.model->TakeReport();
    if (!sentence.empty()) flow.reports.push_back(std::move(sentence));
  } catch (const std::bad_alloc&) {  // for the sentence
  }
}

}  // namespace

void Predict(Flow& flow) {
  for (Task* task : flow.fresh) PredictTask(flow, *task);
  if (const uint64_t version = flow.tables.version(); version != flow.tables_version) {
    flow.tables_version = version;
    IndexApps(flow);
    ForgetHeadViews(flow);
    flow.pairs_stale = true;
  }
  if (const uint64_t version = flow.model->version(); version != flow.model_version) {
    flow.model_version = version;
    flow.pairs_stale = true;
    ReportOfModel(flow);
  }
  if (flow.pairs_stale) UpdatePairs(flow);
  UpdateOverlapTables(flow);
}

}  // namespace gpushare::core
