// Hash tables of this room, in which an allocation may fail: an insertion throws, and the table
// stays as it was. Those of Abseil's release that Debian 12 has (20220623) then free memory that
// they never had, and the call comes from applications, which must not end by it.
//
// Threads: as standard containers.

#ifndef GPUSHARE_SRC_MODELS_PLACEMENT_TABLES_H_
#define GPUSHARE_SRC_MODELS_PLACEMENT_TABLES_H_

#include <cstddef>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace gpushare::models::placement {

template <class Key, class Value>
using Table = std::unordered_map<Key, Value, absl::Hash<Key>>;
using Texts = std::unordered_set<absl::string_view, absl::Hash<absl::string_view>>;

// Finds a text without a string of its own.
struct TextHash {
  using is_transparent = void;
  size_t operator()(absl::string_view text) const { return absl::Hash<absl::string_view>()(text); }
};
template <class Value>
using TextTable = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

}  // namespace gpushare::models::placement

#endif  // GPUSHARE_SRC_MODELS_PLACEMENT_TABLES_H_
