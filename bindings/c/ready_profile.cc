// Reading a profile once; see ready_profile.h.

#include "bindings/c/ready_profile.h"

#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bindings/c/built_in_profile.h"
#include "src/core/base/file_io.h"
#include "src/core/base/status.h"
#include "src/models/profile/profile_limits.h"

namespace gpushare::abi {
namespace {

struct LastFile {
  std::string text;
  ReadyProfile profile;
};

std::mutex last_mutex;

// Never destroyed, because programs make runtimes in static constructors and destructors.
std::shared_ptr<const LastFile>& Last() {
  static auto* const last = new std::shared_ptr<const LastFile>;
  return *last;
}

absl::StatusOr<ReadyProfile> Parse(const std::string& text) {
  ReadyProfile out;
  GPUSHARE_ASSIGN_OR_RETURN(out.profile, models::ParseProfile(text));
  if (!out.profile.learned.empty()) {
    GPUSHARE_ASSIGN_OR_RETURN(out.learned, models::ParseLearned(out.profile.learned));
  }
  out.profile.learned = std::string();
  return out;
}

}  // namespace

absl::StatusOr<ReadyProfile> ReadBuiltInProfile() {
  ReadyProfile out;
  GPUSHARE_ASSIGN_OR_RETURN(out.profile, models::ReadProfile(BuiltInProfile()));
  GPUSHARE_ASSIGN_OR_RETURN(out.learned, models::ReadLearned(BuiltInLearned()));
  out.profile.learned = std::string();
  return out;
}

absl::StatusOr<ReadyProfile> ReadProfileFile(const std::string& path) {
  GPUSHARE_ASSIGN_OR_RETURN(std::string text, core::ReadWholeFile(path, models::kProfileBytesMax));
  std::shared_ptr<const LastFile> last;
  {
    const std::lock_guard<std::mutex> lock(last_mutex);
    last = Last();
  }
  if (last != nullptr && last->text == text) return last->profile;
  absl::StatusOr<ReadyProfile> profile = Parse(text);
  if (!profile.ok()) {
    return absl::Status(profile.status().code(),
                        absl::StrCat("In '", path, "': ", profile.status().message()));
  }
  last = std::make_shared<const LastFile>(LastFile{std::move(text), *profile});
  const std::lock_guard<std::mutex> lock(last_mutex);
  Last().swap(last);
  return profile;
}

}  // namespace gpushare::abi
