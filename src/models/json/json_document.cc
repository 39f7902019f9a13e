// Reads a JSON text by SAX; see json_document.h.

#include "src/models/json/json_document.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace gpushare::models {
namespace {

using Json = nlohmann::json;  // of scalars only: those allocate nothing in their destructor

// A profile nests five deep (kernels, kernel, simulation, nodes, node and its demand). The bound
// keeps a hostile document from using much memory.
constexpr size_t kMaxNesting = 16;
// A profile of 16 MB that is all numbers of seven digits. A value takes 24 bytes here: 50 MB.
constexpr size_t kMaxValues = size_t{1} << 21;
// The largest object of a profile has some thirty keys. The search for a second one is linear.
constexpr uint32_t kMaxKeys = 256;
constexpr size_t kMaxShownBytes = 48;
// nlohmann-json's number for a value that its type cannot hold.
constexpr int kOutOfRangeId = 406;

std::string Cut(std::string text) {
  if (text.size() > kMaxShownBytes) text = absl::StrCat(text.substr(0, kMaxShownBytes), "...");
  return text;
}

std::string Dump(const Json& scalar) {
  return Cut(scalar.dump(-1, ' ', true, Json::error_handler_t::replace));
}

}  // namespace

// The events of the parser, as the document grows. An event that answers false ends the reading.
class JsonReader {
 public:
  using Type = JsonDocument::Type;
  using Node = JsonDocument::Node;

  JsonReader(absl::string_view what, size_t text_bytes) : what_(what), text_bytes_(text_bytes) {
    open_.reserve(kMaxNesting + 1);
  }

  bool null() { return Add({}); }
  bool boolean(bool value) {
    Node node;
    node.type = Type::kBool;
    node.truth = value;
    return Add(node);
  }
  bool number_integer(int64_t value) {
    Node node;
    node.type = Type::kSigned;
    node.bits = static_cast<uint64_t>(value);
    return Add(node);
  }
  bool number_unsigned(uint64_t value) {
    Node node;
    node.type = Type::kUnsigned;
    node.bits = value;
    return Add(node);
  }
  bool number_float(double value, const std::string& /*text*/) {
    Node node;
    node.type = Type::kDouble;
    node.number = value;
    return Add(node);
  }
  bool string(const std::string& value) {
    Node node;
    node.type = Type::kText;
    node.text = Keep(value);
    return Add(node);
  }
  bool binary(const Json::binary_t& /*value*/) { return Stop("holds a binary value."); }
  bool key(const std::string& value) {
    const JsonValue parent(&document_, open_.back().node);
    if (parent.size() == kMaxKeys) {
      return Stop(
          absl::StrCat("has more than ", kMaxKeys, " keys in one object, which is the limit."));
    }
    if (parent.Has(value)) {
      return Stop(absl::StrCat("has the key ", ShowText(value), " twice in one object."));
    }
    key_ = Keep(value);
    return true;
  }
  bool start_object(size_t /*count*/) { return Open(Type::kObject); }
  bool end_object() { return Close(); }
  bool start_array(size_t /*count*/) { return Open(Type::kArray); }
  bool end_array() { return Close(); }
  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) {
    if (error.id == kOutOfRangeId) {
      return Stop("is not valid JSON: it holds a number or text out of range.");
    }
    return Stop(absl::StrCat("is not valid JSON: reading stops at byte ", position, " of ",
                             text_bytes_, "."));
  }

  // Why the reading ended early.
  absl::Status problem() const {
    return absl::InvalidArgumentError(absl::StrCat(what_, " ", problem_));
  }
  JsonDocument Take() { return std::move(document_); }

 private:
  struct Container {
    uint32_t node = 0;
    uint32_t last = JsonDocument::kNone;  // the child that was added last
  };

  bool Stop(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  JsonDocument::Text Keep(const std::string& text) {
    const auto begin = static_cast<uint32_t>(document_.texts_.size());
    document_.texts_.append(text);
    return {begin, static_cast<uint32_t>(text.size())};
  }

  bool Add(Node node) {
    std::vector<Node>& nodes = document_.nodes_;
    if (nodes.size() == kMaxValues) {
      return Stop(absl::StrCat("has more than ", kMaxValues, " values, which is the limit."));
    }
    const auto index = static_cast<uint32_t>(nodes.size());
    node.key = std::exchange(key_, {0, 0});
    nodes.push_back(node);
    if (open_.empty()) return true;
    Container& parent = open_.back();
    (parent.last == JsonDocument::kNone ? nodes[parent.node].children.first
                                        : nodes[parent.last].next) = index;
    parent.last = index;
    ++nodes[parent.node].children.count;
    return true;
  }

  bool Open(Type type) {
    if (open_.size() > kMaxNesting) {
      return Stop(absl::StrCat("nests deeper than ", kMaxNesting, " levels, which is the limit."));
    }
    const auto index = static_cast<uint32_t>(document_.nodes_.size());
    Node node;
    node.type = type;
    node.children = {JsonDocument::kNone, 0};
    if (!Add(node)) return false;
    open_.push_back({index, JsonDocument::kNone});
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  const absl::string_view what_;
  const size_t text_bytes_;
  JsonDocument document_;
  JsonDocument::Text key_ = {0, 0};  // of the next value
  std::vector<Container> open_;
  std::string problem_;
};

double JsonValue::number() const {
  if (type() == Type::kDouble) return node().number;
  return type() == Type::kUnsigned ? static_cast<double>(unsigned_whole())
                                   : static_cast<double>(whole());
}

bool JsonValue::Has(absl::string_view key) const {
  for (const JsonValue member : *this) {
    if (member.key() == key) return true;
  }
  return false;
}

std::string ShowText(absl::string_view text) { return Dump(Json(std::string(text))); }

std::string ShowJson(const JsonValue& value) {
  switch (value.type()) {
    case JsonDocument::Type::kObject:
      return "an object";
    case JsonDocument::Type::kArray:
      return "an array";
    case JsonDocument::Type::kText:
      return ShowText(value.text());
    case JsonDocument::Type::kBool:
      return value.truth() ? "true" : "false";
    case JsonDocument::Type::kSigned:
      return absl::StrCat(value.whole());
    case JsonDocument::Type::kUnsigned:
      return absl::StrCat(value.unsigned_whole());
    case JsonDocument::Type::kDouble:
      return Dump(Json(value.number()));
    case JsonDocument::Type::kNull:
      break;
  }
  return "null";
}

absl::StatusOr<JsonDocument> ParseStrictJson(absl::string_view text, absl::string_view what,
                                             int64_t bytes_max) {
  if (static_cast<int64_t>(text.size()) > bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has ", text.size(), " bytes, and the limit is ", bytes_max, "."));
  }
  JsonReader reader(what, text.size());
  if (!Json::sax_parse(text.begin(), text.end(), &reader)) return reader.problem();
  return reader.Take();
}

}  // namespace gpushare::models
