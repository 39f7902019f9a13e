// Profiles: load into a runtime, save from it, validate a file. Threads: any.

#include <utility>

#include "absl/strings/str_cat.h"
#include "bindings/c/errors.h"
#include "bindings/c/handles.h"
#include "bindings/c/objects.h"
#include "bindings/c/options.h"
#include "src/core/base/mutex.h"
#include "src/models/online/online_model.h"

namespace gpushare::abi {
namespace {

absl::Status Load(RuntimeObject& runtime, const char* path) {
  absl::StatusOr<models::Profile> loaded = models::LoadProfile(path);
  if (!loaded.ok()) return loaded.status();
  core::MutexLock lock(&runtime.mutex);
  if (loaded->device.gpu_model != runtime.profile.device.gpu_model) {
    return absl::FailedPreconditionError(
        absl::StrCat("The profile '", path, "' was measured on '", loaded->device.gpu_model,
                     "', and this runtime's device is '", runtime.profile.device.gpu_model, "'."));
  }
  // Last, because it is all or nothing and nothing after it can fail.
  if (!loaded->learned.empty()) {
    GPUSHARE_RETURN_IF_ERROR(runtime.scheduler->LoadModel(loaded->learned));
  }
  runtime.profile = *std::move(loaded);
  return absl::OkStatus();
}

// What gpushare_runtime_create checks.
absl::Status Validate(const char* path) {
  const absl::StatusOr<models::Profile> profile = models::LoadProfile(path);
  if (!profile.ok() || profile->learned.empty()) return profile.status();
  return models::MakeOnlineModel(profile->device)->Load(profile->learned);
}

// The runtime's profile with the registered kernels and the learned values.
models::Profile Current(RuntimeObject& runtime) {
  std::string learned = runtime.scheduler->SaveModel();
  core::MutexLock lock(&runtime.mutex);
  models::Profile profile = runtime.profile;
  profile.learned = std::move(learned);
  for (const auto& [name, kernel] : runtime.kernels) {
    if (profile.FindKernel(name) != nullptr) continue;
    profile.kernels.push_back(*kernel);
    core::DropHandles(profile.kernels.back().code);
  }
  return profile;
}

}  // namespace
}  // namespace gpushare::abi

using gpushare::abi::CheckText;
using gpushare::abi::Enter;

gpushare_status gpushare_profile_load(gpushare_runtime* runtime, const char* path) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(CheckText("The path of the profile", path));
    return gpushare::abi::Load(*object, path);
  });
}

gpushare_status gpushare_profile_save(gpushare_runtime* runtime, const char* path) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(CheckText("The path of the profile", path));
    return gpushare::models::SaveProfile(path, gpushare::abi::Current(*object));
  });
}

gpushare_status gpushare_profile_validate(const char* path) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_RETURN_IF_ERROR(CheckText("The path of the profile", path));
    return gpushare::abi::Validate(path);
  });
}
