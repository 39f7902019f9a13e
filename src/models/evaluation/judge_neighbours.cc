// Judges what counters tell of pairs on partitions: no row of a held-out pair trains the model of
// its kernel, on whatever split.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/models/evaluation/judged.h"
#include "src/models/neighbour_model.h"
#include "src/models/samples/hold_out.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {
namespace {

// Of a kernel without one of the counters nothing is known.
std::optional<UseOfDevice> UseOf(const SampleRow& row) {
  UseOfDevice use;
  size_t found = 0;
  for (const CounterValue& counter : row.counters) {
    for (const auto& [name, value] :
         {std::pair{"dram", &use.dram}, std::pair{"l2", &use.l2}, std::pair{"tensor", &use.tensor},
          std::pair{"issue", &use.issue}}) {
      if (counter.name != name) continue;
      *value = counter.value;
      ++found;
    }
  }
  constexpr size_t kCounters = 4;
  return found == kCounters ? std::optional(use) : std::nullopt;
}

std::map<std::string, UseOfDevice> UsesOf(const Samples& samples) {
  std::map<std::string, UseOfDevice> uses;
  for (const SampleRow& row : samples.rows) {
    if (row.what != SampleKind::kCounters) continue;
    if (const std::optional<UseOfDevice> use = UseOf(row)) uses[row.kernel] = *use;
  }
  return uses;
}

bool IsHeldOutPair(const SampleRow& row) {
  return IsHeldOut(absl::StrCat("pair ", row.kernel, " ", row.neighbour));
}

}  // namespace

void JudgeNeighbours(const Samples& samples, std::vector<Judged>& out) {
  const std::map<std::string, UseOfDevice> uses = UsesOf(samples);
  std::map<std::string, std::vector<NeighbourSample>> training;
  // The host's clock times a library call of some microseconds, which is too coarse.
  const auto counts = [&](const SampleRow& row) {
    return row.what == SampleKind::kBeside && !row.same_sms && row.form == core::Form::kGraph &&
           !row.ns.empty() && !row.alone_ns.empty() && uses.contains(row.neighbour);
  };
  const auto sample_of = [&](const SampleRow& row) {
    const double share = static_cast<double>(row.neighbour_sms) / samples.head.sm_count;
    return NeighbourSample{uses.at(row.neighbour), share, Median(row.alone_ns) / Median(row.ns)};
  };
  for (const SampleRow& row : samples.rows) {
    if (counts(row) && !IsHeldOutPair(row)) training[row.kernel].push_back(sample_of(row));
  }
  std::map<std::string, NeighbourModel> models;
  for (const auto& [kernel, rows] : training) models[kernel].Fit(rows);
  for (const SampleRow& row : samples.rows) {
    if (!counts(row) || !IsHeldOutPair(row)) continue;
    const NeighbourModel& model = models[row.kernel];
    if (!model.known()) continue;
    const NeighbourSample sample = sample_of(row);
    out.push_back({"pairs on partitions", "ridge over the neighbour's counters",
                   absl::StrCat(row.kernel, " on ", row.sms, " SMs beside ", row.neighbour),
                   model.Predict(sample.neighbour, sample.neighbour_share).factor, sample.factor});
  }
}

}  // namespace gpushare::models
