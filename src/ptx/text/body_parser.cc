// Statements of a body. See body_parser.h.

#include "src/ptx/text/body_parser.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "src/ptx/base/limits.h"
#include "src/ptx/text/declarations.h"

namespace gpushare::ptx {

bool BodyParser::Run() {
  do {
    if (cursor_.IsSign('{')) {
      if (!OpenScope()) return false;
    } else if (cursor_.IsSign('}')) {
      CloseScope();
    } else if (cursor_.AtEnd()) {
      return cursor_.Fail("an end of the text inside a body");
    } else if (!TakeStatement()) {
      return false;
    }
  } while (!open_.empty());
  return true;
}

bool BodyParser::OpenScope() {
  if (open_.size() >= kScopeDepthMax) {
    return cursor_.Fail("more than " + std::to_string(kScopeDepthMax) + " nested scopes",
                        Reason::kTooLarge);
  }
  Scope scope;
  scope.parent = open_.empty() ? 0 : open_.back();
  open_.push_back(static_cast<uint32_t>(module_.scopes.size()));
  module_.scopes.push_back(scope);
  symbols_.Open();
  cursor_.Advance();
  return true;
}

void BodyParser::CloseScope() {
  symbols_.Close();
  open_.pop_back();
  cursor_.Advance();
}

Statement BodyParser::Begin(StatementKind kind) const {
  Statement statement;
  statement.kind = kind;
  statement.begin = cursor_.token().begin;
  statement.line = cursor_.line();
  statement.scope = open_.back();
  statement.first_word = static_cast<uint32_t>(module_.words.size());
  statement.name = cursor_.text();
  statement.name_begin = cursor_.token().begin;
  statement.name_end = cursor_.token().end;
  return statement;
}

void BodyParser::End(Statement& statement) {
  statement.end = cursor_.last_end();
  statement.word_count = static_cast<uint32_t>(module_.words.size()) - statement.first_word;
  module_.statements.push_back(statement);
}

bool BodyParser::TakeStatement() {
  if (cursor_.TakeSign(';')) return true;
  if (!cursor_.IsWord()) {
    return cursor_.IsSign('@') ? TakeInstruction()
                               : cursor_.Fail("no statement where one is expected");
  }
  const Token& next = cursor_.Next(1);
  if (next.kind == TokenKind::kSign && cursor_.TextOf(next) == ":") {
    Statement label = Begin(StatementKind::kLabel);
    cursor_.Advance();
    cursor_.Advance();
    End(label);
    return true;
  }
  return cursor_.text().front() == '.' ? TakeDirective() : TakeInstruction();
}

bool BodyParser::TakeDirective() {
  const std::string_view word = cursor_.text();
  if (word == ".loc" || word == ".file") {
    Statement location = Begin(StatementKind::kLocation);
    if (!(word == ".loc" ? TakeLocation() : TakeFile())) return false;
    const bool more = !cursor_.AtEnd() && cursor_.line() == location.line;
    if (more) return cursor_.Fail("'" + std::string(word) + "' and more behind it");
    End(location);
    return true;
  }
  Statement directive = Begin(StatementKind::kDirective);
  if (IsStateSpace(word)) {
    if (!ParseDeclaration(cursor_, false, symbols_, module_)) return false;
  } else if (word == ".branchtargets") {
    cursor_.Advance();
    if (!TakeOperands()) return false;
  } else if (word == ".pragma" || word == ".callprototype" || word == ".calltargets") {
    if (!cursor_.SkipPast(';')) return false;
  } else {
    return cursor_.Fail("'" + std::string(word.substr(0, 80)) +
                        "', which the parser does not know in a body");
  }
  End(directive);
  return true;
}

bool BodyParser::TakeNumbers(int count) {
  for (uint64_t number = 0; count > 0; --count) {
    if (!cursor_.TakeNumber(number)) return cursor_.Fail("a place in a source without its numbers");
  }
  return true;
}

// .loc FILE LINE COLUMN [, function_name LABEL [+ N]] [, inlined_at FILE LINE COLUMN]
bool BodyParser::TakeLocation() {
  cursor_.Advance();
  if (!TakeNumbers(3)) return false;
  while (cursor_.TakeSign(',')) {
    const std::string_view what = cursor_.text();
    if (what != "function_name" && what != "inlined_at") {
      return cursor_.Fail("an attribute of .loc that the parser does not know");
    }
    cursor_.Advance();
    if (what == "inlined_at") {
      if (!TakeNumbers(3)) return false;
      continue;
    }
    if (!cursor_.IsWord()) return cursor_.Fail("a function_name without a label");
    cursor_.Advance();
    if (cursor_.TakeSign('+') && !TakeNumbers(1)) return false;
  }
  return true;
}

// .file NUMBER "NAME" [, TIME, SIZE]
bool BodyParser::TakeFile() {
  cursor_.Advance();
  if (!TakeNumbers(1)) return false;
  if (cursor_.token().kind != TokenKind::kText) return cursor_.Fail("a file without a name");
  cursor_.Advance();
  while (cursor_.TakeSign(',')) {
    if (!TakeNumbers(1)) return false;
  }
  return true;
}

bool BodyParser::TakeGuard(Statement& statement) {
  if (!cursor_.TakeSign('@')) return true;
  statement.guard_negated = cursor_.TakeSign('!');
  if (!cursor_.IsWord()) return cursor_.Fail("a guard without a register");
  statement.guard = symbols_.Find(cursor_.text());
  if (statement.guard == kNoSymbol) {
    return cursor_.Fail(
        "the guard '" + std::string(cursor_.text().substr(0, 80)) + "', which nothing declares",
        Reason::kUnknownSymbol);
  }
  cursor_.Advance();
  return true;
}

bool BodyParser::TakeInstruction() {
  Statement statement = Begin(StatementKind::kInstruction);
  if (!TakeGuard(statement)) return false;
  if (!cursor_.IsWord() || cursor_.text().front() == '%' || cursor_.text().front() == '.') {
    return cursor_.Fail("no opcode where one is expected");
  }
  statement.name = cursor_.text();
  statement.name_begin = cursor_.token().begin;
  statement.name_end = cursor_.token().end;
  cursor_.Advance();
  if (!TakeOperands()) return false;
  End(statement);
  return true;
}

void BodyParser::AddWord(uint16_t operand, bool in_address, bool negative) {
  Word word;
  word.text = cursor_.text();
  word.begin = cursor_.token().begin;
  word.line = cursor_.line();
  word.operand = operand;
  word.is_number = cursor_.IsNumber();
  word.in_address = in_address;
  word.negative = negative;
  if (!word.is_number) word.symbol = symbols_.Find(word.text);
  module_.words.push_back(word);
}

// Up to behind the semicolon.
bool BodyParser::TakeOperands() {
  std::string closers;  // of the brackets that are open
  uint16_t operand = 0;
  bool negative = false;
  for (; !cursor_.AtEnd(); cursor_.Advance()) {
    const Token& token = cursor_.token();
    if (token.kind == TokenKind::kWord || token.kind == TokenKind::kNumber) {
      AddWord(operand, closers.find(']') != std::string::npos, negative);
      negative = false;
      continue;
    }
    if (token.kind == TokenKind::kText) continue;
    const char sign = cursor_.text().front();
    negative = sign == '-';
    if (sign == '[' || sign == '{' || sign == '(') {
      if (closers.size() >= kScopeDepthMax) return cursor_.Fail("operands that nest too deep");
      closers.push_back(sign == '[' ? ']' : sign == '{' ? '}' : ')');
    } else if (sign == ']' || sign == '}' || sign == ')') {
      if (closers.empty() || closers.back() != sign) {
        return cursor_.Fail(std::string("a '") + sign + "' that closes nothing");
      }
      closers.pop_back();
    } else if (sign == ',' && closers.empty()) {
      if (++operand == UINT16_MAX) return cursor_.Fail("too many operands", Reason::kTooLarge);
    } else if (sign == ';') {
      if (!closers.empty()) return cursor_.Fail("a statement that ends inside brackets");
      cursor_.Advance();
      return true;
    } else if (sign == '@' || sign == ':') {
      return cursor_.Fail(std::string("a '") + sign + "' among operands");
    }
  }
  return cursor_.Fail("an end of the text inside a statement");
}

}  // namespace gpushare::ptx
