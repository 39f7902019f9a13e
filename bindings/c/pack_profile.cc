// Packs a profile for the library: writes a .cc file with the parsed documents as constant arrays.
// The build runs it:
//
//   gpushare_pack_profile profiles/h200.json built_in_profile.cc
//
// A profile that the library would refuse ends the build. The same profile gives the same file.
// Threads: one.

#include <cstdio>
#include <exception>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/core/base/file_io.h"
#include "src/core/base/status.h"
#include "src/models/json/json_document.h"
#include "src/models/learned/learned.h"
#include "src/models/profile/profile.h"
#include "src/models/profile/profile_limits.h"

namespace gpushare::abi {
namespace {

using models::JsonDocument;
using Node = JsonDocument::Node;
using Type = JsonDocument::Type;

constexpr char kNoLearned[] = "{\"schema_version\": 1}";
// Compilers need not take more than 65536 bytes in one literal.
constexpr size_t kLiteralBytes = 8000;

// The texts of a document, each once.
class Texts {
 public:
  JsonDocument::Text Add(absl::string_view text) {
    const auto [found, added] =
        places_.try_emplace(std::string(text), static_cast<uint32_t>(all_.size()));
    if (added) absl::StrAppend(&all_, text);
    return {found->second, static_cast<uint32_t>(text.size())};
  }
  const std::string& all() const { return all_; }

 private:
  std::map<std::string, uint32_t> places_;
  std::string all_;
};

std::string Show(const JsonDocument::Text& text) {
  return absl::StrCat("{", text.begin, ",", text.bytes, "}");
}

// Hexadecimal, which gives back the same bits.
std::string Show(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%a", number);
  return text;
}

std::string ShowValue(const JsonDocument& json, const Node& node, Texts& texts) {
  switch (node.type) {
    case Type::kDouble:
      return absl::StrCat("{.number=", Show(node.number), "}");
    case Type::kBool:
      return absl::StrCat("{.truth=", node.truth ? "true" : "false", "}");
    case Type::kText:
      return absl::StrCat(
          "{.text=", Show(texts.Add(json.texts().substr(node.text.begin, node.text.bytes))), "}");
    case Type::kArray:
    case Type::kObject:
      return absl::StrCat("{.children={", node.children.first, "u,", node.children.count, "}}");
    default:
      return absl::StrCat("{.bits=", node.bits, "u}");
  }
}

// Octal escapes, because a hexadecimal one would swallow the digits behind it.
std::string Literals(absl::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i % kLiteralBytes == 0) out += i == 0 ? "    \"" : "\"\n    \"";
    const char c = text[i];
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", absl::string_view(&text[i], 1));
    } else if (c >= ' ' && c <= '~' && c != '?') {  // no trigraph
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      absl::StrAppend(&out, "\\", byte >> 6, (byte >> 3) & 7, byte & 7);
    }
  }
  return text.empty() ? "    \"\"" : absl::StrCat(out, "\"");
}

// A function `name` that returns the document, and its arrays.
std::string Pack(absl::string_view name, const JsonDocument& json) {
  Texts texts;
  std::string nodes;
  for (const Node& node : json.nodes()) {
    const std::string value = ShowValue(json, node, texts);
    const std::string key = Show(texts.Add(json.texts().substr(node.key.begin, node.key.bytes)));
    absl::StrAppend(&nodes, "    {Type(", static_cast<int>(node.type), "),", key, ",", node.next,
                    "u,", value, "},\n");
  }
  return absl::StrCat("constexpr Node k", name, "Nodes[] = {\n", nodes, "};\nconstexpr char k",
                      name, "Texts[] =\n", Literals(texts.all()), ";\n\n}  // namespace\n\n",
                      "models::JsonDocument ", name, "() {\n  return {k", name,
                      "Nodes, absl::string_view(k", name, "Texts, sizeof(k", name,
                      "Texts) - 1)};\n}\n\nnamespace {\n");
}

absl::Status Run(const std::string& input, const std::string& output) {
  GPUSHARE_ASSIGN_OR_RETURN(const std::string text,
                            core::ReadWholeFile(input, models::kProfileBytesMax));
  GPUSHARE_ASSIGN_OR_RETURN(const JsonDocument json,
                            models::ParseStrictJson(text, "The profile", models::kProfileBytesMax));
  GPUSHARE_ASSIGN_OR_RETURN(const models::Profile profile, models::ReadProfile(json));
  GPUSHARE_ASSIGN_OR_RETURN(
      const JsonDocument learned,
      models::ParseStrictJson(profile.learned.empty() ? kNoLearned : profile.learned,
                              "The learned model", models::kLearnedBytesMax));
  GPUSHARE_RETURN_IF_ERROR(models::ReadLearned(learned).status());
  const std::string source = absl::StrCat(
      "// Made by the build from a profile; do not edit.\n\n"
      "#include \"bindings/c/built_in_profile.h\"\n\n"
      "namespace gpushare::abi {\nnamespace {\n\n"
      "using Node = models::JsonDocument::Node;\nusing Type = models::JsonDocument::Type;\n\n",
      Pack("BuiltInProfile", json), Pack("BuiltInLearned", learned),
      "}  // namespace\n}  // namespace gpushare::abi\n");
  const absl::string_view piece = source;
  return core::WriteFileAtomically(output, absl::MakeConstSpan(&piece, 1));
}

}  // namespace
}  // namespace gpushare::abi

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: gpushare_pack_profile PROFILE.json OUTPUT.cc\n", stderr);
    return 2;
  }
  try {
    const absl::Status status = gpushare::abi::Run(argv[1], argv[2]);
    if (status.ok()) return 0;
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}
