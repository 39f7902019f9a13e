// Symbols of nested scopes. See symbol_table.h.

#include "src/ptx/text/symbol_table.h"

#include <cstddef>

#include "src/ptx/text/token_cursor.h"

namespace gpushare::ptx {
namespace {

// Splits `%r12` into `%r` and 12. False without digits, or with a leading zero.
bool SplitNumber(std::string_view name, std::string_view& prefix, uint64_t& number) {
  size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  if (begin == name.size() || begin == 0) return false;
  if (name[begin] == '0' && begin + 1 < name.size()) return false;
  prefix = name.substr(0, begin);
  return TokenCursor::ParseNumber(name.substr(begin), number);
}

}  // namespace

SymbolId SymbolTable::FindExact(std::string_view name) {
  std::string_view prefix;
  uint64_t number = 0;
  const bool numbered = SplitNumber(name, prefix, number);
  // NOLINTNEXTLINE(modernize-loop-convert): backwards
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    const auto found = level->names.find(name);
    if (found != level->names.end()) return found->second;
    if (!numbered) continue;
    const auto range = level->ranges.find(prefix);
    if (range == level->ranges.end() || number >= range->second) continue;
    const auto id = static_cast<SymbolId>(module_.symbols.size());
    module_.symbols.push_back(Symbol{SymbolKind::kRegister, 0, 1});
    level->names[name] = id;
    return id;
  }
  return kNoSymbol;
}

SymbolId SymbolTable::Find(std::string_view name) {
  const SymbolId exact = FindExact(name);
  if (exact != kNoSymbol) return exact;
  // An element of a vector register: `%v.x`.
  if (name.size() < 3 || name[name.size() - 2] != '.') return kNoSymbol;
  constexpr std::string_view kElements = "xyzwrgba";
  if (kElements.find(name.back()) == std::string_view::npos) return kNoSymbol;
  return FindExact(name.substr(0, name.size() - 2));
}

}  // namespace gpushare::ptx
