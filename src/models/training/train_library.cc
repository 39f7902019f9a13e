// The fit of library calls; see train_library.h.

#include "src/models/training/train_library.h"

#include <vector>

#include "src/models/library/library_model.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {

void TrainLibrary(const Samples& samples, Learned& learned) {
  std::vector<LibrarySample> calls;
  for (const SampleRow& row : samples.rows) {
    const bool counts = row.what == SampleKind::kSolo && row.sms == samples.head.sm_count &&
                        !row.ns.empty() && row.call.operation != core::LibraryOperation::kNone;
    if (counts) calls.push_back({row.call, Median(row.ns)});
  }
  if (calls.empty()) return;
  LibraryDevice device;
  device.sm_count = samples.head.sm_count;
  LibraryModel model;
  model.Fit(device, calls);
  learned.library = model.state();
}

}  // namespace gpushare::models
