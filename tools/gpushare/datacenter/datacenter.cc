#include "tools/gpushare/datacenter/datacenter.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/interrupt.h"
#include "tools/gpushare/base/progress.h"
#include "tools/gpushare/colocate/parallel.h"
#include "tools/gpushare/colocate/preflight.h"
#include "tools/gpushare/datacenter/gpu_run.h"
#include "tools/gpushare/datacenter/pair_runs.h"
#include "tools/gpushare/datacenter/placing.h"
#include "tools/gpushare/datacenter/slot.h"
#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

namespace {

// The finished GPUs of a row are saved at most so often. A policy's pairs are saved once all are
// done.
constexpr std::chrono::seconds kSaveInterval{10};
// GPUs that are drawn in one job.
constexpr size_t kDrawnAtOnce = 1'000;
constexpr char kFullTier[] = "block";

DeviceChoice SimulatedDevice(const Warehouse& warehouse, const DatacenterOptions& options) {
  DeviceChoice device;
  device.device = "sim";
  device.tier = options.tier;
  device.profile = warehouse.apps.profile;
  device.seed = warehouse.apps.seed;
  return device;
}

// Such a policy needs a plan for the periodic apps, and arrivals here are not periodic.
void RequireNoPartitions(const std::vector<std::string>& policies) {
  if (std::find(policies.begin(), policies.end(), "partitioned") == policies.end()) return;
  throw InputError(
      "The policy 'partitioned' runs periodic apps by a plan, and a datacenter has no periodic "
      "arrivals; `gpushare colocate` runs it.");
}

class Datacenter {
 public:
  Datacenter(const Warehouse& warehouse, const DatacenterOptions& options)
      : warehouse_(warehouse),
        options_(options),
        device_(SimulatedDevice(warehouse, options)),
        policies_(options.policies.empty() ? warehouse.apps.policies : options.policies),
        threads_(options.threads > 0 ? options.threads
                                     : std::max(1u, std::thread::hardware_concurrency())) {}

  DatacenterResult Execute() {
    RequirePolicies(policies_);
    RequireNoPartitions(policies_);
    Open();
    if (options_.resume) finished_ = options_.resume(made_with_);
    saved_at_ = std::chrono::steady_clock::now();
    try {
      Measure();
    } catch (...) {
      SaveAtTheEnd();
      throw;
    }
    return std::move(out_);
  }

 private:
  void Open() {
    {
      const RuntimeHandle runtime = OpenRuntime(device_, "bare");
      out_.device = FactsOf(runtime.get());
    }
    workloads_ = MakeWorkloads(out_.device);
    Preflight(warehouse_.apps, device_, *workloads_, policies_);
    out_.tier = options_.tier;
    out_.tables = options_.tables;
    out_.seed = warehouse_.apps.seed;
    out_.policies = policies_;
    made_with_ = MadeWith(warehouse_, options_.tier, out_.device.profile);
  }

  size_t Steps() const {
    const size_t services = warehouse_.services.size();
    const auto runs = static_cast<size_t>(warehouse_.table_runs);
    const size_t rows = policies_.size() * warehouse_.placings.size();
    const size_t gpus = options_.tables ? 1 : static_cast<size_t>(warehouse_.gpus);
    return warehouse_.apps.lc.size() + warehouse_.apps.be.size() + services * runs +
           policies_.size() * services * warehouse_.apps.be.size() * runs + rows * gpus +
           policies_.size() * static_cast<size_t>(options_.checked);
  }

  void Measure() {
    progress_ = std::make_unique<Progress>(Steps(), options_.quiet);
    const auto step = [&](const std::string& what) { progress_->Step(what); };
    SlotRunner runner(warehouse_, device_, *workloads_, stop_);
    runner.Measure(PoliciesWithPairs(), threads_, stop_, step);
    const RunContext context{warehouse_, runner, options_.tier, threads_, stop_, step};
    alone_ = RunServicesAlone(context);
    runner.StateAlone(alone_.P99ByService());
    StateServices(runner);
    for (const std::string& policy : policies_) RunPolicy(context, policy);
    progress_.reset();
  }

  // Kept pairs of other policies are saved again beside those of this run.
  size_t PoliciesWithPairs() const {
    std::set<std::string> names(policies_.begin(), policies_.end());
    for (const auto& entry : finished_.pairs) names.insert(entry.first);
    return names.size();
  }

  void StateServices(const SlotRunner& runner) {
    const std::vector<int64_t> gpus = Evenly(warehouse_.gpus, warehouse_.services.size());
    for (size_t i = 0; i < warehouse_.services.size(); ++i) {
      const Service& service = warehouse_.services[i];
      const auto index = static_cast<int32_t>(i);
      out_.services.push_back(
          {service.name, warehouse_.apps.lc[static_cast<size_t>(service.lc)].name, service.load,
           gpus[i], runner.SoloNs(index), runner.P99AloneNs(index)});
    }
  }

  const PairRuns& PairsUnder(const RunContext& context, const std::string& policy) {
    auto found = finished_.pairs.find(policy);
    if (found != finished_.pairs.end()) {
      for (size_t i = 0; i < found->second.slots().size(); ++i) {
        progress_->Step("pairs under " + policy + ", kept");
      }
    } else {
      found = finished_.pairs.emplace(policy, RunPairs(context, policy)).first;
      SaveNow();
    }
    return found->second;
  }

  void RunPolicy(const RunContext& context, const std::string& policy) {
    const PairRuns& pairs = PairsUnder(context, policy);
    const std::vector<std::vector<double>> be_time = pairs.MeanBeTime();
    for (const Placing placing : warehouse_.placings) {
      ThrowIfInterrupted();
      const std::vector<PlacedGpu> placed = PlaceWarehouse(warehouse_, placing, be_time);
      const std::vector<GpuFigures> gpus = options_.tables
                                               ? Draw(context, placed, policy, placing, pairs)
                                               : Simulate(context, placed, policy, placing);
      out_.rows.push_back(Summarise(warehouse_, policy, placing, gpus));
      if (placing == Placing::kRandom && options_.checked > 0) {
        CheckRow(context, policy, placed, gpus);
      }
    }
  }

  std::vector<GpuFigures> Draw(const RunContext& context, const std::vector<PlacedGpu>& placed,
                               const std::string& policy, Placing placing, const PairRuns& pairs) {
    std::vector<GpuFigures> gpus(placed.size());
    const size_t jobs = (placed.size() + kDrawnAtOnce - 1) / kDrawnAtOnce;
    RunParallel(jobs, threads_, stop_, [&](size_t job) {
      const size_t end = std::min(placed.size(), (job + 1) * kDrawnAtOnce);
      ThrowIfInterrupted();
      for (size_t i = job * kDrawnAtOnce; i < end; ++i) {
        gpus[i] = DrawGpu(context, placed[i], alone_, pairs);
      }
    });
    progress_->Step(RowName(policy, placing, warehouse_.gpus));
    return gpus;
  }

  std::vector<GpuFigures> Simulate(const RunContext& context, const std::vector<PlacedGpu>& placed,
                                   const std::string& policy, Placing placing) {
    const std::string row = RowName(policy, placing, warehouse_.gpus);
    std::map<size_t, GpuFigures>& finished = finished_.gpus[row];
    std::vector<size_t> missing;
    for (size_t i = 0; i < placed.size(); ++i) {
      if (finished.count(i) == 0) {
        missing.push_back(i);
      } else {
        progress_->Step(row + ", kept");
      }
    }
    RunParallel(missing.size(), threads_, stop_, [&](size_t job) {
      GpuFigures gpu = SimulateGpu(context, placed[missing[job]], policy);
      const std::lock_guard<std::mutex> lock(mutex_);
      finished.emplace(missing[job], std::move(gpu));
      progress_->Step(row);
      SaveSometimes();
    });
    std::vector<GpuFigures> gpus;
    gpus.reserve(finished.size());
    for (const auto& entry : finished) gpus.push_back(entry.second);
    return gpus;
  }

  void CheckRow(const RunContext& context, const std::string& policy,
                const std::vector<PlacedGpu>& placed, const std::vector<GpuFigures>& gpus) {
    const std::vector<size_t> chosen = EvenlySpaced(placed, static_cast<size_t>(options_.checked));
    RunContext full = context;
    full.tier = kFullTier;
    std::vector<GpuFigures> checked(chosen.size());
    std::vector<GpuFigures> before;
    before.reserve(chosen.size());
    for (const size_t index : chosen) before.push_back(gpus[index]);
    RunParallel(chosen.size(), threads_, stop_, [&](size_t job) {
      checked[job] = SimulateGpu(full, placed[chosen[job]], policy);
      progress_->Step("check of " + policy);
    });
    out_.checks.push_back(Compare(Summarise(warehouse_, policy, Placing::kRandom, before),
                                  Summarise(warehouse_, policy, Placing::kRandom, checked), before,
                                  checked));
  }

  // A failure to save is dropped: the caller gets the failure that stopped the run.
  void SaveAtTheEnd() {
    if (finished_.empty()) return;
    try {
      SaveNow();
    } catch (const std::exception&) {  // what was saved before stays
    }
  }
  // With the mutex, or where no other thread runs.
  void SaveSometimes() {
    if (std::chrono::steady_clock::now() - saved_at_ >= kSaveInterval) SaveNow();
  }
  void SaveNow() {
    if (options_.save) options_.save(finished_, made_with_);
    saved_at_ = std::chrono::steady_clock::now();
  }

  const Warehouse& warehouse_;
  const DatacenterOptions& options_;
  const DeviceChoice device_;
  const std::vector<std::string> policies_;
  const unsigned threads_;
  std::unique_ptr<Workloads> workloads_;
  std::unique_ptr<Progress> progress_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // of finished_ while GPUs run
  std::string made_with_;
  FinishedGpus finished_;
  std::chrono::steady_clock::time_point saved_at_;
  PairRuns alone_;
  DatacenterResult out_;
};

}  // namespace

DatacenterResult RunDatacenter(const Warehouse& warehouse, const DatacenterOptions& options) {
  return Datacenter(warehouse, options).Execute();
}

}  // namespace gpushare::tool
