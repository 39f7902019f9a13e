// The names of a module's variables and of an entry's registers, by scope.
//
// Where in the flow: part of the parser. A register range `%r<9>` declares %r0 to %r8; a register
// gets its symbol where it is first used, so that a large range costs nothing.

#ifndef GPUSHARE_SRC_PTX_TEXT_SYMBOL_TABLE_H_
#define GPUSHARE_SRC_PTX_TEXT_SYMBOL_TABLE_H_

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/ptx/text/module.h"

namespace gpushare::ptx {

class SymbolTable {
 public:
  explicit SymbolTable(Module& module) : module_(module), levels_(1) {}

  void Open() { levels_.emplace_back(); }
  void Close() { levels_.pop_back(); }
  size_t depth() const { return levels_.size(); }

  SymbolId Declare(std::string_view name, const Symbol& symbol) {
    const auto id = static_cast<SymbolId>(module_.symbols.size());
    module_.symbols.push_back(symbol);
    levels_.back().names[name] = id;
    return id;
  }
  void DeclareRange(std::string_view prefix, uint32_t count) {
    levels_.back().ranges[prefix] = count;
  }

  // kNoSymbol if nothing declares the name.
  SymbolId Find(std::string_view name);

 private:
  struct Level {
    std::unordered_map<std::string_view, SymbolId> names;
    std::unordered_map<std::string_view, uint32_t> ranges;
  };

  SymbolId FindExact(std::string_view name);

  Module& module_;
  std::vector<Level> levels_;  // the innermost scope last
};

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_TEXT_SYMBOL_TABLE_H_
