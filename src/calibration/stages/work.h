// What a calibration has to measure, stage by stage, and what is measured so far.
//
// The measurements of stage S have numbers from 0 to CountOf(S) - 1: items in the first two stages,
// pairs of items or fused kernels in the others. stages.cc asks here which are left and in which
// order, and adds what it measures. Invariants: items do not change once they are assigned; a
// measurement is known if the checkpoint holds it, so that one from an earlier call and one made
// now are treated alike. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_STAGES_WORK_H_
#define GPUSHARE_SRC_CALIBRATION_STAGES_WORK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/calibration/base/item.h"
#include "src/calibration/base/measurement.h"
#include "src/calibration/base/notes.h"
#include "src/calibration/base/options.h"
#include "src/calibration/profile/checkpoint.h"
#include "src/calibration/stages/checks.h"
#include "src/calibration/stages/plan.h"
#include "src/core/seams/device.h"

namespace gpushare::models {

class CalibrationWork {
 public:
  // `options` outlives this.
  explicit CalibrationWork(const CalibrationOptions& options) : options_(options) {}

  // `items` are described and have their identifiers.
  void Assign(std::vector<CalibrationItem> items, const core::DeviceCapabilities& capabilities);
  // `fused` are prepared, except those that spill.
  void AssignFused(std::vector<CalibrationFused> fused) { fused_ = std::move(fused); }
  // Takes over what `found` has measured; `asked` is the size of this calibration.
  void ResumeFrom(Checkpoint found, const CalibrationSize& asked);

  absl::Span<const CalibrationItem> items() const { return items_; }
  absl::Span<const CalibrationFused> fused() const { return fused_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  CalibrationSize size() const;  // without kept_bytes
  int32_t StepsInAll() const;    // of the progress; the device is one of them

  size_t CountOf(Stage stage) const;
  std::string NameOf(Stage stage, size_t i) const;
  // The items of a measurement.
  ItemPair PartsOf(Stage stage, size_t i) const;
  // Whether the items that it is compared with are measured.
  bool IsReady(Stage stage, size_t i) const;
  // Whether it is measured, or has nothing to measure.
  bool IsKnown(Stage stage, size_t i) const;
  size_t LeftOf(Stage stage) const;
  bool AnythingLeft() const;
  std::vector<size_t> OrderOf(Stage stage) const;

  const std::string& ItemName(size_t item) const { return items_[item].kernel.name; }
  // Null if the item's durations are not measured.
  const KernelMeasurement* KernelOf(size_t item) const;
  // Of a pair on partitions; null if it is not measured.
  const PairMeasurement* PairOf(size_t i) const;
  // Whether the durations come from the checkpoint.
  bool IsKept(size_t item) const { return kept_[item]; }

  // OK if a profile with this measurement could be read back.
  absl::Status CheckMeasurement(size_t item, const KernelMeasurement& measured) const;

  void SetDevice(const core::DeviceProfile& device, std::vector<CopyPoint> copies);
  void AddKernel(size_t item, const KernelMeasurement& measured);
  void AddPair(size_t i, PairMeasurement pair);
  void AddCoResident(CoResidentRecord record);
  void AddFused(FusedRecord record);
  // Drops what the checkpoint has of a kernel that is measured anew, and of pairs with it.
  void Forget(size_t item);
  // Puts the records, which were measured by value, into the order of the items.
  void SortRecords();
  // Decides which fused kernels are kept, with a sentence for each pair.
  void SetFusedVerdicts(Notes& notes);

 private:
  void FindPairs(const core::DeviceCapabilities& capabilities);
  void Prune(const CalibrationSize& asked);
  std::vector<size_t> OrderOfKernels() const;

  const CalibrationOptions& options_;
  std::vector<CalibrationItem> items_;
  std::vector<uint64_t> digests_;       // of the items
  std::vector<bool> kept_;              // of the items
  std::vector<ItemPair> pairs_;         // on the two sides of a split
  std::vector<ItemPair> co_residents_;  // on the same SMs
  std::vector<CalibrationFused> fused_;
  Checkpoint checkpoint_;  // all that is measured, from an earlier call or now
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_STAGES_WORK_H_
