// Declarations of variables and registers. See declarations.h.

#include "src/ptx/text/declarations.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "src/ptx/base/limits.h"

namespace gpushare::ptx {
namespace {

struct TypeSize {
  std::string_view suffix;  // of the type's name
  uint32_t size_bytes;
};

// Longer suffixes first.
constexpr std::array<TypeSize, 9> kTypeSizes = {{{"16x2", 4},
                                                 {"8x2", 2},
                                                 {"8x4", 4},
                                                 {"pred", 1},
                                                 {"128", 16},
                                                 {"64", 8},
                                                 {"32", 4},
                                                 {"16", 2},
                                                 {"8", 1}}};

uint32_t TypeSizeBytes(std::string_view type) {
  for (const TypeSize& row : kTypeSizes) {
    if (type.size() > row.suffix.size() && type.ends_with(row.suffix)) return row.size_bytes;
  }
  return 8;  // .texref, .samplerref, .surfref
}

// What stands before the names.
struct DeclaredType {
  uint32_t size_bytes = 0;
  uint32_t align_bytes = 0;  // as stated, else that of the type
};

// Takes `.align 16 .b8` and the like up to the first name.
bool TakeType(TokenCursor& cursor, DeclaredType& type) {
  uint32_t elements = 1;
  uint32_t stated = 0;
  bool of_pointer = false;
  while (cursor.IsWord() && cursor.text().front() == '.') {
    const std::string_view word = cursor.text();
    cursor.Advance();
    if (word == ".align") {
      uint64_t align = 0;
      if (!cursor.TakeNumber(align) || align == 0 || align > 4096 || (align & (align - 1)) != 0) {
        return cursor.Fail("an alignment that is no power of two up to 4096");
      }
      if (!of_pointer) stated = static_cast<uint32_t>(align);
    } else if (word == ".attribute") {
      if (!cursor.SkipBalanced('(', ')')) return false;
    } else if (word == ".v2" || word == ".v4" || word == ".v8") {
      elements = static_cast<uint32_t>(word[2] - '0');
    } else if (word == ".ptr") {
      of_pointer = true;  // a further alignment is that of what it points to
    } else if (!of_pointer) {
      type.size_bytes = TypeSizeBytes(word);
    }
  }
  type.size_bytes *= elements;
  type.align_bytes = stated != 0 ? stated : std::max<uint32_t>(1, type.size_bytes);
  return true;
}

// Takes `[4][8]` behind a name. `count` 0: an open array.
bool TakeDimensions(TokenCursor& cursor, uint64_t& count) {
  count = 1;
  while (cursor.TakeSign('[')) {
    uint64_t size = 0;
    if (!cursor.IsSign(']') && !cursor.TakeNumber(size)) {
      return cursor.Fail("an array whose size is no number");
    }
    if (!cursor.TakeSign(']')) return cursor.Fail("an array whose size does not end");
    if (size > UINT32_MAX || count > UINT32_MAX) return cursor.Fail("an array beyond 4 GB");
    count *= size;
  }
  return count <= UINT32_MAX || cursor.Fail("an array beyond 4 GB");
}

// Skips `= {...}` up to the next comma or semicolon.
bool SkipInitialiser(TokenCursor& cursor) {
  if (!cursor.TakeSign('=')) return true;
  while (!cursor.AtEnd() && !cursor.IsSign(',') && !cursor.IsSign(';')) {
    if (cursor.IsSign('{')) {
      if (!cursor.SkipBalanced('{', '}')) return false;
    } else {
      cursor.Advance();
    }
  }
  return true;
}

SymbolKind KindOf(std::string_view space) {
  if (space == ".reg") return SymbolKind::kRegister;
  if (space == ".local") return SymbolKind::kLocal;
  if (space == ".shared" || space == ".shared::cta") return SymbolKind::kShared;
  if (space == ".param") return SymbolKind::kParameter;
  return SymbolKind::kGlobal;
}

void CountShared(const Symbol& symbol, Module& module) {
  const uint64_t align = symbol.align_bytes;
  const uint64_t begin = (module.static_shared_bytes + align - 1) / align * align;
  module.static_shared_bytes =
      static_cast<uint32_t>(std::min<uint64_t>(begin + symbol.size_bytes, UINT32_MAX));
}

bool TakeRange(TokenCursor& cursor, std::string_view name, SymbolTable& symbols) {
  uint64_t count = 0;
  if (!cursor.TakeNumber(count) || count > kRegisterRangeMax || !cursor.TakeSign('>')) {
    return cursor.Fail("a range of registers without a size up to " +
                       std::to_string(kRegisterRangeMax));
  }
  symbols.DeclareRange(name, static_cast<uint32_t>(count));
  return true;
}

bool TakeVariable(TokenCursor& cursor, SymbolKind kind, bool is_extern, const DeclaredType& type,
                  SymbolTable& symbols, Module& module) {
  if (!cursor.IsWord()) return cursor.Fail("a declaration without a name");
  const std::string_view name = cursor.text();
  cursor.Advance();
  if (kind == SymbolKind::kRegister && cursor.TakeSign('<')) {
    return TakeRange(cursor, name, symbols);
  }
  uint64_t count = 1;
  if (!TakeDimensions(cursor, count)) return false;
  const uint64_t bytes = std::min<uint64_t>(count * type.size_bytes, UINT32_MAX);
  Symbol symbol{kind, static_cast<uint32_t>(bytes), type.align_bytes};
  if (kind == SymbolKind::kShared) {
    if (is_extern) {
      symbol.kind = SymbolKind::kDynamicShared;
      module.dynamic_shared = true;
    } else {
      CountShared(symbol, module);
    }
  }
  symbols.Declare(name, symbol);
  return SkipInitialiser(cursor);
}

}  // namespace

bool IsStateSpace(std::string_view word) {
  constexpr std::array<std::string_view, 9> kSpaces = {
      ".reg", ".local", ".shared", ".shared::cta", ".global", ".const", ".param", ".tex", ".sreg"};
  return std::find(kSpaces.begin(), kSpaces.end(), word) != kSpaces.end();
}

bool ParseDeclaration(TokenCursor& cursor, bool is_extern, SymbolTable& symbols, Module& module) {
  const SymbolKind kind = KindOf(cursor.text());
  cursor.Advance();
  DeclaredType type;
  if (!TakeType(cursor, type)) return false;
  do {
    if (module.symbols.size() >= kSymbolsMax) {
      return cursor.Fail("more than " + std::to_string(kSymbolsMax) + " names", Reason::kTooLarge);
    }
    if (!TakeVariable(cursor, kind, is_extern, type, symbols, module)) return false;
  } while (cursor.TakeSign(','));
  return cursor.TakeSign(';') || cursor.Fail("a declaration that does not end with ';'");
}

bool ParseParameters(TokenCursor& cursor, SymbolTable& symbols,
                     std::vector<Parameter>& parameters) {
  if (cursor.TakeSign(')')) return true;
  do {
    if (!cursor.IsWord() || cursor.text() != ".param") {
      return cursor.Fail("a parameter that does not begin with .param");
    }
    cursor.Advance();
    DeclaredType type;
    if (!TakeType(cursor, type)) return false;
    if (!cursor.IsWord()) return cursor.Fail("a parameter without a name");
    Parameter parameter;
    parameter.name = cursor.text();
    cursor.Advance();
    uint64_t count = 1;
    if (!TakeDimensions(cursor, count)) return false;
    parameter.size_bytes =
        static_cast<uint32_t>(std::min<uint64_t>(count * type.size_bytes, UINT32_MAX));
    parameter.align_bytes = type.align_bytes;
    parameter.symbol = symbols.Declare(
        parameter.name,
        Symbol{SymbolKind::kParameter, parameter.size_bytes, parameter.align_bytes});
    parameters.push_back(parameter);
  } while (cursor.TakeSign(','));
  return cursor.TakeSign(')') || cursor.Fail("parameters that do not end with ')'");
}

}  // namespace gpushare::ptx
