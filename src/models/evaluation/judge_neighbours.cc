// Judges what counters tell of pairs on partitions: no row of a held-out pair trains the model of
// its kernel, on whatever split. The neighbour's speed on its SMs is known, as in a profile.

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/models/evaluation/judged.h"
#include "src/models/pairs/neighbour_model.h"
#include "src/models/samples/hold_out.h"
#include "src/models/training/neighbour_samples.h"

namespace gpushare::models {
namespace {

bool IsHeldOutPair(const MeasuredNeighbour& pair) {
  return IsHeldOut(absl::StrCat("pair ", pair.kernel, " ", pair.neighbour));
}

}  // namespace

void JudgeNeighbours(const Samples& samples, std::vector<Judged>& out) {
  const std::vector<MeasuredNeighbour> pairs = MeasuredNeighbours(samples);
  std::map<std::string, std::vector<NeighbourSample>> training;
  for (const MeasuredNeighbour& pair : pairs) {
    if (!IsHeldOutPair(pair)) training[pair.kernel].push_back(pair.sample);
  }
  std::map<std::string, NeighbourModel> models;
  for (const auto& [kernel, rows] : training) models[kernel].Fit(rows);
  for (const MeasuredNeighbour& pair : pairs) {
    if (!IsHeldOutPair(pair)) continue;
    const NeighbourModel& model = models[pair.kernel];
    if (!model.known()) continue;
    const FactorPrediction predicted = model.Predict(pair.sample.neighbour, pair.sample.place);
    out.push_back({"pairs on partitions", "ridge over the neighbour's traffic",
                   absl::StrCat(pair.kernel, " on ", pair.sms, " SMs beside ", pair.neighbour),
                   predicted.factor, pair.sample.factor});
  }
}

}  // namespace gpushare::models
