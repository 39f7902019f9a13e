// The `user` pointer of a table; see user_data.h.

#include "bindings/c/user_data.h"

#include "absl/strings/str_cat.h"
#include "bindings/c/errors.h"
#include "src/core/base/application_call.h"
#include "src/core/base/exhaustion.h"

namespace gpushare::abi {

UserData::UserData(const char* what, const char* name, void (*destroy)(void*), void* user,
                   const Log& log)
    : what_(what), name_(name), destroy_(destroy), user_(user), log_(log) {}

UserData::~UserData() {
  if (!armed_ || destroy_ == nullptr) return;
  const CallbackScope scope;
  const std::string thrown = core::ThrownBy([&] { destroy_(user_); });
  if (thrown.empty()) return;
  const std::string sentence = core::TextOf([&] {
    return absl::StrCat("The destroy function of ", what_, " '", name_, "' threw ", thrown, ".");
  });
  log_.Write(GPUSHARE_LOG_ERROR,
             sentence.empty() ? "A destroy function of the application threw." : sentence.c_str());
}

}  // namespace gpushare::abi
