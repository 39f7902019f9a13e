// The cost-model seam: predict with an error bar, observe with co-residents.
//
// A model answers through three interfaces: Durations (work alone), Neighbours (work beside other
// work on other SMs or on the link) and Overlaps (two kernels on the same SMs). CostModel is the
// three together, with what all of them learn from. A caller takes the interface that it needs.
//
// One thread at a time calls a model: the scheduler's (predict and learn stages), and between two
// of its passes one that reads predictions (Scheduler::ReadModel) or saves and loads. Prediction is
// called for every queue head in every plan: it must not allocate and should take well under a
// microsecond.

#ifndef GPUSHARE_SRC_CORE_SEAMS_COST_MODEL_H_
#define GPUSHARE_SRC_CORE_SEAMS_COST_MODEL_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/limits.h"
#include "src/core/base/types.h"
#include "src/core/seams/device_profile.h"
#include "src/core/seams/kernel.h"

namespace gpushare::core {

struct Prediction {
  int64_t duration_ns = 0;
  int64_t error_ns = 0;  // one standard deviation of the model's recent error
  bool trained = false;  // false: a prior from the kernel's record, the app's hint, or a default
  bool operator==(const Prediction&) const = default;
};

struct TaskFeatures {
  const KernelDesc* kernel = nullptr;  // null for memcpy and opaque work
  TaskKind kind = TaskKind::kKernel;
  uint32_t app = 0;         // opaque work is learned for each app
  int64_t block_tasks = 0;  // kernels
  int64_t bytes = 0;        // copies
  CopyDirection direction = CopyDirection::kNone;
  bool pinned = true;
  int64_t declared_ns = 0;  // opaque work
  AppId app_id = {};        // the app's public identifier
};

// The two parts of a fused kernel, as tasks of the kernels that it was made from.
struct FusedFeatures {
  const FusedKernelDesc* kernel = nullptr;
  int64_t tensor_block_tasks = 0;
  int64_t cuda_block_tasks = 0;
};

// A fused kernel's duration over its TC part's own, as a function of the load ratio (Tacker VI):
// intercept + slope r + bend max(0, r - inflection).
struct FusedCurveView {
  double intercept = 0;
  double slope = 0;
  double bend = 0;
  double inflection = 0;  // the opportune load ratio, where both parts end together
  double error = 1;       // one standard deviation of the relative error
  bool trained = false;   // false: from the kernel's registration, not from measurements

  double At(double load_ratio) const {
    return intercept + slope * load_ratio + bend * std::max(0.0, load_ratio - inflection);
  }
};

// One of two kernels that share every SM.
struct CoResidentSide {
  const KernelDesc* kernel = nullptr;
  int32_t workers_per_sm = 0;
  int64_t block_tasks = 0;
};

// Both start at once; the one that is left runs on alone with the workers that it has.
struct CoResidentPrediction {
  // Speed of each while both run, relative to alone on the whole device with all its workers.
  std::array<double, 2> speed = {};
  double speed_error = 1;            // one standard deviation of the relative error of a speed
  std::array<Prediction, 2> finish;  // from the common start
  bool known = false;                // false: the model cannot predict the pair
};

// A whole query of an app that states the size of its input (Baymax 4.2), in any unit.
struct QueryFeatures {
  AppId app = {};
  double input_size = 0;
};

// A co-resident that ran beside a sample from its start, worst first.
struct CoResident {
  const KernelDesc* kernel = nullptr;
  int32_t sms = 0;        // 0: it came later, or was not alone
  bool same_sms = false;  // on the sample's SMs, so that the sample waited until it had left
};

// A launch of workers on the whole device that had another kernel's workers on the same SMs for
// most of its time, and nothing else.
struct CoRun {
  CoResidentSide own;        // with the block tasks that it executed
  CoResidentSide neighbour;  // as many workers whenever it was there; its block tasks do not count
  double beside_share = 0;   // of the launch's time
};

struct Observation {
  TaskFeatures features;
  Form form = Form::kOriginal;
  int32_t sms = 0;
  int32_t workers = 0;
  int64_t predicted_ns = 0;
  int64_t measured_ns = 0;
  bool evicted = false;  // then measured_ns is the eviction latency
  absl::Span<const CoResident>
      beside;  // empty: a solo sample, the only kind that trains solo models
  // An LC launch beside BE copies alone, all along: their directions. Then `beside` counts as none.
  LinkUse copies = 0;
  // kFused: both parts ended, and measured_ns is the time of the launch. Null otherwise.
  const FusedFeatures* fused = nullptr;
  // Not null: measured_ns is the time of this launch, and it trains co-schedules alone.
  const CoRun* co_run = nullptr;
};

// An LC query of a busy period of which the first launch evicted a BE kernel from its SMs and met
// nothing else.
struct DelayedQuery {
  const KernelDesc* kernel = nullptr;  // of that launch
  bool kernel_trained = false;         // its duration was learned
  const KernelDesc* evicted = nullptr;
  int64_t added_ns = 0;  // how much later than alone the query ended; below 0: earlier
};

// Pairs of kernels of which an answer about the speed beside each other may have changed.
struct PairChanges {
  struct Pair {
    KernelId kernel;
    KernelId neighbour;
    bool operator==(const Pair&) const = default;
  };
  // Beyond so many pairs between two plans the whole table is computed anew.
  static constexpr int kPairsMost = 128;

  bool all = true;  // any pair, and `pairs` does not count
  BoundedList<Pair, kPairsMost> pairs;

  void Note(KernelId kernel, KernelId neighbour) {
    if (all) return;
    const Pair pair = {kernel, neighbour};
    for (int i = pairs.size() - 1; i >= 0; --i) {
      if (pairs[i] == pair) return;
    }
    all = !pairs.TryAdd(pair);
  }
  void Clear() {
    all = false;
    pairs.Clear();
  }
};

// How long work takes alone, and how fast it leaves.
class Durations {
 public:
  virtual ~Durations() = default;

  // Duration alone on the whole device.
  virtual Prediction PredictSolo(const TaskFeatures& features) const = 0;

  // The measured duration alone of a kernel of this name, from a loaded profile; 0: none. A device
  // may ask before the kernel is registered.
  virtual int64_t LearnedSoloNs(const std::string& name) const = 0;

  // Speed on `sms` SMs relative to the whole device.
  virtual double SpeedOn(const KernelDesc& kernel, int32_t sms) const = 0;

  // Duration of all tasks of a query, alone on the whole device. Not `trained`: nothing is known.
  virtual Prediction PredictQuery(const QueryFeatures& query) const = 0;

  // Time from the eviction call until the last worker has left.
  virtual Prediction PredictEviction(const KernelDesc& kernel) const = 0;

  // Mean delay that an eviction of `kernel` adds to the LC query behind it. Less than the eviction
  // latency, because SMs become free one by one; more where caches are cold, or where what is left
  // of it slows several launches of the query.
  virtual Prediction PredictBlocking(const KernelDesc& kernel) const = 0;
};

// What work loses to a neighbour on other SMs (partitions share DRAM and L2), and to copies.
class Neighbours {
 public:
  virtual ~Neighbours() = default;

  // Factor on the speed of `kernel` on `sms` SMs while `neighbour` runs on `neighbour_sms` others;
  // 1 is undisturbed.
  virtual double SpeedBeside(const KernelDesc& kernel, int32_t sms, const KernelDesc& neighbour,
                             int32_t neighbour_sms) const = 0;

  // One standard deviation of that factor, where it was predicted; 0 where it was measured.
  virtual double ErrorBeside(const KernelDesc& kernel, int32_t sms, const KernelDesc& neighbour,
                             int32_t neighbour_sms) const = 0;

  // Whether that factor was measured or follows from the neighbour's counters or demands. Otherwise
  // the effect of the neighbour is unknown.
  virtual bool KnowsBeside(const KernelDesc& kernel, int32_t sms,
                           const KernelDesc& neighbour) const = 0;

  // Records a trial of the two that gave no measurement: the factor counts as known.
  virtual void GiveUpBeside(const KernelDesc& kernel, int32_t sms, const KernelDesc& neighbour,
                            double factor) = 0;

  // Pairs whose answers of SpeedBeside, ErrorBeside or KnowsBeside may have changed since the last
  // call.
  virtual void TakePairChanges(PairChanges& out) = 0;

  // The factor on the speed of `kernel` while BE copies run in these directions, less one error
  // bar; 1: nothing is known to be lost.
  virtual double SpeedBesideCopies(const KernelDesc& kernel, LinkUse copies) const = 0;
};

// Two kernels on the same SMs: fused into one launch, or as workers side by side.
class Overlaps {
 public:
  virtual ~Overlaps() = default;

  // Duration of a fused launch of both parts on the whole device, and the curve that it is from.
  virtual Prediction PredictFused(const FusedFeatures& features) const = 0;
  virtual FusedCurveView CurveOf(const FusedKernelDesc& kernel) const = 0;

  // Speeds and finish times of two kernels whose workers share every SM.
  virtual CoResidentPrediction PredictCoResident(const CoResidentSide& first,
                                                 const CoResidentSide& second) const = 0;

  // Change whenever a prediction of fused work, or of a co-schedule, may have changed.
  virtual uint64_t fused_version() const = 0;
  virtual uint64_t co_schedule_version() const = 0;

  // Pairs whose co-schedules may have changed since the last call, in any order of the two.
  virtual void TakeCoScheduleChanges(PairChanges& out) = 0;
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  CostModel(const CostModel&) = delete;
  CostModel& operator=(const CostModel&) = delete;

  const Durations& durations() const { return durations_; }
  const Neighbours& neighbours() const { return neighbours_; }
  Neighbours& neighbours() { return neighbours_; }
  const Overlaps& overlaps() const { return overlaps_; }
  Overlaps& overlaps() { return overlaps_; }

  // What the model predicts. An app is an LC app, added before its first query; what was learned of
  // an app of this name counts for it.
  virtual void AddKernel(const KernelDesc& kernel) = 0;
  virtual void AddFusedKernel(const FusedKernelDesc& kernel) = 0;
  virtual void AddApp(AppId app, const std::string& name) = 0;

  // What the model learns from. A query ran alone and took `measured_ns` on the device.
  virtual void Observe(const Observation& observation) = 0;
  virtual void ObserveQuery(const QueryFeatures& query, int64_t measured_ns) = 0;
  virtual void ObserveDelay(const DelayedQuery& query) = 0;

  // Changes whenever a prediction that Overlaps does not version may have changed by more than the
  // refit threshold; lets the predict stage keep derived tables.
  virtual uint64_t version() const = 0;

  // A sentence for the log, given once; empty: none. Asked for when version() has changed.
  virtual std::string TakeReport() = 0;

  // Answers of the application's own model that were not used.
  virtual int64_t AnswersRefused() const = 0;

  // Mean absolute relative error of solo predictions so far, and how many samples it is over.
  virtual double MeanRelativeError(int64_t* samples) const = 0;

  // A bounded JSON text of what was learned. Load is all or nothing.
  virtual std::string Save() const = 0;
  virtual absl::Status Load(const std::string& text) = 0;

 protected:
  // Parts of the derived object, which outlive the calls on it.
  CostModel(const Durations& durations, Neighbours& neighbours, Overlaps& overlaps)
      : durations_(durations), neighbours_(neighbours), overlaps_(overlaps) {}

 private:
  const Durations& durations_;
  Neighbours& neighbours_;
  Overlaps& overlaps_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_COST_MODEL_H_
