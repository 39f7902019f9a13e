// What was learned, into a profile and out of it; see learned_exchange.h.

#include "src/models/online/learned_exchange.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "src/core/base/limits.h"

namespace gpushare::models {
namespace {

void Apply(const LearnedKernel& learned, KernelModel& model) {
  model.solo.Restore(learned.solo, learned.shape);
  model.neighbours.Restore(learned.neighbours);
  model.beside_copies = learned.beside_copies;
  for (FollowedMean& speed : model.beside_copies) speed.announced = speed.mean;
  if (learned.segments != model.segments) return;  // another cut has other latencies
  if (learned.eviction.trained) model.eviction.Restore(learned.eviction);
  model.blocking = learned.blocking;
  model.blocking.announced = learned.blocking.mean;
}

bool HasLearned(const KernelModel& model) {
  return model.solo.line().samples != 0 || model.eviction.state().trained ||
         model.blocking.samples != 0 || model.neighbours.known();
}

void CollectKernels(const ModelSet& models, std::vector<LearnedKernel>& out) {
  for (const KernelModel& model : models.kernels.all()) {
    if (!HasLearned(model)) continue;
    out.push_back({model.name, model.solo.line(), model.solo.shape(), model.segments,
                   model.eviction.state(), model.blocking, model.neighbours.state(),
                   model.beside_copies});
  }
  // The next run gets what was loaded for kernels that this run never registered.
  for (const auto& [name, kernel] : models.pending_kernels) {
    const bool registered =
        std::any_of(models.kernels.all().begin(), models.kernels.all().end(),
                    [&known = name](const KernelModel& model) { return model.name == known; });
    if (!registered && out.size() < core::kMaxKernels) out.push_back(kernel);
  }
}

// Includes loaded pairs whose kernels never came.
void CollectPairs(const ModelSet& models, std::vector<LearnedPair>& out) {
  for (const auto& [key, state] : models.pairs.speeds()) {
    const KernelModel* kernel = models.kernels.Find(core::KernelId{key.kernel});
    const KernelModel* neighbour = models.kernels.Find(core::KernelId{key.neighbour});
    if (kernel == nullptr || neighbour == nullptr || state.samples == 0) continue;
    out.push_back({kernel->name, neighbour->name, key.sms, state});
  }
  for (const LearnedPair& pair : models.pending_pairs) {
    const bool registered =
        models.kernels.IdOf(pair.kernel) != 0 && models.kernels.IdOf(pair.neighbour) != 0;
    if (!registered && out.size() < kMaxPairs) out.push_back(pair);
  }
  std::sort(out.begin(), out.end(), [](const LearnedPair& a, const LearnedPair& b) {
    return std::tie(a.kernel, a.neighbour, a.sms) < std::tie(b.kernel, b.neighbour, b.sms);
  });
}

void CollectCoRuns(const ModelSet& models, std::vector<LearnedCoRun>& out) {
  models.co_schedules.runs().ForEach([&](const CoRunPair& pair, const CoRunPoint& point) {
    const KernelModel* kernel = models.kernels.Find(core::KernelId{pair.kernel});
    const KernelModel* neighbour = models.kernels.Find(core::KernelId{pair.neighbour});
    if (kernel == nullptr || neighbour == nullptr) return;
    out.push_back({kernel->name, neighbour->name, point});
  });
  const size_t most = CoRunSpeeds::kPairsMax * CoRunSpeeds::kPointsMax;
  for (const LearnedCoRun& run : models.pending_co_runs) {
    const bool registered =
        models.kernels.IdOf(run.kernel) != 0 && models.kernels.IdOf(run.neighbour) != 0;
    if (!registered && out.size() < most) out.push_back(run);
  }
  const auto key = [](const LearnedCoRun& run) {
    return std::tie(run.kernel, run.neighbour, run.point.workers, run.point.neighbour_workers);
  };
  std::sort(out.begin(), out.end(),
            [&](const LearnedCoRun& a, const LearnedCoRun& b) { return key(a) < key(b); });
}

}  // namespace

Learned Collect(const ModelSet& models) {
  Learned learned;
  CollectKernels(models, learned.kernels);
  CollectPairs(models, learned.pairs);
  CollectCoRuns(models, learned.co_runs);
  learned.copies = models.copies.Save();
  learned.fused = models.fused.Save();
  if (const co_resident::State* state = models.co_schedules.learned()) learned.co_resident = *state;
  learned.library = models.library.state();
  learned.queries = models.queries.Save();
  return learned;
}

void Take(ModelSet& models, Learned learned) {
  std::map<std::string, LearnedKernel> pending;
  for (LearnedKernel& kernel : learned.kernels) {
    LearnedKernel& entry = pending[kernel.name];
    entry = std::move(kernel);
  }
  FusedModels::ByName fused;
  for (const LearnedFused& one : learned.fused) fused[one.name] = one;
  CoSchedules::Prepared pairs = models.co_schedules.Prepare(std::move(learned.co_resident));
  QueryModels::ByName queries;
  for (LearnedQueries& one : learned.queries) {
    const std::string name = one.app;
    queries[name] = std::move(one);
  }
  LibraryModel library;
  library.Restore(LibraryDeviceOf(models.device), std::move(learned.library));
  for (const KernelModel& model : models.kernels.all()) PrepareCall(library, model);
  // From here on nothing allocates: a text is taken completely or not at all.
  models.pending_kernels.swap(pending);
  models.library = std::move(library);
  models.queries.Restore(std::move(queries));
  for (KernelModel& model : models.kernels.all()) {
    SetCallPrior(models.library, model);
    ApplyPending(models, model);
  }
  models.pending_pairs = std::move(learned.pairs);
  for (const KernelModel& model : models.kernels.all()) ApplyPendingPairs(models, model.name);
  models.copies.Restore(learned.copies);
  models.fused.Restore(std::move(fused));
  models.co_schedules.Restore(std::move(pairs));
  models.pending_co_runs = std::move(learned.co_runs);
  for (const KernelModel& model : models.kernels.all()) ApplyPendingCoRuns(models, model.name);
  models.co_schedule_changes.all = true;
  ++models.co_schedule_version;
  models.pair_changes.all = true;
  ++models.fused_version;
  ++models.version;
}

void ApplyPending(const ModelSet& models, KernelModel& model) {
  const auto found = models.pending_kernels.find(model.name);
  if (found != models.pending_kernels.end()) Apply(found->second, model);
}

void ApplyPendingPairs(ModelSet& models, const std::string& name) {
  for (const LearnedPair& pair : models.pending_pairs) {
    if (pair.kernel != name && pair.neighbour != name) continue;
    const PairKey key{models.kernels.IdOf(pair.kernel), models.kernels.IdOf(pair.neighbour),
                      pair.sms};
    if (key.kernel == 0 || key.neighbour == 0) continue;
    FollowedMean state = pair.speed;
    state.announced = state.mean;
    models.pairs.Restore(key, state);
  }
}

void ApplyPendingCoRuns(ModelSet& models, const std::string& name) {
  for (const LearnedCoRun& run : models.pending_co_runs) {
    if (run.kernel != name && run.neighbour != name) continue;
    const CoRunPair pair{models.kernels.IdOf(run.kernel), models.kernels.IdOf(run.neighbour)};
    if (pair.kernel == 0 || pair.neighbour == 0) continue;
    models.co_schedules.runs().Restore(pair, run.point);
  }
}

}  // namespace gpushare::models
