// What is asked for and what is known; see work.h.

#include "src/calibration/stages/work.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/calibration/pairs/fused.h"
#include "src/calibration/profile/profile.h"
#include "src/core/base/status.h"

namespace gpushare::models {

void CalibrationWork::Assign(std::vector<CalibrationItem> items,
                             const core::DeviceCapabilities& capabilities) {
  items_ = std::move(items);
  for (const CalibrationItem& item : items_) {
    digests_.push_back(DigestOf(item, capabilities.profile));
  }
  kept_.assign(items_.size(), false);
  checkpoint_.device = capabilities.profile;
  FindPairs(capabilities);
}

// LC kernels are graphs and library calls, BE kernels evictable ones.
void CalibrationWork::FindPairs(const core::DeviceCapabilities& capabilities) {
  if (!capabilities.eviction) return;
  for (size_t first = 0; first < items_.size(); ++first) {
    const bool kernel = items_[first].has_block_tasks();
    if (kernel && !items_[first].kernel.evictable) continue;
    for (size_t second = kernel ? first + 1 : 0; second < items_.size(); ++second) {
      if (!items_[second].kernel.evictable) continue;
      co_residents_.push_back({first, second});
      if (!kernel && capabilities.partitions) pairs_.push_back({first, second});
    }
  }
}

void CalibrationWork::ResumeFrom(Checkpoint found, const CalibrationSize& asked) {
  checkpoint_ = std::move(found);
  Prune(asked);
  for (size_t i = 0; i < items_.size(); ++i) {
    const KernelMeasurement* const known = KernelOf(i);
    if (known == nullptr) continue;
    // The line in the file may have been changed.
    kept_[i] = CheckMeasurement(i, *known).ok();
    if (!kept_[i]) checkpoint_.kernels.erase(digests_[i]);
  }
}

// Kernels that this calibration does not ask for stay in the checkpoint only while there is room.
void CalibrationWork::Prune(const CalibrationSize& asked) {
  CalibrationSize size = asked;
  size.kernels += static_cast<int64_t>(checkpoint_.kernels.size());
  size.pairs += static_cast<int64_t>(checkpoint_.pairs.size());
  size.co_resident += static_cast<int64_t>(checkpoint_.record.co_resident.size());
  size.fused += static_cast<int64_t>(checkpoint_.record.fused.size());
  if (CheckSize(size).ok()) return;
  const auto is_asked = [this](uint64_t digest) {
    return std::find(digests_.begin(), digests_.end(), digest) != digests_.end();
  };
  const auto named = [this](const std::string& name) {
    return std::any_of(items_.begin(), items_.end(),
                       [&](const CalibrationItem& item) { return item.kernel.name == name; });
  };
  std::erase_if(checkpoint_.kernels, [&](const auto& one) { return !is_asked(one.first); });
  std::erase_if(checkpoint_.pairs, [&](const auto& one) {
    return !is_asked(one.first.first) || !is_asked(one.first.second);
  });
  std::erase_if(checkpoint_.record.co_resident, [&](const CoResidentRecord& record) {
    return !named(record.first) || !named(record.second);
  });
  std::erase_if(checkpoint_.record.fused, [&](const FusedRecord& record) {
    return !named(record.tensor) || !named(record.cuda);
  });
}

CalibrationSize CalibrationWork::size() const {
  CalibrationSize size;
  size.kernels = static_cast<int64_t>(items_.size());
  size.pairs = static_cast<int64_t>(pairs_.size());
  size.co_resident = static_cast<int64_t>(co_residents_.size());
  size.fused = static_cast<int64_t>(options_.fused.size());
  return size;
}

int32_t CalibrationWork::StepsInAll() const {
  return static_cast<int32_t>(1 + items_.size() + pairs_.size() + co_residents_.size() +
                              fused_.size());
}

size_t CalibrationWork::CountOf(Stage stage) const {
  switch (stage) {
    case Stage::kPartitions:
      return pairs_.size();
    case Stage::kCoResident:
      return co_residents_.size();
    case Stage::kFused:
      return fused_.size();
    default:
      return items_.size();
  }
}

std::string CalibrationWork::NameOf(Stage stage, size_t i) const {
  switch (stage) {
    case Stage::kPartitions:
      return absl::StrCat(ItemName(pairs_[i].first), " | ", ItemName(pairs_[i].second));
    case Stage::kCoResident:
      return absl::StrCat(ItemName(co_residents_[i].first), " + ",
                          ItemName(co_residents_[i].second));
    case Stage::kFused:
      return fused_[i].kernel.name;
    default:
      return ItemName(i);
  }
}

ItemPair CalibrationWork::PartsOf(Stage stage, size_t i) const {
  switch (stage) {
    case Stage::kPartitions:
      return pairs_[i];
    case Stage::kCoResident:
      return co_residents_[i];
    case Stage::kFused:
      return {fused_[i].tensor_item, fused_[i].cuda_item};
    default:
      return {i, i};
  }
}

bool CalibrationWork::IsReady(Stage stage, size_t i) const {
  if (stage == Stage::kKernels) return true;
  const auto [first, second] = PartsOf(stage, i);
  return KernelOf(first) != nullptr && KernelOf(second) != nullptr;
}

bool CalibrationWork::IsKnown(Stage stage, size_t i) const {
  switch (stage) {
    case Stage::kKernels:
      return KernelOf(i) != nullptr;
    case Stage::kRest:
      return KernelOf(i) != nullptr && KernelOf(i)->rest_measured;
    case Stage::kPartitions: {
      const KernelMeasurement* const lc = KernelOf(pairs_[i].first);
      return (lc != nullptr && lc->speed.empty()) || PairOf(i) != nullptr;
    }
    case Stage::kCoResident: {
      const auto& known = checkpoint_.record.co_resident;
      return std::any_of(known.begin(), known.end(), [&](const CoResidentRecord& record) {
        return record.first == ItemName(co_residents_[i].first) &&
               record.second == ItemName(co_residents_[i].second);
      });
    }
    case Stage::kFused: {
      const auto& known = checkpoint_.record.fused;
      return std::any_of(known.begin(), known.end(), [&](const FusedRecord& record) {
        return record.name == fused_[i].kernel.name;
      });
    }
  }
  return false;
}

size_t CalibrationWork::LeftOf(Stage stage) const {
  size_t left = 0;
  for (size_t i = 0; i < CountOf(stage); ++i) left += IsKnown(stage, i) ? 0 : 1;
  return left;
}

bool CalibrationWork::AnythingLeft() const {
  for (size_t s = 0; s < kStages; ++s) {
    if (LeftOf(Stage(s)) > 0) return true;
  }
  return false;
}

// Without a bound on the time, kernels are measured in the order in which they are given.
std::vector<size_t> CalibrationWork::OrderOfKernels() const {
  std::vector<uint8_t> queries(items_.size(), 0);
  std::vector<ItemPair> parts;
  if (options_.seconds_total <= 0) return KernelsByValue(queries, parts);
  for (size_t i = 0; i < items_.size(); ++i) {
    queries[i] = items_[i].has_block_tasks() ? 0 : 1;
  }
  for (size_t i = 0; i < fused_.size(); ++i) parts.push_back(PartsOf(Stage::kFused, i));
  return KernelsByValue(queries, parts);
}

std::vector<size_t> CalibrationWork::OrderOf(Stage stage) const {
  if (stage == Stage::kKernels || stage == Stage::kRest) return OrderOfKernels();
  const size_t count = CountOf(stage);
  std::vector<ItemPair> parts;
  for (size_t i = 0; i < count; ++i) parts.push_back(PartsOf(stage, i));
  if (stage == Stage::kFused) {
    std::vector<uint8_t> spills;
    for (const CalibrationFused& fused : fused_) spills.push_back(fused.spills() ? 1 : 0);
    return FusedByValue(parts, spills);
  }
  std::vector<Intensity> intensities(items_.size(), Intensity::kUnknown);
  // On partitions all neighbours of a query are worth the same.
  for (size_t i = 0; stage == Stage::kCoResident && i < items_.size(); ++i) {
    if (KernelOf(i) != nullptr) intensities[i] = KernelOf(i)->intensity;
  }
  return PairsByValue(parts, intensities);
}

const KernelMeasurement* CalibrationWork::KernelOf(size_t item) const {
  const auto known = checkpoint_.kernels.find(digests_[item]);
  return known == checkpoint_.kernels.end() ? nullptr : &known->second;
}

const PairMeasurement* CalibrationWork::PairOf(size_t i) const {
  const auto [lc, be] = pairs_[i];
  const auto known = checkpoint_.pairs.find({digests_[lc], digests_[be]});
  return known == checkpoint_.pairs.end() ? nullptr : &known->second;
}

absl::Status CalibrationWork::CheckMeasurement(size_t item,
                                               const KernelMeasurement& measured) const {
  GPUSHARE_RETURN_IF_ERROR(CheckReadable(
      checkpoint_.device, Describe(items_[item].kernel, measured, checkpoint_.device)));
  CalibrationRecord record;
  record.kernels = {RecordOf(measured)};
  return CheckReadable(checkpoint_.device, record);
}

void CalibrationWork::SetDevice(const core::DeviceProfile& device, std::vector<CopyPoint> copies) {
  checkpoint_.device = device;
  checkpoint_.device_measured = true;
  checkpoint_.record.copies = std::move(copies);
}

void CalibrationWork::AddKernel(size_t item, const KernelMeasurement& measured) {
  checkpoint_.kernels[digests_[item]] = measured;
}

void CalibrationWork::AddPair(size_t i, PairMeasurement pair) {
  const auto [lc, be] = pairs_[i];
  checkpoint_.pairs[{digests_[lc], digests_[be]}] = std::move(pair);
}

void CalibrationWork::AddCoResident(CoResidentRecord record) {
  checkpoint_.record.co_resident.push_back(std::move(record));
}

void CalibrationWork::AddFused(FusedRecord record) {
  checkpoint_.record.fused.push_back(std::move(record));
}

void CalibrationWork::Forget(size_t item) {
  const std::string& name = ItemName(item);
  std::erase_if(checkpoint_.kernels, [&](const auto& one) { return one.second.name == name; });
  std::erase_if(checkpoint_.pairs, [&](const auto& one) {
    return one.first.first == digests_[item] || one.first.second == digests_[item];
  });
  std::erase_if(checkpoint_.record.co_resident, [&](const CoResidentRecord& record) {
    return record.first == name || record.second == name;
  });
  std::erase_if(checkpoint_.record.fused, [&](const FusedRecord& record) {
    return record.tensor == name || record.cuda == name;
  });
}

void CalibrationWork::SortRecords() {
  const auto sort = [this](Stage stage, auto& records, const auto& name_of) {
    std::map<std::string, size_t> ranks;
    for (size_t i = 0; i < CountOf(stage); ++i) ranks.emplace(NameOf(stage, i), i);
    const auto rank_of = [&](const auto& record) {
      const auto known = ranks.find(name_of(record));
      return known == ranks.end() ? ranks.size() : known->second;
    };
    std::stable_sort(records.begin(), records.end(),
                     [&](const auto& a, const auto& b) { return rank_of(a) < rank_of(b); });
  };
  sort(Stage::kFused, checkpoint_.record.fused, [](const FusedRecord& one) { return one.name; });
  sort(Stage::kCoResident, checkpoint_.record.co_resident,
       [](const CoResidentRecord& one) { return absl::StrCat(one.first, " + ", one.second); });
}

void CalibrationWork::SetFusedVerdicts(Notes& notes) {
  SetVerdicts(checkpoint_.record.fused, notes);
}

}  // namespace gpushare::models
