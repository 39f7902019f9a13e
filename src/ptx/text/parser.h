// Parses a module: its entries, and the asked entry's statements with their symbols.
//
// Where in the flow: lexer -> parser -> flow graph -> checks -> transforms.
// Invariants: no recursion; time and memory are linear in the tokens.
// Threads: any; pure functions.

#ifndef GPUSHARE_SRC_PTX_TEXT_PARSER_H_
#define GPUSHARE_SRC_PTX_TEXT_PARSER_H_

#include <string_view>

#include "src/ptx/base/refusal.h"
#include "src/ptx/text/module.h"

namespace gpushare::ptx {

// Fills `module` from `text`. An empty `entry` asks for the module's only one; with
// `entries_only` no body is parsed.
Refusal Parse(std::string_view text, std::string_view entry, bool entries_only, Module& module);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_TEXT_PARSER_H_
