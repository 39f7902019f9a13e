// The fixed split; see hold_out.h.

#include "src/models/samples/hold_out.h"

#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace gpushare::models {

bool IsHeldOut(absl::string_view subject) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : subject) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3;
  }
  // FNV-1a of texts that differ in their last bytes differs in few bits: mix them.
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccd;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53;
  return (hash ^ (hash >> 33)) % kHeldOutOf == 0;
}

std::string SubjectOf(const SampleRow& row) {
  switch (row.what) {
    case SampleKind::kSolo:
      return absl::StrCat("solo ", row.kernel, " ", row.block_tasks, " on ", row.sms, " x ",
                          row.workers_per_sm);
    case SampleKind::kCopy:
      return absl::StrCat("copy ", row.to_device, row.pinned, row.both_ways, " ", row.bytes);
    case SampleKind::kBeside:
      return absl::StrCat("beside ", row.kernel, " ", row.neighbour, row.same_sms ? " in " : " on ",
                          row.same_sms ? row.neighbour_workers_per_sm : row.sms);
    case SampleKind::kFused:
      return absl::StrCat("fused ", row.kernel, " at ", row.load_percent);
    case SampleKind::kCounters:
      return absl::StrCat("counters ", row.kernel);
    case SampleKind::kCopyBeside:
      return absl::StrCat("copy beside ", row.neighbour, " ", row.to_device, row.pinned, " ",
                          row.bytes);
    case SampleKind::kBesideCopy:
      return absl::StrCat("beside copy ", row.kernel, " ", row.to_device, row.pinned,
                          row.both_ways);
  }
  return "";
}

bool IsBlind(const SampleRow& row) {
  return row.what == SampleKind::kSolo && absl::StartsWith(row.kernel, kBlindPrefix);
}

bool IsHeldOut(const SampleRow& row) { return IsBlind(row) || IsHeldOut(SubjectOf(row)); }

}  // namespace gpushare::models
