// Parses declarations of variables, registers and parameters.
//
// Where in the flow: part of the parser, for modules and bodies.

#ifndef GPUSHARE_SRC_PTX_TEXT_DECLARATIONS_H_
#define GPUSHARE_SRC_PTX_TEXT_DECLARATIONS_H_

#include <vector>

#include "src/ptx/text/module.h"
#include "src/ptx/text/symbol_table.h"
#include "src/ptx/text/token_cursor.h"

namespace gpushare::ptx {

// From the directive of a state space (`.shared`, `.reg`, `.global`, ...) to behind the semicolon.
bool ParseDeclaration(TokenCursor& cursor, bool is_extern, SymbolTable& symbols, Module& module);

// The parameters of an entry, from behind the opening parenthesis to behind the closing one.
bool ParseParameters(TokenCursor& cursor, SymbolTable& symbols, std::vector<Parameter>& parameters);

// Whether the word is the directive of a state space that declares names.
bool IsStateSpace(std::string_view word);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_TEXT_DECLARATIONS_H_
