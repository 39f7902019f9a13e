// Fuzzes the profile reader and the reader of learned models. What is accepted must be readable
// again after it was written, and give the same text.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "src/models/online/online_model.h"
#include "src/models/profile/profile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using gpushare::core::CostModel;
  using gpushare::models::Profile;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Profile> profile = gpushare::models::ParseProfile(text);
  if (profile.ok()) {
    const std::string written = gpushare::models::FormatProfile(*profile);
    const absl::StatusOr<Profile> again = gpushare::models::ParseProfile(written);
    if (!again.ok() || gpushare::models::FormatProfile(*again) != written) std::abort();
  }
  const std::unique_ptr<CostModel> model =
      gpushare::models::MakeOnlineModel(gpushare::core::DeviceProfile());
  gpushare::core::KernelDesc kernel;
  kernel.id.value = 1;
  kernel.name = "k";
  kernel.resources.workers_per_sm_max = 4;
  kernel.counters.instructions = 1000;
  kernel.counters.dram = 0.5;
  model->AddKernel(kernel);
  gpushare::core::KernelDesc call;
  call.id.value = 2;
  call.name = "call";
  call.code = gpushare::core::LibraryCall{.operation = gpushare::core::LibraryOperation::kMatmul,
                                          .type = gpushare::core::DataType::kFloat16,
                                          .m = 1024,
                                          .n = 1024,
                                          .k = 1024};
  model->AddKernel(call);
  if (model->Load(text).ok()) {
    for (const gpushare::core::KernelDesc* one : {&kernel, &call}) {
      gpushare::core::TaskFeatures features = {
          .kernel = one, .kind = one->kind(), .block_tasks = 1000};
      const gpushare::core::Prediction prediction = model->durations().PredictSolo(features);
      if (prediction.duration_ns < 0 || prediction.duration_ns > gpushare::core::kMaxDurationNs) {
        std::abort();
      }
    }
    const gpushare::core::CoResidentPrediction pair =
        model->overlaps().PredictCoResident({&kernel, 2, 1000}, {&kernel, 1, 1000});
    for (const double speed : pair.speed) {
      if (!(speed >= 0 && speed <= 1)) std::abort();
    }
    if (!model->Load(model->Save()).ok()) std::abort();
  }
  return 0;
}
