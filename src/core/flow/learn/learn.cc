// Facts for the evidence, and samples for the model. See learn.h.

#include "src/core/flow/learn/learn.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/tuning.h"
#include "src/core/flow/learn/samples.h"
#include "src/core/state/query_waits.h"

namespace gpushare::core {
namespace {

// Whether all active queries of the app wait for tickets. `queries`: how many are active.
bool OnlyWaits(const App& app, int32_t queries) {
  return app.tasks_in_flight == 0 && queries <= app.queries_waiting;
}

bool MeetsCredit(const Flow& flow) {
  return flow.regions_on_credit > 0 ||
         std::any_of(flow.running_be.begin(), flow.running_be.end(),
                     [](const Task* task) { return task->progress.on_credit; });
}

bool BeComputeRuns(const Flow& flow) {
  return std::any_of(flow.running_be.begin(), flow.running_be.end(),
                     [](const Task* task) { return task->work.kind != TaskKind::kMemcpy; });
}

// The row of a BE kernel on the place that nobody measured beside the app on the split; -1: none.
int32_t UnknownKernelOn(const Flow& flow, PlaceIndex place, int32_t app, int32_t split) {
  const PairTable& pairs = flow.buffers.snapshot.pairs;
  for (const Task* const task : flow.running_be) {
    const int32_t row = flow.pair_kernels.RowOf(task->work.kernel);
    if (row < 0 || row >= pairs.kernels || !(pairs.HopedAt(app, row, split) > 0)) continue;
    for (const Part& part : task->progress.parts) {
      if (part.place == place) return row;
    }
  }
  return -1;
}

// The row of the BE kernel beside which the query was on trial; -1: it was not.
int32_t TrialKernel(const Flow& flow, const QueryState& query) {
  const PairTrial& trial = flow.evidence.trial;
  const auto splits = flow.lanes.splits();
  if (trial.split < 0 || trial.split >= static_cast<int32_t>(splits.size())) return -1;
  // An app that the table of this plan does not have yet has no query on trial.
  const int32_t app = query.app->plan_index;
  if (flow.pairs_stale || app < 0 || app >= flow.lc_apps.size()) return -1;
  if (query.arrival_ns < trial.begin_ns) return -1;
  const PlaceIndex place = splits[static_cast<size_t>(trial.split)].be_place;
  return UnknownKernelOn(flow, place, app, trial.split);
}

// Segments that the part, a launch in segments, had behind the first ones and has begun by now.
int64_t BegunSinceNs(const Flow& flow, const Task& task, const Part& part) {
  return std::clamp<int64_t>(flow.now_ns - part.launched_ns, 0, task.progress.uncommitted_ns);
}

// What a BE task that begins counts in the book of serial headrooms.
int64_t ChargeNs(const Task& task) {
  const bool pageable = task.work.kind == TaskKind::kMemcpy && !task.work.copy.pinned;
  return pageable ? 0 : task.progress.issued_ns - task.progress.uncommitted_ns;
}

// Whether the task's last block tasks have ended, and it will not fail.
bool IsDone(const Task& task) {
  const Progress& progress = task.progress;
  return progress.parts.empty() && !progress.launch_failed && !progress.enqueue_failed &&
         progress.blocks_done >= task.work.block_tasks;
}

// The pair of each app that had a query of the trial is known now, if need be by the guess.
void GiveUpUnmeasured(Flow& flow) {
  const PairTrial& trial = flow.evidence.trial;
  const PairTable& pairs = flow.buffers.snapshot.pairs;
  const auto splits = flow.lanes.splits();
  const bool in_table = trial.split < static_cast<int32_t>(splits.size()) &&
                        trial.kernel < flow.pair_kernels.size() &&
                        pairs.kernels == flow.pair_kernels.size();
  if (!in_table) return;
  const int32_t sms = splits[static_cast<size_t>(trial.split)].lc_sms;
  for (int32_t a = 0; a < flow.lc_apps.size(); ++a) {
    const KernelDesc* const kernel = flow.lc_apps[a]->evidence.main_kernel.kernel;
    const PairOption& option = pairs.at(a, trial.kernel, trial.split);
    if ((trial.apps >> flow.lc_apps[a]->slot & 1) == 0) continue;
    if (kernel == nullptr || pairs.HopedAt(a, trial.kernel, trial.split) <= 0) continue;
    flow.model->neighbours().GiveUpBeside(*kernel, sms, flow.pair_kernels.kernel(trial.kernel),
                                          option.lc_speed / option.lc_speed_alone);
  }
}

// A trial whose queries have ended, or whose time is over, ends.
void EndTrial(Flow& flow) {
  PairTrial& trial = flow.evidence.trial;
  if (TrialTimedOut(trial, flow.now_ns)) {
    trial.left = 0;  // it says nothing, and its queries count as spent
    return flow.evidence.TrialEnded(flow.now_ns);
  }
  if (!trial.over) return;
  GiveUpUnmeasured(flow);
  flow.evidence.TrialEnded(flow.now_ns);
}

// Says each once, until the bound or the target can be kept again.
void ReportLost(Flow& flow, App& app) {
  const AppEvidence& evidence = app.evidence;
  const bool said_bound = std::exchange(app.bound_lost_said, evidence.bound_lost);
  const bool said_target = std::exchange(app.target_lost_said, evidence.target_lost);
  const Promise& promise = app.options.promise;
  const std::string& name = app.options.name;
  try {
    if (evidence.bound_lost && !said_bound) {
      flow.reports.push_back(promise.BoundLostText(name, evidence.query_solo_ns));
    }
    if (evidence.target_lost && !said_target) {
      flow.reports.push_back(promise.TargetLostText(name, evidence.query_solo_ns));
    }
  } catch (const std::bad_alloc&) {  // for the sentences
  }
}

// A query of one task takes what its kernel takes, once that was measured. Where its app has
// several kernels, the mean of the app's queries, by which it began, is that of others. An error
// bar on it, as a whole query of unknown tasks has one, would hide a lag of as much.
void PredictByKernel(Task& task) {
  QueryState* const query = task.query;
  const Prediction& predicted = task.progress.predicted;
  if (query == nullptr || !query->active || query->slot != nullptr || query->sized_ns > 0) return;
  AppEvidence& evidence = task.app->evidence;
  if (!predicted.trained || !evidence.main_kernel.one_of_several) return;
  query->sized_ns = predicted.duration_ns;
  evidence.shadow.Predict(predicted.duration_ns, query->shadow);
}

}  // namespace

void Learn(Flow& flow) {
  for (Sample& sample : flow.samples) {
    if (sample.has_beside) sample.observation.beside = absl::MakeConstSpan(&sample.beside, 1);
    if (sample.fused.kernel != nullptr) sample.observation.fused = &sample.fused;
    if (sample.co_run.own.kernel != nullptr) sample.observation.co_run = &sample.co_run;
    flow.model->Observe(sample.observation);
  }
  for (const QuerySample& sample : flow.query_samples) {
    flow.model->ObserveQuery(sample.query, sample.measured_ns);
  }
  flow.query_samples.Clear();
  for (const DelayedQuery& query : flow.delayed_queries) flow.model->ObserveDelay(query);
  flow.delayed_queries.Clear();
}

void FollowPolicy(Flow& flow) {
  const PolicyProperties properties = flow.policy->properties();
  flow.learns.store(properties.learns);
  flow.lets_lc_yield.store(properties.lets_lc_yield);
  KeepBook(flow.evidence.serial, properties.serial_headrooms);
}

void LearnApp(App& app, TimeNs now_ns) {
  BeginApp(app.evidence, app.options.solo_ns, app.options.promise, now_ns);
}

void LearnAppUpdated(App& app, const Promise& before, TimeNs now_ns) {
  UpdateApp(app.evidence, before, app.options.promise, now_ns);
}

void LearnYields(App& app, bool stands_still, TimeNs from_ns, TimeNs now_ns) {
  Yield(app.evidence, stands_still, from_ns, now_ns);
}

void LearnKernelReplaced(Flow& flow, KernelId id) {
  Evidence& evidence = flow.evidence;
  evidence.solo_runs.by_kernel[id.value] = SoloRuns::Counts();
  evidence.segment_gains.beside_queries[id.value] = MeasuredGain();
  evidence.segment_gains.on_split[id.value] = MeasuredGain();
  const KernelDesc* const kernel = flow.tables.FindKernel(id);
  for (int slot = 0; slot < flow.tables.app_slots(); ++slot) {
    AppEvidence& app = flow.tables.app_slot(slot).evidence;
    if (app.main_kernel.kernel == kernel) app.main_kernel = MainKernel();
    if (app.eviction.evicted == id || app.eviction.kernel == id) app.eviction = EvictionDelay();
  }
  flow.delayed_queries.Clear();
  flow.co_runs.Forget(id);
  const int32_t row = flow.pair_kernels.RowOf(id);
  if (row >= 0 && evidence.in_force.trial_kernel == row) evidence.TrialEnded(flow.now_ns);
  flow.pair_kernels.Renew(id);
  flow.overlap_kernels.Renew(id);
  flow.pair_apps = 0;                    // their rows too
  flow.fused_version = kNoFusedVersion;  // retired fused kernels lost a part
  flow.pairs_stale = true;
}

void LearnQueryBegan(Flow& flow, QueryState& query, TimeNs since_ns) {
  AppEvidence& evidence = query.app->evidence;
  query.waited = evidence.queries > 0;
  if (!query.waited) evidence.eviction.evicted = KernelId();  // of the last busy period
  flow.evidence.QueryBegan(evidence,
                           {.now_ns = flow.now_ns,
                            .arrival_ns = query.arrival_ns,
                            .since_ns = since_ns,
                            .sized_ns = query.sized_ns,
                            .meets_credit = MeetsCredit(flow)},
                           query.shadow);
}

void LearnQueryTask(QueryState& query, bool ran_alone) {
  query.disturbed = query.disturbed || !ran_alone;
}

void LearnQueryEnded(Flow& flow, const QueryState& query, int32_t queries_before) {
  SampleQuery(flow, query);
  App& app = *query.app;
  const int64_t gaps_ns = GapsOf(app.evidence, query.tasks_finished);
  flow.evidence.QueryEnded(app.evidence,
                           {.now_ns = flow.now_ns,
                            .arrival_ns = query.arrival_ns,
                            .ended_ns = query.ended_ns > 0 ? query.ended_ns : flow.now_ns,
                            .shadow = query.shadow,
                            .solo_ns = query.solo_ns > 0 ? query.solo_ns + gaps_ns : 0,
                            .done_ns = query.done_ns > 0 ? query.done_ns + gaps_ns : 0,
                            .disturbed = query.disturbed,
                            .waited = query.waited,
                            .dropped = query.dropped,
                            .promise = app.options.promise,
                            .only_waits = OnlyWaits(app, queries_before),
                            .last = queries_before == 1,
                            .bounds_tokens = app.options.bounds_tokens,
                            .distance_ns = query.distance_ns,
                            .next_within_ns = query.next_within_ns,
                            .be_runs = BeComputeRuns(flow),
                            .app_slot = static_cast<int32_t>(app.slot),
                            .trial_kernel = TrialKernel(flow, query)});
  if (app.evidence.eviction.counts) SampleDelay(flow, app.evidence.eviction);
  ReportLost(flow, app);
}

void LearnQueryLeft(Flow& flow, const QueryState& query, int32_t queries_before) {
  flow.evidence.QueryLeft(query.app->evidence, query.shadow, queries_before == 1, flow.now_ns);
}

void LearnQueryReturned(Flow& flow, const QueryState& query) {
  flow.evidence.QueryReturned(query.app->evidence, query.shadow, flow.now_ns);
}

void LearnPrediction(Flow& flow, Task& task) {
  if (task.work.kernel == nullptr) return;
  // The pieces of a graph vote for it: the app's work is the same, however it is launched.
  const KernelDesc& voted = task.piece.graph != nullptr ? *task.piece.graph : *task.work.kernel;
  const bool changed =
      VoteMainKernel(task.app->evidence.main_kernel, voted, task.progress.predicted.duration_ns);
  flow.pairs_stale = flow.pairs_stale || changed;
  PredictByKernel(task);
}

bool AsksForSoloRun(const Flow& flow, const Task& task) {
  return task.work.kind == TaskKind::kKernel && flow.be_apps.size() > 1 &&
         task.progress.predicted.duration_ns <= kSoloRunNsMax &&
         WantsSoloRun(flow.evidence.solo_runs, task.work.kernel->id);
}

// A short region may be complete before the flow hears of its begin.
void LearnRegionBegan(Flow& flow, Task& task) {
  if (task.progress.region_leave != RegionLeave::kCredit) return;
  if (task.record.verdict != Verdict::kPending) return;
  task.progress.on_credit = true;
  ++flow.regions_on_credit;
  flow.evidence.BePartBegan({.begins_credit = true});
  for (App* const app : flow.lc_apps) {
    Evidence::CreditBegan(app->evidence, task.work.declared_ns, flow.now_ns);
  }
}

void LearnRegionEnded(Flow& flow, Task& task) {
  if (!task.progress.is_region || IsLc(task)) return;
  const int64_t took_ns = std::max<int64_t>(0, flow.now_ns - task.record.submit_ns);
  const RegionLeave leave = std::exchange(task.progress.region_leave, RegionLeave::kRoom);
  // Of several launches a query met at most what they declared; one launch may take longer.
  const int64_t bound_ns = task.work.declared_ns;
  const int64_t uniform_ns = leave == RegionLeave::kSaved ? std::max(bound_ns, took_ns) : bound_ns;
  for (App* const app : flow.lc_apps) {
    if (leave == RegionLeave::kCredit) break;
    Evidence::BeRan(app->evidence, 0, uniform_ns, took_ns, flow.now_ns);
  }
  if (leave == RegionLeave::kSaved) flow.region_rooms.GiveSavedBack();
  if (!std::exchange(task.progress.on_credit, false)) return;
  --flow.regions_on_credit;
  task.app->region_wish.Note(flow.now_ns, bound_ns);
}

// A query that comes waits for the part's eviction, or for the rest of what nothing evicts.
void ChargeVacations(Flow& flow, const Task& task, int64_t span_ns) {
  if (task.progress.is_region || task.progress.on_credit) return;
  const bool leaves = task.progress.blocking_ns != kNever;
  const int64_t fixed_ns = leaves ? task.progress.blocking_ns : 0;
  const int64_t uniform_ns = leaves ? 0 : span_ns;
  for (App* const app : flow.lc_apps) {
    Evidence::BeRan(app->evidence, fixed_ns, uniform_ns, span_ns, flow.now_ns);
  }
}

void LearnPartBegan(Flow& flow, Task& task, Reason reason, bool begins) {
  if (IsLc(task)) return;
  // A part of a task that had one before is no run by itself.
  const bool asks = task.record.launches == 1 && AsksForSoloRun(flow, task);
  task.progress.runs_alone = asks && !task.progress.had_co_residents;
  const bool begins_credit =
      reason == Reason::kTailCredit && !std::exchange(task.progress.on_credit, true);
  flow.evidence.BePartBegan({.kernel = task.record.kernel,
                             .asks_for_solo_run = asks,
                             .begins_credit = begins_credit,
                             .charge_ns = begins ? ChargeNs(task) : 0});
  if (!begins_credit || task.work.kind == TaskKind::kMemcpy) return;  // a piece of a copy is short
  const int64_t blocking_ns = std::min(task.progress.issued_ns, task.progress.blocking_ns);
  for (App* const app : flow.lc_apps) {
    Evidence::CreditBegan(app->evidence, blocking_ns, flow.now_ns);
  }
}

void LearnSegmentsDropped(Flow& flow, const Task& task, const Part& part) {
  SerialBook& book = flow.evidence.serial;
  if (book.kept) book.charged_ns += BegunSinceNs(flow, task, part);
}

void LearnPartEnded(Flow& flow, Task& task, const Part& part, const DeviceCompletion& completion,
                    const PartWork& work) {
  if (!IsLc(task) && task.work.kernel != nullptr) {
    const double speed =
        flow.model->durations().SpeedOn(*task.work.kernel, flow.lanes.place(part.place).sms);
    task.progress.whole_device_ns += static_cast<double>(work.span_ns) * speed;
  }
  const bool measured_alone = IsDone(task) && SampleTask(flow, task, part, completion);
  if (IsLc(task) || task.work.kind == TaskKind::kMemcpy) return;
  ChargeVacations(flow, task, work.span_ns);
  BoundedList<const KernelDesc*, kMaxRunning> graphs;
  const bool in_segments = part.form == Form::kSegments;
  for (const Task* other : flow.running_be) {
    if (!in_segments || other == &task || other->progress.parts.empty()) continue;
    if (other->progress.parts[0].form == Form::kSegments) graphs.Add(other->work.kernel);
  }
  flow.evidence.BePartEnded({.now_ns = flow.now_ns,
                             .launched_ns = part.launched_ns,
                             .work_ns = work.work_ns,
                             .kernel = task.work.kernel,
                             .in_segments = in_segments,
                             .measured_alone = measured_alone,
                             .graphs_beside = graphs.span()});
}

void LearnPartsLost(Flow& flow) { flow.evidence.PartsLost(flow.now_ns); }

void ViewSerialHeadrooms(Flow& flow) {
  const SerialBook& book = flow.evidence.serial;
  if (!book.kept) return;
  int64_t charged_ns = book.charged_ns;
  for (const Task* task : flow.running_be) {
    for (const Part& part : task->progress.parts) charged_ns += BegunSinceNs(flow, *task, part);
  }
  for (int32_t i = 0; i < flow.buffers.queries.size(); ++i) {
    QueryView& view = flow.buffers.queries[i];
    view.serial_headroom_ns = SerialHeadroom(book, charged_ns, view.headroom_ns,
                                             flow.buffers.query_states[i]->serial_budget);
  }
}

EvidenceView ViewEvidence(Flow& flow) {
  EndTrial(flow);
  BoundedList<LcAppFacts, kMaxApps> apps;
  for (App* const app : flow.lc_apps) {
    const int32_t queries = app->LoadingQueries();
    apps.Add({.evidence = &app->evidence, .only_waits = OnlyWaits(*app, queries)});
  }
  return flow.evidence.View(apps.span(), *flow.model, flow.now_ns, flow.buffers.lc_apps.span());
}

void LearnPlan(Flow& flow) { flow.evidence.PlanMade(flow.buffers.plan, flow.now_ns); }

}  // namespace gpushare::core
