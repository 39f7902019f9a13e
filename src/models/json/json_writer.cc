// Writes JSON text; see json_writer.h.

#include "src/models/json/json_writer.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace gpushare::models {
namespace {

// Of a scalar, whose destructor allocates nothing.
std::string Dump(const nlohmann::json& scalar) {
  return scalar.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void JsonWriter::BeginLine() {
  if (indentation_ < 0) return;
  out_ += '\n';
  out_.append(static_cast<size_t>(depth_) * static_cast<size_t>(indentation_), ' ');
}

// What stands before a value or a key: the comma after the one before, and the line.
void JsonWriter::BeginValue() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (depth_ == 0) return;
  if (!first_) out_ += ',';
  first_ = false;
  BeginLine();
}

void JsonWriter::Begin(char bracket) {
  BeginValue();
  out_ += bracket;
  ++depth_;
  first_ = true;
}

void JsonWriter::End(char bracket) {
  --depth_;
  if (!first_) BeginLine();
  out_ += bracket;
  first_ = false;
}

void JsonWriter::Key(absl::string_view key) {
  BeginValue();
  absl::StrAppend(&out_, "\"", key, indentation_ < 0 ? "\":" : "\": ");
  after_key_ = true;
}

void JsonWriter::Write(int64_t value) {
  BeginValue();
  absl::StrAppend(&out_, value);
}

void JsonWriter::Write(uint64_t value) {
  BeginValue();
  absl::StrAppend(&out_, value);
}

void JsonWriter::Write(double value) {
  BeginValue();
  out_ += Dump(value);
}

void JsonWriter::Write(bool value) {
  BeginValue();
  out_ += value ? "true" : "false";
}

void JsonWriter::Write(absl::string_view text) {
  BeginValue();
  out_ += Dump(std::string(text));
}

void JsonWriter::WriteNull() {
  BeginValue();
  out_ += "null";
}

}  // namespace gpushare::models
