// A parsed module: what the parser reads and every later stage uses.
//
// Where in the flow: vocabulary between parser, flow graph, checks and transforms.
// Invariants: views and spans point into the text that was parsed, which must outlive the module.
// Only the asked entry's body is parsed into statements; other bodies are skipped by their braces.

#ifndef GPUSHARE_SRC_PTX_TEXT_MODULE_H_
#define GPUSHARE_SRC_PTX_TEXT_MODULE_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "src/ptx/text/lexer.h"

namespace gpushare::ptx {

using SymbolId = int32_t;
inline constexpr SymbolId kNoSymbol = -1;

enum class SymbolKind : uint8_t {
  kRegister,
  kParameter,
  kLocal,
  kShared,
  kDynamicShared,  // extern .shared
  kGlobal,         // .global, .const and references of textures
  kFunction,
};

struct Symbol {
  SymbolKind kind = SymbolKind::kRegister;
  uint32_t size_bytes = 0;   // of a variable
  uint32_t align_bytes = 1;  // of a variable
};

// An operand's register, variable, label, special register or number.
struct Word {
  std::string_view text;
  uint32_t begin = 0;  // bytes of the text
  uint32_t line = 0;
  uint16_t operand = 0;  // which of the operands between commas; those in braces are one
  bool is_number = false;
  bool in_address = false;  // within [ ]
  bool negative = false;    // a number behind a minus
  SymbolId symbol = kNoSymbol;
};

enum class StatementKind : uint8_t {
  kInstruction,
  kLabel,
  kDirective,  // .reg, .local, .shared, .param, .pragma, .branchtargets: not executed
  kLocation,   // .loc
};

struct Statement {
  StatementKind kind = StatementKind::kInstruction;
  bool guard_negated = false;
  uint32_t begin = 0;  // bytes of the text, the guard included
  uint32_t end = 0;    // behind the semicolon
  uint32_t line = 0;
  uint32_t scope = 0;
  SymbolId guard = kNoSymbol;
  uint32_t first_word = 0;  // of Module::words
  uint32_t word_count = 0;
  std::string_view name;  // opcode with modifiers, directive or label
  uint32_t name_begin = 0;
  uint32_t name_end = 0;
};

struct Parameter {
  std::string_view name;
  SymbolId symbol = kNoSymbol;
  uint32_t size_bytes = 0;
  uint32_t align_bytes = 0;
};

struct Entry {
  std::string_view name;
  uint32_t line = 0;
  uint32_t begin = 0;             // of the linkage directive
  uint32_t name_begin = 0;        // of the name
  uint32_t name_end = 0;          //
  uint32_t parameters_begin = 0;  // behind the parenthesis; 0: the entry has none
  uint32_t body_begin = 0;        // of the opening brace
  uint32_t end = 0;               // behind the closing brace
  std::vector<Parameter> parameters;
  std::array<uint32_t, 3> block_required = {0, 0, 0};
  std::array<uint32_t, 3> block_max = {0, 0, 0};
  uint32_t registers_max = 0;  // .maxnreg
  std::string_view cluster;    // the directive that asks for clusters
  uint32_t cluster_line = 0;
};

struct Scope {
  uint32_t parent = 0;  // scope 0 is the body's own
};

struct Module {
  std::string_view text;
  uint32_t version_major = 0;
  uint32_t version_minor = 0;
  uint32_t target = 0;  // 90 of sm_90a
  uint32_t address_bits = 0;
  uint32_t target_line = 0;
  uint32_t version_line = 0;
  std::vector<std::string_view> entries;
  // Of the asked entry.
  Entry entry;
  std::vector<Symbol> symbols;
  std::vector<Scope> scopes;
  std::vector<Statement> statements;
  std::vector<Word> words;
  uint32_t static_shared_bytes = 0;
  bool dynamic_shared = false;
};

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_TEXT_MODULE_H_
