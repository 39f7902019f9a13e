// Where registers are written. See definitions.h.

#include "src/ptx/analysis/definitions.h"

#include <cstddef>
#include <string_view>

#include "src/ptx/analysis/opcodes.h"
#include "src/ptx/text/token_cursor.h"

namespace gpushare::ptx {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr int kFollowMax = 32;  // moves and additions from an address to its variable

uint64_t Number(const Word& word) {
  uint64_t value = 0;
  if (!TokenCursor::ParseNumber(word.text, value)) return 0;
  return word.negative ? 0 - value : value;
}

// A floating-point zero, as `0f00000000`, is one too.
bool IsZero(const Word& word) {
  std::string_view digits = word.text;
  if (digits.starts_with("0f") || digits.starts_with("0F") || digits.starts_with("0d") ||
      digits.starts_with("0D")) {
    digits.remove_prefix(2);
  }
  uint64_t value = 0;
  return TokenCursor::ParseNumber(digits, value) && value == 0;
}

}  // namespace

Definitions::Definitions(const Module& module)
    : module_(module), only_(module.symbols.size(), kNone), numbers_(module.symbols.size()) {
  std::vector<uint8_t> writes(module.symbols.size());
  std::vector<bool> other(module.symbols.size());
  for (uint32_t i = 0; i < module.statements.size(); ++i) {
    const Statement& statement = module.statements[i];
    if (statement.kind != StatementKind::kInstruction) continue;
    const Opcode* const opcode = FindOpcode(statement.name);
    if (opcode == nullptr || !opcode->has_result) continue;
    const Word* const words = module.words.data() + statement.first_word;
    const bool moves_number =
        opcode->kind == OpKind::kMove && statement.word_count == 2 && words[1].is_number;
    for (uint32_t w = 0; w < statement.word_count && words[w].operand == 0; ++w) {
      if (words[w].symbol == kNoSymbol || words[w].in_address) continue;
      const auto symbol = static_cast<size_t>(words[w].symbol);
      const bool first = writes[symbol] == 0 && statement.guard == kNoSymbol;
      only_[symbol] = first ? i : kNone;
      writes[symbol] = 1;
      numbers_[symbol] = true;
      if (!moves_number) other[symbol] = true;
    }
  }
  for (size_t symbol = 0; symbol < numbers_.size(); ++symbol) {
    if (other[symbol]) numbers_[symbol] = false;
  }
}

bool Definitions::MayBeZero(const Word& word) const {
  if (word.is_number) return IsZero(word);
  if (word.symbol == kNoSymbol || !IsNumber(word.symbol)) return false;
  const uint32_t i = Only(word.symbol);
  return i == kNone || IsZero(module_.words[module_.statements[i].first_word + 1]);
}

Address Definitions::AddressOf(const Statement& statement) const {
  Address address;
  uint16_t operand = 0;
  for (uint32_t w = 0; w < statement.word_count; ++w) {
    const Word& word = module_.words[statement.first_word + w];
    if (!word.in_address) continue;
    if (address.base == kNoSymbol) {
      if (word.symbol == kNoSymbol) return {};
      address.base = word.symbol;
      operand = word.operand;
    } else if (word.operand == operand && word.is_number) {
      address.offset += Number(word);
    }
  }
  return address.base == kNoSymbol ? address : Follow(address);
}

Address Definitions::Follow(Address address) const {
  for (int step = 0; step < kFollowMax; ++step) {
    const auto base = static_cast<size_t>(address.base);
    if (module_.symbols[base].kind != SymbolKind::kRegister) return address;
    const uint32_t i = only_[base];
    if (i == kNone) return {};
    const Statement& statement = module_.statements[i];
    const OpKind kind = FindOpcode(statement.name)->kind;
    const Word* const words = module_.words.data() + statement.first_word;
    const bool copies =
        (kind == OpKind::kMove || statement.name.starts_with("cvt")) && statement.word_count == 2;
    const bool adds = kind == OpKind::kAdd && statement.word_count == 3 && words[2].is_number;
    if ((!copies && !adds) || words[1].symbol == kNoSymbol) return address;
    address.base = words[1].symbol;
    if (adds) address.offset += Number(words[2]);
  }
  return {};
}

}  // namespace gpushare::ptx
