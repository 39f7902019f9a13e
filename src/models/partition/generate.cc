// Random task sets. See generate.h.

#include "src/models/partition/generate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpushare::models::partition {
namespace {

// The thesis names 50 and 4000 alone; the others are ours, and their least common multiple is 4000.
// Four other lists moved the rates by at most 0.1 (docs/partition-planner.md).
constexpr std::array<int64_t, 10> kPeriodsMs = {50, 100, 200, 250, 400, 500, 800, 1000, 2000, 4000};
constexpr int64_t kNsPerMs = 1'000'000;
constexpr double kDeadlineOverPeriod = 0.75;

// By kind, compute first (3.6.1).
constexpr std::array<double, kKinds> kSerialShare = {0.02, 0.1};
constexpr std::array<double, kKinds> kConflictFactor = {1.2, 2.3};

double SerialShareOf(const GeneratorOptions& options, Kind kind) {
  const double printed = kSerialShare[static_cast<size_t>(kind)];
  return options.serial_share == SerialShare::kPrinted ? printed : printed / options.sms;
}

void DrawUtilisations(double sum, core::Random& random, std::vector<double>& out) {
  for (size_t i = 0; i + 1 < out.size(); ++i) {
    const auto left = static_cast<double>(out.size() - 1 - i);
    const double next = sum * std::pow(random.Uniform(), 1 / left);
    out[i] = sum - next;
    sum = next;
  }
  out.back() = sum;
}

std::vector<WorstCase> Scaled(std::vector<WorstCase> curve, double factor) {
  for (WorstCase& point : curve) {
    point.ns = static_cast<int64_t>(std::ceil(static_cast<double>(point.ns) * factor));
  }
  return curve;
}

}  // namespace

TaskSet Generate(const GeneratorOptions& options, core::Random& random) {
  std::vector<Kind> kinds(static_cast<size_t>(options.tasks));
  std::vector<double> utilisations(kinds.size());
  for (Kind& kind : kinds) {
    kind = random.Uniform() > options.memory_share ? Kind::kCompute : Kind::kMemory;
  }
  bool runnable = false;
  for (int tries = 0; tries < kGeneratorTriesMax && !runnable; ++tries) {
    DrawUtilisations(options.utilisation, random, utilisations);
    runnable = true;
    for (size_t i = 0; i < kinds.size(); ++i) {
      const double least = 1.0 / options.sms + SerialShareOf(options, kinds[i]);
      // A nanosecond of rounding up is less than 1e-7 of any deadline here.
      if (utilisations[i] * least > kDeadlineOverPeriod * (1 - 1e-7)) runnable = false;
    }
  }
  TaskSet set = {.sms = options.sms, .grain = options.grain, .tasks = {}};
  if (!runnable) return set;
  const auto eviction_ns = static_cast<int64_t>(options.eviction_share *
                                                static_cast<double>(kPeriodsMs.front() * kNsPerMs));
  for (size_t i = 0; i < kinds.size(); ++i) {
    const auto pick = static_cast<size_t>(random.Uniform() * kPeriodsMs.size());
    const int64_t period_ns = kPeriodsMs[std::min(pick, kPeriodsMs.size() - 1)] * kNsPerMs;
    const double a_ns = utilisations[i] * static_cast<double>(period_ns);
    Task task = {
        .name = "task" + std::to_string(i),
        .period_ns = period_ns,
        .deadline_ns = static_cast<int64_t>(kDeadlineOverPeriod * static_cast<double>(period_ns)),
        .kind = kinds[i],
        .alone = WorstCasesOfLine(a_ns, a_ns * SerialShareOf(options, kinds[i]), options.sms),
        .evictable = options.evictable,
        .eviction_ns = options.evictable ? eviction_ns : 0};
    task.in_conflict = Scaled(task.alone, kConflictFactor[static_cast<size_t>(kinds[i])]);
    set.tasks.push_back(std::move(task));
  }
  return set;
}

}  // namespace gpushare::models::partition
