// Cuts PTX text into tokens that keep their place in it.
//
// Where in the flow: lexer -> parser -> flow graph -> checks -> transforms.
// Invariants: tokens are in the order of the text and do not overlap. Comments and spaces are
// between tokens. Time is linear in the text.
// Threads: any; pure functions.

#ifndef GPUSHARE_SRC_PTX_TEXT_LEXER_H_
#define GPUSHARE_SRC_PTX_TEXT_LEXER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/ptx/base/refusal.h"

namespace gpushare::ptx {

enum class TokenKind : uint8_t {
  kWord,    // opcode, register, label, directive: `ld.global.L1::evict_last.v4.b32`, `%ctaid.x`
  kNumber,  // `7`, `0x1F`, `0f3F800000`, `9.0`
  kText,    // "..." with its quotes
  kSign,    // one character: ; , { } [ ] ( ) < > @ ! : | = + - and those of constant expressions
};

struct Token {
  uint32_t begin = 0;  // bytes of the text
  uint32_t end = 0;
  uint32_t line = 0;  // from 1
  TokenKind kind = TokenKind::kSign;
};

// Appends the tokens of `text`. A refusal with a reason if the text has none that fit.
Refusal Lex(std::string_view text, std::vector<Token>& tokens);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_TEXT_LEXER_H_
