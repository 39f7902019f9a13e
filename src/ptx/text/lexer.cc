// Tokens of a text. See lexer.h.

#include "src/ptx/text/lexer.h"

#include <cstddef>
#include <string>

#include "src/ptx/base/limits.h"

namespace gpushare::ptx {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c); }

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f'; }

constexpr std::string_view kSigns = ";,{}[]()<>@!:|=+-*/~&?^%";

class Lexer {
 public:
  Lexer(std::string_view text, std::vector<Token>& tokens) : text_(text), tokens_(tokens) {}

  Refusal Run() {
    while (SkipBlank()) {
      if (tokens_.size() >= kTokensMax) {
        return {Reason::kTooLarge, line_,
                "The text has more than " + std::to_string(kTokensMax) + " tokens."};
      }
      Token token;
      token.begin = static_cast<uint32_t>(at_);
      token.line = line_;
      if (!Take(token.kind)) {
        if (refusal_.reason == Reason::kNone) Fail("a character that PTX does not have");
        return refusal_;
      }
      token.end = static_cast<uint32_t>(at_);
      tokens_.push_back(token);
    }
    return refusal_;
  }

 private:
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void Fail(const char* what) {
    refusal_ = {Reason::kSyntax, line_,
                "Line " + std::to_string(line_) + " has " + std::string(what) + "."};
  }

  // Skips spaces and comments. False at the end of the text or at an error.
  bool SkipBlank() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (IsSpace(c)) {
        ++at_;
      } else if (c == '/' && Peek(1) == '/') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '/' && Peek(1) == '*') {
        if (!SkipLongComment()) return false;
      } else if (c == '\0' && at_ + 1 == text_.size()) {
        return false;  // a C string's end
      } else {
        return true;
      }
    }
    return false;
  }

  bool SkipLongComment() {
    const size_t end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos) {
      Fail("a comment that does not end");
      return false;
    }
    for (; at_ < end + 2; ++at_) line_ += text_[at_] == '\n';
    return true;
  }

  bool Take(TokenKind& kind) {
    const char c = Peek();
    if (IsNameStart(c) || ((c == '%' || c == '.') && IsNameStart(Peek(1)))) {
      kind = TokenKind::kWord;
      TakeName();
      return true;
    }
    if (IsDigit(c)) {
      kind = TokenKind::kNumber;
      // `15.` too: a decimal point may be the last character of a number.
      while (IsNamePart(Peek()) || (Peek() == '.' && (IsDigit(Peek(1)) || !IsNamePart(Peek(1))))) {
        ++at_;
      }
      return true;
    }
    if (c == '"') {
      kind = TokenKind::kText;
      return TakeText();
    }
    kind = TokenKind::kSign;
    ++at_;
    return kSigns.find(c) != std::string_view::npos;
  }

  // Names are joined over dots and `::`: an opcode with its modifiers is one word.
  void TakeName() {
    ++at_;
    for (;;) {
      if (IsNamePart(Peek())) {
        ++at_;
      } else if (Peek() == '.' && IsNamePart(Peek(1))) {
        at_ += 2;
      } else if (Peek() == ':' && Peek(1) == ':' && IsNamePart(Peek(2))) {
        at_ += 3;
      } else {
        return;
      }
    }
  }

  bool TakeText() {
    for (++at_; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '\\' && Peek(1) != '\n') {
        ++at_;
      } else if (text_[at_] == '"') {
        ++at_;
        return true;
      }
    }
    Fail("a text that does not end");
    return false;
  }

  std::string_view text_;
  std::vector<Token>& tokens_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  Refusal refusal_;
};

}  // namespace

Refusal Lex(std::string_view text, std::vector<Token>& tokens) {
  if (text.size() > kTextBytesMax) {
    return {Reason::kTooLarge, 0,
            "The text has " + std::to_string(text.size()) + " bytes, and the limit is " +
                std::to_string(kTextBytesMax) + "."};
  }
  tokens.reserve(text.size() / 5 + 1);
  return Lexer(text, tokens).Run();
}

}  // namespace gpushare::ptx
