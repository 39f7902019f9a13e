#include "src/sim/warp/trace.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "src/core/base/status.h"
#include "src/sim/warp/op_words.h"

namespace gpushare::sim::warp {
namespace {

using Words = std::vector<absl::string_view>;

// A word of the file in a message: no longer than a name, and printable.
std::string Quoted(absl::string_view word) {
  std::string quoted = "'";
  for (const char c : word.substr(0, kMaxTraceNameBytes)) {
    quoted += c >= ' ' && c <= '~' ? c : '?';
  }
  return quoted + "'";
}

absl::Status Invalid(const std::string& sentence) { return absl::InvalidArgumentError(sentence); }

absl::StatusOr<int64_t> Number(absl::string_view what, absl::string_view word, int64_t least,
                               int64_t most) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(word, &value) || value < least || value > most) {
    return Invalid(absl::StrCat(what, " is ", Quoted(word), ", and it must be a number in ", least,
                                " to ", most, "."));
  }
  return value;
}

bool IsName(absl::string_view word) {
  return !word.empty() && word.size() <= kMaxTraceNameBytes &&
         std::all_of(word.begin(), word.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '.';
         });
}

class Reader {
 public:
  absl::Status ReadLine(const Words& words);
  // After the last line.
  absl::StatusOr<Program> Finish();

 private:
  struct Loop {
    int32_t begin = 0;
    int64_t count = 0;
  };

  absl::Status ReadHead(const Words& words);
  absl::Status ReadRegion(const Words& words);
  absl::Status ReadLoop(const Words& words);
  absl::Status ReadEnd(const Words& words);
  absl::Status ReadOp(OpKind kind, const Words& words);
  absl::Status ReadOption(Op& op, absl::string_view key, absl::string_view value);
  absl::Status ReadAccessOption(Op& op, absl::string_view key, absl::string_view value);
  absl::Status ReadAfter(Op& op, absl::string_view value);
  absl::Status ReadWays(Op& op, absl::string_view value);
  absl::Status Add(const Op& op, int64_t times);

  Program program_;
  bool has_version_ = false;
  bool has_kernel_ = false;
  std::vector<Loop> loops_;
};

absl::Status Reader::ReadHead(const Words& words) {
  if (words.size() != 2) {
    return Invalid(absl::StrCat("The line of ", Quoted(words[0]), " has ", words.size() - 1,
                                " values, and it takes one."));
  }
  if (words[0] == "kernel") {
    if (!IsName(words[1])) {
      return Invalid(absl::StrCat("The kernel's name is ", Quoted(words[1]),
                                  ", and it must be 1 to ", kMaxTraceNameBytes,
                                  " letters, digits, '.', '_' or '-'."));
    }
    program_.name = std::string(words[1]);
    has_kernel_ = true;
  } else if (words[0] == "warps") {
    GPUSHARE_ASSIGN_OR_RETURN(const int64_t warps, Number("The number of warps of a block",
                                                          words[1], 1, kMaxWarpsPerBlock));
    program_.warps_per_block = static_cast<int>(warps);
  } else if (words[0] == "blocks") {
    GPUSHARE_ASSIGN_OR_RETURN(program_.grid_blocks,
                              Number("The number of blocks", words[1], 1, kMaxGridBlocks));
  } else {
    GPUSHARE_ASSIGN_OR_RETURN(program_.shared_bytes, Number("The shared memory of a block in bytes",
                                                            words[1], 0, 1 << 20));
  }
  return absl::OkStatus();
}

absl::Status Reader::ReadRegion(const Words& words) {
  if (words.size() != 3 || !IsName(words[1])) {
    return Invalid("A region must be 'region NAME BYTES'.");
  }
  const auto same = [&words](const Region& region) { return region.name == words[1]; };
  if (std::any_of(program_.regions.begin(), program_.regions.end(), same)) {
    return Invalid(absl::StrCat("Region ", Quoted(words[1]), " exists already."));
  }
  if (program_.regions.size() == kMaxRegions) {
    return Invalid(absl::StrCat("There are more than ", kMaxRegions, " regions."));
  }
  GPUSHARE_ASSIGN_OR_RETURN(
      const int64_t bytes, Number("The size of a region in bytes", words[2], 128, kMaxRegionBytes));
  program_.regions.push_back({std::string(words[1]), bytes});
  return absl::OkStatus();
}

absl::Status Reader::ReadLoop(const Words& words) {
  if (words.size() != 2) return Invalid("A loop must be 'loop COUNT'.");
  if (loops_.size() == kMaxLoopDepth) {
    return Invalid(absl::StrCat("Loops are nested deeper than ", kMaxLoopDepth, "."));
  }
  GPUSHARE_ASSIGN_OR_RETURN(const int64_t count,
                            Number("The count of a loop", words[1], 1, kMaxLoopCount));
  loops_.push_back({static_cast<int32_t>(program_.ops.size()), count});
  return absl::OkStatus();
}

absl::Status Reader::ReadEnd(const Words& words) {
  if (words.size() != 1) return Invalid("The end of a loop must be 'end' alone.");
  if (loops_.empty()) return Invalid("An 'end' has no loop before it.");
  const Loop loop = loops_.back();
  loops_.pop_back();
  if (loop.begin == std::ssize(program_.ops)) return Invalid("The loop that ends here is empty.");
  Op end;
  end.kind = OpKind::kLoopEnd;
  end.target = loop.begin;
  end.depth = static_cast<uint8_t>(loops_.size());
  end.count = loop.count;
  return Add(end, 1);
}

absl::Status Reader::Add(const Op& op, int64_t times) {
  if (std::ssize(program_.ops) + times > kMaxOps) {
    return Invalid(absl::StrCat("The kernel has more than ", kMaxOps,
                                " operations. Use loops for what repeats."));
  }
  program_.ops.insert(program_.ops.end(), static_cast<size_t>(times), op);
  return absl::OkStatus();
}

absl::Status Reader::ReadAfter(Op& op, absl::string_view value) {
  const Words distances = absl::StrSplit(value, ',');
  if (distances.size() > kMaxDependences) {
    return Invalid(absl::StrCat("An instruction waits for ", distances.size(),
                                " others, and the limit is ", kMaxDependences, "."));
  }
  for (size_t i = 0; i < distances.size(); ++i) {
    GPUSHARE_ASSIGN_OR_RETURN(const int64_t distance,
                              Number("The distance to a producer", distances[i], 1, kMaxDistance));
    op.after[i] = static_cast<uint8_t>(distance);
  }
  return absl::OkStatus();
}

// ways=3 or ways=1-4.
absl::Status Reader::ReadWays(Op& op, absl::string_view value) {
  const std::pair<absl::string_view, absl::string_view> range =
      absl::StrSplit(value, absl::MaxSplits('-', 1));
  GPUSHARE_ASSIGN_OR_RETURN(const int64_t least, Number("The number of ways", range.first, 1, 32));
  int64_t most = least;
  if (range.first.size() != value.size()) {
    GPUSHARE_ASSIGN_OR_RETURN(most, Number("The largest number of ways", range.second, least, 32));
  }
  op.ways_min = static_cast<uint8_t>(least);
  op.ways_max = static_cast<uint8_t>(most);
  return absl::OkStatus();
}

absl::Status Reader::ReadAccessOption(Op& op, absl::string_view key, absl::string_view value) {
  if (key == "lines") {
    GPUSHARE_ASSIGN_OR_RETURN(const int64_t lines,
                              Number("The number of lines", value, 1, kMaxLines));
    op.lines = static_cast<uint8_t>(lines);
    return absl::OkStatus();
  }
  if (key == "sectors") {
    GPUSHARE_ASSIGN_OR_RETURN(const int64_t sectors, Number("The number of sectors", value, 1, 4));
    op.sectors = static_cast<uint8_t>(sectors);
    return absl::OkStatus();
  }
  for (const ByteOption& option : kByteOptions) {
    if (key != option.word) continue;
    const int64_t most = key == "stride" ? kMaxLineStrideBytes : kMaxStrideBytes;
    GPUSHARE_ASSIGN_OR_RETURN(option.field(op), Number("A distance in bytes", value, 0, most));
    return absl::OkStatus();
  }
  return Invalid(absl::StrCat("The option ", Quoted(key), " of ",
                              Quoted(kOpWords[static_cast<size_t>(op.kind)]), " is unknown."));
}

absl::Status Reader::ReadOption(Op& op, absl::string_view key, absl::string_view value) {
  if (key == "after") return ReadAfter(op, value);
  if (key == "ways" && op.kind == OpKind::kShared) return ReadWays(op, value);
  if (IsMemoryAccess(op.kind)) return ReadAccessOption(op, key, value);
  const bool has_latency = op.kind != OpKind::kBarrier;
  const bool has_interval = has_latency && op.kind != OpKind::kShared;
  int32_t* const field = key == "latency" && has_latency     ? &op.latency
                         : key == "interval" && has_interval ? &op.interval
                                                             : nullptr;
  if (field == nullptr) {
    return Invalid(absl::StrCat("The option ", Quoted(key), " of ",
                                Quoted(kOpWords[static_cast<size_t>(op.kind)]), " is unknown."));
  }
  GPUSHARE_ASSIGN_OR_RETURN(const int64_t cycles,
                            Number("A number of cycles", value, 1, kMaxOpCycles));
  *field = static_cast<int32_t>(cycles);
  return absl::OkStatus();
}

absl::Status Reader::ReadOp(OpKind kind, const Words& words) {
  Op op;
  op.kind = kind;
  size_t next = 1;
  if (IsMemoryAccess(kind)) {
    if (words.size() < 2) return Invalid("A load or store names no region.");
    const auto same = [&words](const Region& region) { return region.name == words[1]; };
    const auto region = std::find_if(program_.regions.begin(), program_.regions.end(), same);
    if (region == program_.regions.end()) {
      return Invalid(absl::StrCat("Region ", Quoted(words[1]), " is unknown."));
    }
    op.region = static_cast<uint8_t>(region - program_.regions.begin());
    next = 2;
  }
  int64_t times = 1;
  for (; next < words.size(); ++next) {
    const std::pair<absl::string_view, absl::string_view> option =
        absl::StrSplit(words[next], absl::MaxSplits('=', 1));
    if (option.first == "repeat") {
      GPUSHARE_ASSIGN_OR_RETURN(times, Number("The number of repeats", option.second, 1, kMaxOps));
      continue;
    }
    GPUSHARE_RETURN_IF_ERROR(ReadOption(op, option.first, option.second));
  }
  return Add(op, times);
}

absl::Status Reader::ReadLine(const Words& words) {
  if (!has_version_) {
    if (words.size() != 2 || words[0] != "warp-trace" || words[1] != "1") {
      return Invalid("The first line must be 'warp-trace 1'.");
    }
    has_version_ = true;
    return absl::OkStatus();
  }
  const absl::string_view word = words[0];
  for (const absl::string_view head : {"kernel", "warps", "blocks", "shared_bytes"}) {
    if (word == head) return ReadHead(words);
  }
  if (word == "region") return ReadRegion(words);
  if (word == "loop") return ReadLoop(words);
  if (word == "end") return ReadEnd(words);
  const auto* const found = std::find(kOpWords.begin(), kOpWords.end(), word);
  if (found == kOpWords.end())
    return Invalid(absl::StrCat("The word ", Quoted(word), " is unknown."));
  return ReadOp(static_cast<OpKind>(found - kOpWords.begin()), words);
}

absl::StatusOr<Program> Reader::Finish() {
  if (!has_version_)
    return Invalid("The file is empty, and its first line must be 'warp-trace 1'.");
  if (!has_kernel_) return Invalid("The file has no line 'kernel NAME'.");
  if (!loops_.empty()) return Invalid("The last loop has no 'end'.");
  GPUSHARE_RETURN_IF_ERROR(Check(program_));
  return std::move(program_);
}

absl::Status At(absl::string_view name, int64_t line, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(name, ":", line, ": ", status.message()));
}

void AppendOp(const Program& program, Op op, std::string* text) {
  absl::StrAppend(text, kOpWords[static_cast<size_t>(op.kind)]);
  if (IsMemoryAccess(op.kind)) {
    absl::StrAppend(text, " ", program.regions[op.region].name);
    if (op.lines != 1) absl::StrAppend(text, " lines=", op.lines);
    if (op.sectors != 4) absl::StrAppend(text, " sectors=", op.sectors);
    for (const ByteOption& option : kByteOptions) {
      const int64_t bytes = option.field(op);
      if (bytes != option.otherwise) absl::StrAppend(text, " ", option.word, "=", bytes);
    }
  }
  const char* separator = " after=";
  for (const uint8_t distance : op.after) {
    if (distance == 0) continue;
    absl::StrAppend(text, separator, distance);
    separator = ",";
  }
  if (op.ways_max != 1) absl::StrAppend(text, " ways=", op.ways_min, "-", op.ways_max);
  if (op.latency >= 0) absl::StrAppend(text, " latency=", op.latency);
  if (op.interval >= 0) absl::StrAppend(text, " interval=", op.interval);
  absl::StrAppend(text, "\n");
}

}  // namespace

absl::StatusOr<Program> ParseTrace(absl::string_view text, absl::string_view name) {
  if (text.size() > kMaxTraceBytes) {
    return Invalid(absl::StrCat(name, ": The file has ", text.size(), " bytes, and the limit is ",
                                kMaxTraceBytes, "."));
  }
  Reader reader;
  int64_t number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view code = line.substr(0, line.find('#'));
    const Words words = absl::StrSplit(code, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    if (absl::Status status = reader.ReadLine(words); !status.ok()) return At(name, number, status);
  }
  auto program = reader.Finish();
  if (!program.ok()) return At(name, number, program.status());
  return program;
}

std::string FormatTrace(const Program& program) {
  std::string text = absl::StrCat("warp-trace 1\nkernel ", program.name, "\nwarps ",
                                  program.warps_per_block, "\nblocks ", program.grid_blocks, "\n");
  if (program.shared_bytes != 0)
    absl::StrAppend(&text, "shared_bytes ", program.shared_bytes, "\n");
  for (const Region& region : program.regions) {
    absl::StrAppend(&text, "region ", region.name, " ", region.bytes, "\n");
  }
  // Where loops begin stands at their ends, inner ones first.
  std::vector<std::vector<int64_t>> begins(program.ops.size());
  for (size_t at = program.ops.size(); at-- > 0;) {
    const Op& op = program.ops[at];
    if (op.kind == OpKind::kLoopEnd) begins[static_cast<size_t>(op.target)].push_back(op.count);
  }
  for (size_t at = 0; at < program.ops.size(); ++at) {
    for (const int64_t count : begins[at]) absl::StrAppend(&text, "loop ", count, "\n");
    AppendOp(program, program.ops[at], &text);
  }
  return text;
}

}  // namespace gpushare::sim::warp
