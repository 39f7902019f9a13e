// Parses the body of an entry into statements.
//
// Where in the flow: part of the parser. Braces open scopes; registers of a scope hide those of
// the scopes around it. Labels are resolved later, by scope, because they may follow their use.

#ifndef GPUSHARE_SRC_PTX_TEXT_BODY_PARSER_H_
#define GPUSHARE_SRC_PTX_TEXT_BODY_PARSER_H_

#include <cstdint>
#include <vector>

#include "src/ptx/text/module.h"
#include "src/ptx/text/symbol_table.h"
#include "src/ptx/text/token_cursor.h"

namespace gpushare::ptx {

class BodyParser {
 public:
  BodyParser(TokenCursor& cursor, SymbolTable& symbols, Module& module)
      : cursor_(cursor), symbols_(symbols), module_(module) {}

  // From the opening brace to behind the closing one.
  bool Run();

 private:
  bool OpenScope();
  void CloseScope();
  bool TakeStatement();
  bool TakeDirective();
  bool TakeNumbers(int count);
  bool TakeLocation();
  bool TakeFile();
  bool TakeInstruction();
  bool TakeGuard(Statement& statement);
  bool TakeOperands();
  void AddWord(uint16_t operand, bool in_address, bool negative);
  Statement Begin(StatementKind kind) const;
  void End(Statement& statement);

  TokenCursor& cursor_;
  SymbolTable& symbols_;
  Module& module_;
  std::vector<uint32_t> open_;  // scopes, the innermost last
};

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_TEXT_BODY_PARSER_H_
