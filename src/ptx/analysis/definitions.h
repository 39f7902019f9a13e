// Where registers are written, and what an address is made of.
//
// Where in the flow: below the checks of mbarriers and of locks.

#ifndef GPUSHARE_SRC_PTX_ANALYSIS_DEFINITIONS_H_
#define GPUSHARE_SRC_PTX_ANALYSIS_DEFINITIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/ptx/text/module.h"

namespace gpushare::ptx {

// A place in memory: a variable or a register that is written once, and a distance from it.
struct Address {
  SymbolId base = kNoSymbol;  // kNoSymbol: not known
  uint64_t offset = 0;        // modulo 2^64

  friend bool operator==(const Address&, const Address&) = default;
};

class Definitions {
 public:
  explicit Definitions(const Module& module);

  // The only statement that writes the register; UINT32_MAX: none, several, or under a guard.
  uint32_t Only(SymbolId symbol) const { return only_[static_cast<size_t>(symbol)]; }

  // Of the first operand in brackets of a statement.
  Address AddressOf(const Statement& statement) const;

  // Whether every statement that writes the register moves a number into it.
  bool IsNumber(SymbolId symbol) const { return numbers_[static_cast<size_t>(symbol)]; }

  // Whether a word is the number 0, or a register that only numbers are moved into, 0 among them
  // as far as it is known.
  bool MayBeZero(const Word& word) const;

 private:
  Address Follow(Address address) const;

  const Module& module_;
  std::vector<uint32_t> only_;
  std::vector<bool> numbers_;
};

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_ANALYSIS_DEFINITIONS_H_
