// Profiles that are filled from samples and from like kernels, over the ABI. Threads: any.

#include "src/models/training/train_profile.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bindings/c/errors.h"
#include "bindings/c/handles.h"
#include "bindings/c/options.h"
#include "src/core/base/file_io.h"
#include "src/models/profile/profile.h"
#include "src/models/samples/samples_file.h"
#include "src/models/training/like_kernel.h"
#include "src/models/training/row_counters.h"

namespace gpushare::abi {
namespace {

// A samples file holds hours of measurement, and is only appended to.
absl::Status CheckOutput(const char* output_path, const char* samples_path) {
  if (!core::IsSameFile(output_path, samples_path)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "The profile would replace the samples that it is made of: output_path and samples_path are "
      "both '",
      samples_path, "'."));
}

absl::Status Train(const gpushare_profile_train_options* given) {
  gpushare_profile_train_options options;
  GPUSHARE_RETURN_IF_ERROR(ReadOptions("gpushare_profile_train_options", given, &options));
  GPUSHARE_RETURN_IF_ERROR(CheckBool("replace_demands", options.replace_demands));
  GPUSHARE_RETURN_IF_ERROR(CheckText("profile_path", options.profile_path));
  GPUSHARE_RETURN_IF_ERROR(CheckText("samples_path", options.samples_path));
  GPUSHARE_RETURN_IF_ERROR(CheckText("output_path", options.output_path));
  GPUSHARE_RETURN_IF_ERROR(CheckOutput(options.output_path, options.samples_path));
  absl::StatusOr<models::Profile> profile = models::LoadProfile(options.profile_path);
  if (!profile.ok()) return profile.status();
  const absl::StatusOr<models::Samples> samples = models::LoadSamples(options.samples_path);
  if (!samples.ok()) return samples.status();
  models::TrainOptions training;
  training.replace_demands = options.replace_demands != 0;
  GPUSHARE_RETURN_IF_ERROR(models::TrainProfile(*samples, training, *profile));
  return models::SaveProfile(options.output_path, *profile);
}

absl::StatusOr<models::LikeRequest> ReadRequest(const gpushare_profile_like_options& options) {
  models::LikeRequest request;
  GPUSHARE_RETURN_IF_ERROR(CheckName("kernel", options.kernel));
  request.kernel = options.kernel;
  if (options.like != nullptr) {
    GPUSHARE_RETURN_IF_ERROR(CheckName("like", options.like));
    request.like = options.like;
  }
  if (options.samples_path != nullptr) {
    const absl::StatusOr<models::Samples> samples = models::LoadSamples(options.samples_path);
    if (!samples.ok()) return samples.status();
    request.counters = models::CountersOf(*samples, request.kernel);
  }
  return request;
}

absl::StatusOr<std::string> Like(const gpushare_profile_like_options* given) {
  gpushare_profile_like_options options;
  GPUSHARE_RETURN_IF_ERROR(ReadOptions("gpushare_profile_like_options", given, &options));
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("gpushare_profile_like_options", options.reserved));
  GPUSHARE_RETURN_IF_ERROR(CheckText("profile_path", options.profile_path));
  GPUSHARE_RETURN_IF_ERROR(CheckText("output_path", options.output_path));
  if (options.samples_path != nullptr) {
    GPUSHARE_RETURN_IF_ERROR(CheckText("samples_path", options.samples_path));
    GPUSHARE_RETURN_IF_ERROR(CheckOutput(options.output_path, options.samples_path));
  }
  const absl::StatusOr<models::LikeRequest> request = ReadRequest(options);
  if (!request.ok()) return request.status();
  absl::StatusOr<models::Profile> profile = models::LoadProfile(options.profile_path);
  if (!profile.ok()) return profile.status();
  absl::StatusOr<std::string> like = models::FillLike(*request, *profile);
  if (!like.ok()) return like.status();
  GPUSHARE_RETURN_IF_ERROR(models::SaveProfile(options.output_path, *profile));
  return like;
}

}  // namespace
}  // namespace gpushare::abi

gpushare_status gpushare_profile_train(const gpushare_profile_train_options* options) noexcept {
  return gpushare::abi::Enter([&] { return gpushare::abi::Train(options); });
}

gpushare_status gpushare_profile_like(const gpushare_profile_like_options* options, char* buffer,
                                      size_t buffer_size_bytes, size_t* out_size_bytes) noexcept {
  return gpushare::abi::Enter([&]() -> absl::Status {
    const absl::StatusOr<std::string> like = gpushare::abi::Like(options);
    if (!like.ok()) return like.status();
    return gpushare::abi::CopyText(*like, buffer, buffer_size_bytes, out_size_bytes);
  });
}
