// Where in a JSON document a value stands, for messages: "kernels[3].simulation.demand.dram".
//
// A path is a chain of keys and indices on the caller's stack. Its text is made when a message
// needs it, so that reading a valid document builds no text. Invariant: a path does not outlive its
// parent and its key. Threads: each path belongs to one.

#ifndef GPUSHARE_SRC_MODELS_JSON_JSON_PATH_H_
#define GPUSHARE_SRC_MODELS_JSON_JSON_PATH_H_

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace gpushare::models {

class JsonPath {
 public:
  // Implicit, so that a text may stand where a path is asked for.
  JsonPath(absl::string_view text) : key_(text) {}   // NOLINT(google-explicit-constructor)
  JsonPath(const char* text) : key_(text) {}         // NOLINT(google-explicit-constructor)
  JsonPath(const std::string& text) : key_(text) {}  // NOLINT(google-explicit-constructor)
  // The member `key` or the element `index` of the value at `parent`.
  JsonPath(const JsonPath& parent, absl::string_view key) : parent_(&parent), key_(key) {}
  JsonPath(const JsonPath& parent, size_t index) : parent_(&parent), index_(index) {}
  JsonPath(const JsonPath&) = delete;
  JsonPath& operator=(const JsonPath&) = delete;

  // Of the document itself the path is empty.
  bool empty() const { return parent_ == nullptr && key_.empty(); }
  const std::string& text() const {
    if (text_.empty()) text_ = MakeText();
    return text_;
  }
  // For StrCat.
  operator absl::AlphaNum() const {  // NOLINT(google-explicit-constructor)
    return absl::AlphaNum(text());
  }

 private:
  static constexpr size_t kNoIndex = ~size_t{0};

  std::string MakeText() const {
    if (parent_ == nullptr) return std::string(key_);
    if (index_ != kNoIndex) return absl::StrCat(parent_->text(), "[", index_, "]");
    return parent_->empty() ? std::string(key_) : absl::StrCat(parent_->text(), ".", key_);
  }

  const JsonPath* parent_ = nullptr;
  absl::string_view key_;
  size_t index_ = kNoIndex;
  mutable std::string text_;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_JSON_JSON_PATH_H_
