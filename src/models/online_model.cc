// The online cost model; see online_model.h.
//
// Per kernel a line over block tasks and an eviction model, per direction and pinnedness of copies
// a line over bytes, per app a bound of opaque work. Registration (AddKernel) and Load allocate;
// predictions do not.

#include "src/models/online_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/core/base/limits.h"
#include "src/models/eviction_model.h"
#include "src/models/json_fields.h"
#include "src/models/linear_model.h"
#include "src/models/pair_model.h"
#include "src/models/profile.h"
#include "src/models/scaling.h"

namespace gpushare::models {
namespace {

using core::CopyDirection;
using core::CostModel;
using core::DeviceProfile;
using core::Form;
using core::GraphNode;
using core::KernelDesc;
using core::Observation;
using core::Prediction;
using core::TaskFeatures;
using core::TaskKind;

// A kernel or region of which nothing is known; replaced after its first run.
constexpr double kUnknownDurationNs = 100000;
// A query that waits for an eviction is held up for no more than so many of its p99.
constexpr double kBlockingOfEviction = 2;
// A blocking time that moves by this moves no plan.
constexpr double kAnnouncedBlockingNs = 2000;
constexpr int64_t kSchemaVersion = 1;

// --- priors
// ----------------------------------------------------------------------------------------

// Nodes follow one another with a gap between each two.
double GraphPrior(const core::SimulationRecord& record) {
  double total = 0;
  int64_t nodes = 0;
  for (const GraphNode& node : record.nodes) {
    total += static_cast<double>(node.duration_ns) * node.repeat;
    nodes += node.repeat;
  }
  return total + static_cast<double>(record.node_gap_ns) * static_cast<double>(nodes - 1);
}

// What is fixed of a kernel's prior, so that predicting takes a few operations.
struct KernelPrior {
  double constant_ns = 0;    // graphs, hints
  double block_task_ns = 0;  // else: rounds of block tasks
  int64_t concurrent = 1;    // block tasks that the whole device runs at once

  KernelPrior() = default;
  KernelPrior(const DeviceProfile& device, const KernelDesc& kernel) {
    const core::SimulationRecord& record = kernel.simulation;
    if (record.present && !record.nodes.empty()) {
      constant_ns = GraphPrior(record);
    } else if (record.present && record.block_task_ns > 0) {
      block_task_ns = static_cast<double>(record.block_task_ns);
      concurrent =
          std::max<int64_t>(1, static_cast<int64_t>(device.sm_count) * kernel.workers_per_sm_max);
    } else {
      const double hint = static_cast<double>(kernel.solo_hint_ns);
      constant_ns = hint > 0 ? hint : kUnknownDurationNs;
    }
  }
  double At(int64_t block_tasks) const {
    if (block_task_ns <= 0) return constant_ns;
    const int64_t tasks = std::max<int64_t>(1, block_tasks);
    const int64_t rounds = (tasks - 1) / concurrent + 1;
    return block_task_ns * static_cast<double>(rounds);
  }
};

// Latency plus bytes over the link's rate (hardware.md, "Copies").
double CopyPrior(const DeviceProfile& device, CopyDirection direction, bool pinned, double bytes) {
  double rate = device.pinned_bytes_per_ns;
  if (!pinned && direction == CopyDirection::kHostToDevice) rate = device.pageable_h2d_bytes_per_ns;
  if (!pinned && direction == CopyDirection::kDeviceToHost) rate = device.pageable_d2h_bytes_per_ns;
  return static_cast<double>(device.copy_latency_ns) + bytes / rate;
}

// --- what a file keeps
// -----------------------------------------------------------------------------

struct LearnedKernel {
  std::string name;
  LinearState solo;
  EvictionState eviction;
  FollowedMean blocking;
};

struct LearnedPair {
  std::string kernel;
  std::string neighbour;
  int32_t sms = 0;
  FollowedMean speed;
};

struct LearnedCopies {
  int32_t direction = 0;
  bool pinned = false;
  LinearState line;
};

struct Learned {
  std::vector<LearnedKernel> kernels;
  std::vector<LearnedCopies> copies;
  std::vector<LearnedPair> pairs;
};

constexpr double kMaxCount = 9e15;
constexpr double kMaxX = static_cast<double>(core::kMaxCopyBytes);
constexpr double kMaxNs = static_cast<double>(core::kMaxDurationNs);
// Weights are 1 / y^2 with y of at least 1 ns and forgetting over 64 samples.
constexpr double kMaxWeight = 1e3;
constexpr double kMaxCovariance = kMaxWeight * kMaxX * kMaxX;

const Field<LinearState> kLinearFields[] = {
    {"samples", &LinearState::samples, 0, kMaxCount},
    {"weight", &LinearState::weight, 0, kMaxWeight},
    {"mean_x", &LinearState::mean_x, 0, kMaxX},
    {"mean_y_ns", &LinearState::mean_y_ns, 0, kMaxNs},
    {"mean_base_ns", &LinearState::mean_base_ns, 0, kMaxNs},
    {"covariance_xx", &LinearState::covariance_xx, 0, kMaxCovariance},
    {"covariance_xy", &LinearState::covariance_xy, -kMaxCovariance, kMaxCovariance},
    {"has_line", &LinearState::has_line},
    {"line_intercept_ns", &LinearState::line_intercept_ns, -kMaxNs, kMaxNs},
    {"line_slope_ns", &LinearState::line_slope_ns, 0, kMaxNs},
    {"squared_error", &LinearState::squared_error, 0, 1},
    {"refits", &LinearState::refits, 0, kMaxCount},
};

const Field<EvictionState> kEvictionFields[] = {
    {"mean_ns", &EvictionState::mean_ns, 0, kMaxNs},
    {"error_ns", &EvictionState::error_ns, 0, kMaxNs},
    {"trained", &EvictionState::trained},
};

constexpr double kMaxFactor = 10;
constexpr double kMaxSms = 4096;

const Field<FollowedMean> kFactorFields[] = {
    {"samples", &FollowedMean::samples, 0, kMaxCount},
    {"mean", &FollowedMean::mean, 0, kMaxFactor},
};

const Field<FollowedMean> kTimeFields[] = {
    {"samples", &FollowedMean::samples, 0, kMaxCount},
    {"mean", &FollowedMean::mean, 0, kMaxNs},
};

const Field<LearnedPair> kLearnedPairFields[] = {
    {"kernel", &LearnedPair::kernel, 1, core::kMaxNameBytes},
    {"neighbour", &LearnedPair::neighbour, 1, core::kMaxNameBytes},
    {"sms", &LearnedPair::sms, 1, kMaxSms},
    {"speed",
     Field<LearnedPair>::Custom{
         [](const Json& value, const JsonPath& path, LearnedPair& out) {
           return ReadObject<FollowedMean>(kFactorFields, value, path, out.speed);
         },
         [](const LearnedPair& in) { return WriteObject<FollowedMean>(kFactorFields, in.speed); }}},
};

const Field<LearnedKernel> kLearnedKernelFields[] = {
    {"name", &LearnedKernel::name, 1, core::kMaxNameBytes},
    {"blocking", Field<LearnedKernel>::Custom{
                     [](const Json& value, const JsonPath& path, LearnedKernel& out) {
                       return ReadObject<FollowedMean>(kTimeFields, value, path, out.blocking);
                     },
                     [](const LearnedKernel& in) {
                       return WriteObject<FollowedMean>(kTimeFields, in.blocking);
                     }}},
    {"solo",
     Field<LearnedKernel>::Custom{
         [](const Json& value, const JsonPath& path, LearnedKernel& out) {
           return ReadObject<LinearState>(kLinearFields, value, path, out.solo);
         },
         [](const LearnedKernel& in) { return WriteObject<LinearState>(kLinearFields, in.solo); }}},
    {"eviction", Field<LearnedKernel>::Custom{
                     [](const Json& value, const JsonPath& path, LearnedKernel& out) {
                       return ReadObject<EvictionState>(kEvictionFields, value, path, out.eviction);
                     },
                     [](const LearnedKernel& in) {
                       return WriteObject<EvictionState>(kEvictionFields, in.eviction);
                     }}},
};

const Field<LearnedCopies> kLearnedCopiesFields[] = {
    {"direction", &LearnedCopies::direction, 0, 3},
    {"pinned", &LearnedCopies::pinned},
    {"line",
     Field<LearnedCopies>::Custom{
         [](const Json& value, const JsonPath& path, LearnedCopies& out) {
           return ReadObject<LinearState>(kLinearFields, value, path, out.line);
         },
         [](const LearnedCopies& in) { return WriteObject<LinearState>(kLinearFields, in.line); }}},
};

template <class Element, std::vector<Element> Learned::*kMember>
absl::Status ReadElements(absl::Span<const Field<Element>> fields, const Json& value,
                          const JsonPath& path, Learned& out) {
  const size_t most = std::is_same_v<Element, LearnedPair> ? kMaxPairs : core::kMaxKernels;
  return ReadArray(value, path, most, [&](const Json& element, const JsonPath& at) {
    (out.*kMember).emplace_back();
    return ReadObject<Element>(fields, element, at, (out.*kMember).back());
  });
}

template <class Element>
Json WriteElements(absl::Span<const Field<Element>> fields, const std::vector<Element>& elements) {
  Json array = Json::array();
  for (const Element& element : elements) array.push_back(WriteObject<Element>(fields, element));
  return array;
}

absl::Status ReadVersion(const Json& value, const JsonPath& path, Learned&) {
  if (value.is_number_integer() && value.get<int64_t>() == kSchemaVersion) return absl::OkStatus();
  return WrongType(path, value, absl::StrCat(kSchemaVersion, ", the version that is read here"));
}

const Field<Learned> kLearnedFields[] = {
    {"schema_version",
     Field<Learned>::Custom{ReadVersion, [](const Learned&) { return Json(kSchemaVersion); }}},
    {"kernels", Field<Learned>::Custom{[](const Json& value, const JsonPath& path, Learned& out) {
                                         return ReadElements<LearnedKernel, &Learned::kernels>(
                                             kLearnedKernelFields, value, path, out);
                                       },
                                       [](const Learned& in) {
                                         return WriteElements<LearnedKernel>(kLearnedKernelFields,
                                                                             in.kernels);
                                       }}},
    {"copies", Field<Learned>::Custom{[](const Json& value, const JsonPath& path, Learned& out) {
                                        return ReadElements<LearnedCopies, &Learned::copies>(
                                            kLearnedCopiesFields, value, path, out);
                                      },
                                      [](const Learned& in) {
                                        return WriteElements<LearnedCopies>(kLearnedCopiesFields,
                                                                            in.copies);
                                      }}},
    {"pairs", Field<Learned>::Custom{[](const Json& value, const JsonPath& path, Learned& out) {
                                       return ReadElements<LearnedPair, &Learned::pairs>(
                                           kLearnedPairFields, value, path, out);
                                     },
                                     [](const Learned& in) {
                                       return WriteElements<LearnedPair>(kLearnedPairFields,
                                                                         in.pairs);
                                     }}},
};

absl::StatusOr<Learned> ParseLearned(const std::string& text) {
  absl::StatusOr<Json> json = ParseStrictJson(text, "The learned model", kLearnedBytesMax);
  if (!json.ok()) return json.status();
  Learned learned;
  absl::Status status = ReadObject<Learned>(kLearnedFields, *json, "", learned);
  if (!status.ok()) return status;
  if (!json->contains("schema_version")) {
    return KeyError("schema_version", "is missing, and a learned model must have it.");
  }
  for (size_t i = 0; i < learned.kernels.size(); ++i) {
    if (learned.kernels[i].name.empty()) {
      return KeyError(absl::StrCat("kernels[", i, "]"), "needs a 'name'.");
    }
  }
  return learned;
}

// --- the model
// -------------------------------------------------------------------------------------

struct KernelModel {
  std::string name;
  KernelPrior prior;
  LinearModel solo;
  EvictionModel eviction;
  FollowedMean blocking;  // what its evictions added to LC launches, ns
};

// Opaque work of one app: a line through 0 over the declared bound, or over 1 where none is.
struct AppModel {
  uint32_t app = 0;
  LinearModel declared;
  LinearModel undeclared;
};

class OnlineModel final : public CostModel {
 public:
  explicit OnlineModel(const DeviceProfile& device) : device_(device) {
    by_id_.reserve(core::kMaxKernels);
  }

  void AddKernel(const KernelDesc& kernel) override {
    KernelModel model{kernel.name, KernelPrior(device_, kernel), LinearModel(),
                      EvictionModel(EvictionPrior(device_, kernel)), FollowedMean()};
    const auto learned = pending_.find(kernel.name);
    if (learned != pending_.end()) Apply(learned->second, model);
    const auto known = by_id_.find(kernel.id.value);
    if (known != by_id_.end()) {
      *known->second = std::move(model);
    } else if (kernels_.size() < core::kMaxKernels) {
      kernels_.push_back(std::move(model));
      by_id_.emplace(kernel.id.value, &kernels_.back());
    }
    ApplyPairs(kernel.name);
    ++version_;
  }

  Prediction PredictSolo(const TaskFeatures& features) const override {
    if (features.kind == TaskKind::kMemcpy) {
      const double bytes = static_cast<double>(features.bytes);
      return Copies(features.direction, features.pinned)
          .Predict(bytes, CopyPrior(device_, features.direction, features.pinned, bytes));
    }
    if (features.kernel == nullptr) return PredictOpaque(features);
    const double tasks = static_cast<double>(features.block_tasks);
    const KernelModel* model = Find(*features.kernel);
    if (model == nullptr) {
      const KernelPrior prior(device_, *features.kernel);
      return LinearModel().Predict(tasks, prior.At(features.block_tasks));
    }
    return model->solo.Predict(tasks, model->prior.At(features.block_tasks));
  }

  Prediction PredictEviction(const KernelDesc& kernel) const override {
    if (!kernel.evictable) return {core::kNever, 0, false};
    const KernelModel* model = Find(kernel);
    if (model != nullptr) return model->eviction.Predict();
    return EvictionModel(EvictionPrior(device_, kernel)).Predict();
  }

  Prediction PredictBlocking(const KernelDesc& kernel) const override {
    const KernelModel* model = Find(kernel);
    if (!kernel.evictable || model == nullptr || !model->blocking.trusted()) {
      return PredictEviction(kernel);
    }
    return {static_cast<int64_t>(model->blocking.mean), 0, true};
  }

  double SpeedOn(const KernelDesc& kernel, int32_t sms) const override {
    return SpeedOnSms(kernel, sms, device_.sm_count);
  }

  double SpeedBeside(const KernelDesc& kernel, int32_t sms, const KernelDesc& neighbour,
                     int32_t neighbour_sms) const override {
    const double measured = pairs_.SpeedOf({kernel.id.value, neighbour.id.value, sms});
    if (measured > 0) return measured;
    return SpeedBesideNeighbour({&kernel, sms}, {&neighbour, neighbour_sms}, device_.sm_count);
  }

  void Observe(const Observation& observation) override {
    if (observation.measured_ns < 0 || observation.measured_ns > core::kMaxDurationNs) return;
    if (observation.evicted) {
      KernelModel* model = FindMutable(observation.features.kernel);
      if (model != nullptr &&
          model->eviction.Observe(static_cast<double>(observation.measured_ns))) {
        ++version_;
      }
      return;
    }
    if (!observation.beside.empty()) {  // it says nothing about running alone
      if (ObserveBeside(observation, observation.beside.front())) ++version_;
      return;
    }
    const double measured_ns = WholeDeviceNs(observation);
    if (measured_ns <= 0) return;
    Count(observation, measured_ns);
    if (Train(observation.features, measured_ns)) ++version_;
  }

  uint64_t version() const override { return version_; }

  double MeanRelativeError(int64_t* samples) const override {
    if (samples != nullptr) *samples = error_samples_;
    return error_samples_ == 0 ? 0 : error_sum_ / static_cast<double>(error_samples_);
  }

  std::string Save() const override {
    Learned learned;
    for (const KernelModel& model : kernels_) {
      if (model.solo.state().samples == 0 && !model.eviction.state().trained &&
          model.blocking.samples == 0) {
        continue;
      }
      learned.kernels.push_back(
          {model.name, model.solo.state(), model.eviction.state(), model.blocking});
    }
    SavePairs(learned.pairs);
    // What was loaded for kernels that this run never registered is kept for the next.
    for (const auto& [name, kernel] : pending_) {
      const bool registered =
          std::any_of(kernels_.begin(), kernels_.end(),
                      [&known = name](const KernelModel& model) { return model.name == known; });
      if (!registered && learned.kernels.size() < core::kMaxKernels) {
        learned.kernels.push_back(kernel);
      }
    }
    for (int32_t direction = 0; direction < 4; ++direction) {
      for (bool pinned : {false, true}) {
        const LinearState& line = Copies(static_cast<CopyDirection>(direction), pinned).state();
        if (line.samples > 0) learned.copies.push_back({direction, pinned, line});
      }
    }
    return WriteObject<Learned>(kLearnedFields, learned)
        .dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  absl::Status Load(const std::string& text) override {
    absl::StatusOr<Learned> learned = ParseLearned(text);
    if (!learned.ok()) return learned.status();
    pending_.clear();
    for (LearnedKernel& kernel : learned->kernels) pending_[kernel.name] = std::move(kernel);
    for (KernelModel& model : kernels_) {
      const auto found = pending_.find(model.name);
      if (found != pending_.end()) Apply(found->second, model);
    }
    pending_pairs_ = std::move(learned->pairs);
    for (const KernelModel& model : kernels_) ApplyPairs(model.name);
    for (const LearnedCopies& copies : learned->copies) {
      Copies(static_cast<CopyDirection>(copies.direction), copies.pinned).Restore(copies.line);
    }
    ++version_;
    return absl::OkStatus();
  }

 private:
  static void Apply(const LearnedKernel& learned, KernelModel& model) {
    model.solo.Restore(learned.solo);
    if (learned.eviction.trained) model.eviction.Restore(learned.eviction);
    model.blocking = learned.blocking;
    model.blocking.announced = learned.blocking.mean;
  }

  uint32_t IdOf(const std::string& name) const {
    for (const auto& [id, model] : by_id_) {
      if (model->name == name) return id;
    }
    return 0;
  }

  // What was loaded of pairs with the kernel, now that it is registered.
  void ApplyPairs(const std::string& name) {
    for (const LearnedPair& pair : pending_pairs_) {
      if (pair.kernel != name && pair.neighbour != name) continue;
      const PairKey key{IdOf(pair.kernel), IdOf(pair.neighbour), pair.sms};
      if (key.kernel == 0 || key.neighbour == 0) continue;
      FollowedMean state = pair.speed;
      state.announced = state.mean;
      pairs_.Restore(key, state);
    }
  }

  // Sorted, so that the text of one state is one text; with what waits for its kernels.
  void SavePairs(std::vector<LearnedPair>& out) const {
    for (const auto& [key, state] : pairs_.speeds()) {
      const auto kernel = by_id_.find(key.kernel);
      const auto neighbour = by_id_.find(key.neighbour);
      if (kernel == by_id_.end() || neighbour == by_id_.end()) continue;
      out.push_back({kernel->second->name, neighbour->second->name, key.sms, state});
    }
    for (const LearnedPair& pair : pending_pairs_) {
      const bool registered = IdOf(pair.kernel) != 0 && IdOf(pair.neighbour) != 0;
      if (!registered && out.size() < kMaxPairs) out.push_back(pair);
    }
    std::sort(out.begin(), out.end(), [](const LearnedPair& a, const LearnedPair& b) {
      return std::tie(a.kernel, a.neighbour, a.sms) < std::tie(b.kernel, b.neighbour, b.sms);
    });
  }

  // An LC launch that began while one BE kernel was there: on other SMs all along, or on its own
  // until it had left.
  bool ObserveBeside(const Observation& observation, const core::CoResident& beside) {
    const KernelDesc* kernel = observation.features.kernel;
    if (kernel == nullptr || beside.kernel == nullptr || observation.measured_ns <= 0) return false;
    const PairKey key{kernel->id.value, beside.kernel->id.value, observation.sms};
    const Prediction solo = PredictSolo(observation.features);
    // Else a bad guess would pass for what the neighbour does.
    const bool known = solo.trained || kernel->simulation.present || kernel->solo_hint_ns > 0;
    if (!known) return false;
    double alone_ns = static_cast<double>(solo.duration_ns) / SpeedOn(*kernel, observation.sms);
    const double measured_ns = static_cast<double>(observation.measured_ns);
    if (!beside.same_sms) {
      return beside.sms > 0 && pairs_.ObserveSpeed(key, alone_ns / measured_ns);
    }
    KernelModel* neighbour = FindMutable(beside.kernel);
    if (neighbour == nullptr || !beside.kernel->evictable) return false;
    if (const double speed = pairs_.SpeedOf(key); beside.sms > 0 && speed > 0) alone_ns /= speed;
    // Far beyond what an eviction takes, it was something else that held the query up; one such
    // sample must not keep the neighbour out, for then no better ones would come.
    const Prediction eviction = neighbour->eviction.Predict();
    const double added_most_ns =
        kBlockingOfEviction * static_cast<double>(eviction.duration_ns + 2 * eviction.error_ns);
    const double added_ns = std::clamp(measured_ns - alone_ns, 0.0, added_most_ns);
    return neighbour->blocking.Observe(std::min(added_ns, kMaxNs), kAnnouncedBlockingNs);
  }

  const KernelModel* Find(const KernelDesc& kernel) const {
    const auto found = by_id_.find(kernel.id.value);
    return found == by_id_.end() ? nullptr : found->second;
  }
  KernelModel* FindMutable(const KernelDesc* kernel) {
    if (kernel == nullptr) return nullptr;
    const auto found = by_id_.find(kernel->id.value);
    return found == by_id_.end() ? nullptr : found->second;
  }

  const LinearModel& Copies(CopyDirection direction, bool pinned) const {
    return copies_[(static_cast<size_t>(direction) & 3) * 2 + (pinned ? 1 : 0)];
  }
  LinearModel& Copies(CopyDirection direction, bool pinned) {
    return copies_[(static_cast<size_t>(direction) & 3) * 2 + (pinned ? 1 : 0)];
  }

  // An app's slot is its number modulo the table; another app in it means that it was released.
  const AppModel& App(uint32_t app) const { return apps_[app % core::kMaxApps]; }

  // The declared bound is charged until there are measurements; then what it was worth so far.
  Prediction PredictOpaque(const TaskFeatures& features) const {
    static const LinearModel kUntrained;
    const AppModel& app = App(features.app);
    const bool known = app.app == features.app;
    if (features.declared_ns <= 0) {
      return (known ? app.undeclared : kUntrained).Predict(1, kUnknownDurationNs);
    }
    const double declared = static_cast<double>(features.declared_ns);
    Prediction prediction = (known ? app.declared : kUntrained).Predict(declared, declared);
    // Before that the bound stands as it was stated: nobody declares a mean.
    if (!prediction.trained) prediction = {features.declared_ns, 0, false};
    return prediction;
  }

  // The duration that the whole device would have shown; 0 when the sample cannot tell.
  double WholeDeviceNs(const Observation& observation) const {
    const double measured = static_cast<double>(observation.measured_ns);
    const KernelDesc* kernel = observation.features.kernel;
    if (kernel == nullptr || observation.sms <= 0) return measured;
    const bool capped = observation.form == Form::kWorkers && observation.workers > 0 &&
                        observation.workers < observation.sms * kernel->workers_per_sm_max &&
                        observation.workers < observation.features.block_tasks;
    if (capped || observation.form == Form::kFused) return 0;
    if (observation.sms >= device_.sm_count) return measured;
    return measured * SpeedOnSms(*kernel, observation.sms, device_.sm_count);
  }

  // The prediction that was made when the task was planned, where it was for the whole device.
  void Count(const Observation& observation, double measured_ns) {
    const bool whole = observation.sms <= 0 || observation.sms >= device_.sm_count;
    const int64_t predicted = whole && observation.predicted_ns > 0
                                  ? observation.predicted_ns
                                  : PredictSolo(observation.features).duration_ns;
    error_sum_ += std::abs(static_cast<double>(predicted) - measured_ns) / measured_ns;
    ++error_samples_;
  }

  bool Train(const TaskFeatures& features, double measured_ns) {
    if (features.kind == TaskKind::kMemcpy) {
      const double bytes = static_cast<double>(features.bytes);
      return Copies(features.direction, features.pinned)
          .Observe(bytes, measured_ns,
                   CopyPrior(device_, features.direction, features.pinned, bytes));
    }
    if (features.kernel != nullptr) {
      KernelModel* model = FindMutable(features.kernel);
      return model != nullptr &&
             model->solo.Observe(static_cast<double>(features.block_tasks), measured_ns,
                                 model->prior.At(features.block_tasks));
    }
    AppModel& app = apps_[features.app % core::kMaxApps];
    if (app.app != features.app) app = AppModel{features.app, {}, {}};
    if (features.declared_ns <= 0)
      return app.undeclared.Observe(1, measured_ns, kUnknownDurationNs);
    const double declared = static_cast<double>(features.declared_ns);
    return app.declared.Observe(declared, measured_ns, declared);
  }

  DeviceProfile device_;
  std::deque<KernelModel> kernels_;  // stable addresses
  std::unordered_map<uint32_t, KernelModel*> by_id_;
  std::map<std::string, LearnedKernel> pending_;  // loaded, by kernel name
  std::vector<LearnedPair> pending_pairs_;
  PairModel pairs_;
  std::array<LinearModel, 8> copies_;
  std::array<AppModel, core::kMaxApps> apps_;
  uint64_t version_ = 1;
  double error_sum_ = 0;
  int64_t error_samples_ = 0;
};

}  // namespace

std::unique_ptr<CostModel> MakeOnlineModel(const DeviceProfile& device) {
  return std::make_unique<OnlineModel>(device);
}

}  // namespace gpushare::models
