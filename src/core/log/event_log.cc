// The event log in memory and as a file; see event_log.h.
//
// Any stage and any submitter appends: an index is claimed with one atomic and the record is
// written to its own slot, so appending neither allocates nor waits. Invariant: a file that is
// accepted here has the length its header says, a digest that fits its bytes, and only known record
// types.

#include "src/core/log/event_log.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "src/core/base/file_io.h"
#include "src/core/base/limits.h"
#include "src/core/log/events.h"

namespace gpushare::core {
namespace {

constexpr char kMagic[8] = {'G', 'P', 'U', 'S', 'H', 'L', 'O', 'G'};
constexpr uint32_t kFirstVersion = 1;

// The file's first 64 bytes, little endian.
struct FileHeader {
  char magic[8] = {};
  uint32_t version = kFirstVersion;
  uint32_t record_bytes = sizeof(EventRecord);
  uint64_t seed = 0;
  uint64_t count = 0;
  uint64_t dropped = 0;
  uint64_t digest = 0;  // of the header with this field 0, then of the records
  uint64_t blocked_lanes = 0;
  uint64_t reserved = 0;
};
static_assert(sizeof(FileHeader) == 64, "the header is a file format");
static_assert(std::endian::native == std::endian::little, "records are written as they are");
static_assert(std::is_trivially_copyable_v<EventRecord>);

// FNV-1a over 64-bit words with a final shift. Each step is a bijection of the state, so that one
// changed word always changes the digest.
class Digest {
 public:
  void Add(uint64_t word) {
    state_ = (state_ ^ word) * 0x00000100000001b3u;
    state_ ^= state_ >> 32;
  }
  void AddWords(const void* data, size_t bytes) {
    const char* at = static_cast<const char*>(data);
    for (size_t i = 0; i + sizeof(uint64_t) <= bytes; i += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, at + i, sizeof(word));
      Add(word);
    }
  }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0xcbf29ce484222325u;
};

uint64_t FileDigest(FileHeader header, const void* records, size_t bytes) {
  header.digest = 0;
  Digest digest;
  digest.AddWords(&header, sizeof(header));
  digest.AddWords(records, bytes);
  return digest.value();
}

// The lowest version that has such a record. An app whose bound counts tokens has marks, unless it
// was recorded by a library that wrote none.
uint32_t VersionOf(const EventRecord& record) {
  const auto type = static_cast<EventType>(record.type);
  const bool bounds_tokens =
      type == EventType::kAppCreated && Decode<AppCreated>(record).bounds_tokens;
  const bool has_size = type == EventType::kNextStated && record.b != 0;
  return bounds_tokens || has_size || IsOfTokens(record) ? kEventLogVersion : kFirstVersion;
}

uint32_t VersionOf(absl::Span<const EventRecord> records) {
  uint32_t version = kFirstVersion;
  for (const EventRecord& record : records) version = std::max(version, VersionOf(record));
  return version;
}

absl::Status Refused(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("The event log ", why));
}

}  // namespace

bool IsDecision(EventType type) {
  switch (type) {
    case EventType::kLaunched:
    case EventType::kFastPathLaunched:
    case EventType::kEvicted:
    case EventType::kHeld:
    case EventType::kCompleted:
      return true;
    default:
      return false;
  }
}

EventLog::EventLog(int64_t records_max)
    : records_(static_cast<size_t>(std::max<int64_t>(records_max, 0))) {}

void EventLog::Append(const EventRecord& record) {
  const int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
  if (index < static_cast<int64_t>(records_.size())) {
    records_[static_cast<size_t>(index)] = record;
  } else {
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }
}

absl::Span<const EventRecord> EventLog::records() const {
  const int64_t appended = next_.load(std::memory_order_acquire);
  const int64_t kept = std::min<int64_t>(appended, static_cast<int64_t>(records_.size()));
  return absl::MakeConstSpan(records_.data(), static_cast<size_t>(kept));
}

void EventLog::Clear() {
  next_.store(0, std::memory_order_relaxed);
  dropped_.store(0, std::memory_order_relaxed);
}

absl::Status WriteEventLog(const std::string& path, const EventLogHeader& header,
                           absl::Span<const EventRecord> records) {
  if (records.size() > kMaxLogFileRecords) {
    return Refused(absl::StrCat("has ", records.size(), " records, and a file holds at most ",
                                kMaxLogFileRecords, "."));
  }
  const size_t bytes = records.size() * sizeof(EventRecord);
  FileHeader file;
  std::memcpy(file.magic, kMagic, sizeof(kMagic));
  file.version = std::min(header.version, VersionOf(records));
  file.seed = header.seed;
  file.count = records.size();
  file.dropped = static_cast<uint64_t>(std::max<int64_t>(header.dropped, 0));
  file.blocked_lanes = header.blocked_lanes;
  file.digest = FileDigest(file, records.data(), bytes);
  const absl::string_view pieces[] = {
      {reinterpret_cast<const char*>(&file), sizeof(file)},
      {reinterpret_cast<const char*>(records.data()), bytes},
  };
  return WriteFileAtomically(path, pieces);
}

absl::StatusOr<EventLogFile> ParseEventLog(absl::Span<const uint8_t> bytes) {
  FileHeader file;
  if (bytes.size() < sizeof(file)) {
    return Refused(absl::StrCat("has ", bytes.size(), " bytes, and its header alone takes ",
                                sizeof(file), "."));
  }
  std::memcpy(&file, bytes.data(), sizeof(file));
  if (std::memcmp(file.magic, kMagic, sizeof(kMagic)) != 0) {
    return Refused("does not start with 'GPUSHLOG'.");
  }
  if (file.version < kFirstVersion || file.version > kEventLogVersion ||
      file.record_bytes != sizeof(EventRecord)) {
    return Refused(absl::StrCat("has version ", file.version, " with records of ",
                                file.record_bytes, " bytes, and versions ", kFirstVersion, " to ",
                                kEventLogVersion, " with ", sizeof(EventRecord),
                                " are read here."));
  }
  if (file.count > kMaxLogFileRecords) {
    return Refused(absl::StrCat("says that it has ", file.count, " records, and the limit is ",
                                kMaxLogFileRecords, "."));
  }
  const size_t record_bytes = static_cast<size_t>(file.count) * sizeof(EventRecord);
  if (bytes.size() - sizeof(file) != record_bytes) {
    return Refused(absl::StrCat("has ", bytes.size() - sizeof(file), " bytes of records, and its ",
                                file.count, " records take ", record_bytes, "."));
  }
  const uint8_t* records = bytes.data() + sizeof(file);
  if (FileDigest(file, records, record_bytes) != file.digest) {
    return Refused("is corrupt: its digest does not fit its bytes.");
  }
  if (file.dropped > uint64_t{1} << 62 || file.reserved != 0) {
    return Refused("has a header field out of range.");
  }
  EventLogFile result;
  result.header.version = file.version;
  result.header.seed = file.seed;
  result.header.dropped = static_cast<int64_t>(file.dropped);
  result.header.blocked_lanes = file.blocked_lanes;
  result.records.resize(static_cast<size_t>(file.count));
  if (record_bytes > 0) std::memcpy(result.records.data(), records, record_bytes);
  for (size_t i = 0; i < result.records.size(); ++i) {
    const uint8_t type = result.records[i].type;
    if (type == 0 || type > static_cast<uint8_t>(kLastEventType)) {
      return Refused(absl::StrCat("has the type ", type, " in record ", i,
                                  ", and the last known one is ", static_cast<int>(kLastEventType),
                                  "."));
    }
  }
  return result;
}

absl::StatusOr<EventLogFile> ReadEventLog(const std::string& path) {
  constexpr int64_t kMaxFileBytes = sizeof(FileHeader) + kMaxLogFileRecords * sizeof(EventRecord);
  absl::StatusOr<std::string> bytes = ReadWholeFile(path, kMaxFileBytes);
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<EventLogFile> file = ParseEventLog(
      absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size()));
  if (!file.ok()) {
    return absl::Status(file.status().code(),
                        absl::StrCat("In '", path, "': ", file.status().message()));
  }
  return file;
}

uint64_t DecisionDigest(absl::Span<const EventRecord> records) {
  Digest digest;
  for (const EventRecord& record : records) {
    if (!IsDecision(static_cast<EventType>(record.type))) continue;
    // The whole record: when, what, where and why. Its words hold no padding.
    digest.AddWords(&record, sizeof(record));
  }
  return digest.value();
}

}  // namespace gpushare::core
