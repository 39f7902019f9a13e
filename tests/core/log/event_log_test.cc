// The event log: nothing is lost or torn while there is room, files are taken whole or not at all.

#include "src/core/log/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "src/core/log/events.h"

namespace gpushare::core {
namespace {

using ::testing::HasSubstr;

EventRecord Record(EventType type, int64_t value) {
  EventRecord record = {
      .time_ns = value, .id = static_cast<uint64_t>(value), .type = static_cast<uint8_t>(type)};
  record.a = record.b = record.c = record.d = value;
  return record;
}

std::vector<EventRecord> SomeRecords(int count) {
  std::vector<EventRecord> records;
  for (int i = 0; i < count; ++i) {
    records.push_back(Record(static_cast<EventType>(1 + i % static_cast<int>(kLastEventType)), i));
  }
  return records;
}

std::string Bytes(const std::vector<EventRecord>& records) {
  return {reinterpret_cast<const char*>(records.data()), records.size() * sizeof(EventRecord)};
}

std::string FileOf(const EventLogHeader& header, const std::vector<EventRecord>& records) {
  const std::string path = ::testing::TempDir() + "/gpushare_event_log_test.log";
  EXPECT_TRUE(WriteEventLog(path, header, records).ok());
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

absl::StatusOr<EventLogFile> Parse(const std::string& bytes) {
  return ParseEventLog(
      absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

TEST(EventLogTest, KeepsTheFirstRecordsAndCountsTheRest) {
  EventLog log(3);
  for (int i = 0; i < 5; ++i) log.Append(Record(EventType::kLaunched, i));
  ASSERT_EQ(log.records().size(), 3u);
  EXPECT_EQ(log.records()[2].a, 2);
  EXPECT_EQ(log.dropped(), 2);
  log.Clear();
  EXPECT_TRUE(log.records().empty());
  EXPECT_EQ(log.dropped(), 0);
  log.Append(Record(EventType::kLaunched, 9));
  EXPECT_EQ(log.records().size(), 1u);
}

TEST(EventLogTest, ALogWithoutRoomCountsEverything) {
  for (int64_t records : {int64_t{0}, int64_t{-1}}) {
    EventLog log(records);
    log.Append(Record(EventType::kLaunched, 1));
    EXPECT_TRUE(log.records().empty());
    EXPECT_EQ(log.dropped(), 1);
  }
}

TEST(EventLogTest, AppendsOfSeveralThreadsAreNeitherLostNorTorn) {
  constexpr int kThreads = 4;
  constexpr int kEach = 20000;
  EventLog log(kThreads * kEach - 1000);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&log, t] {
      for (int i = 0; i < kEach; ++i) log.Append(Record(EventType::kSubmitted, t * kEach + i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(log.dropped(), 1000);
  std::set<int64_t> seen;
  for (const EventRecord& record : log.records()) {
    EXPECT_EQ(record.a, record.d);
    EXPECT_EQ(record.id, static_cast<uint64_t>(record.a));
    EXPECT_TRUE(seen.insert(record.a).second);
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(kThreads * kEach - 1000));
}

TEST(EventLogTest, AFileIsReadBackTheSame) {
  const std::string path = ::testing::TempDir() + "/gpushare_event_log_round_trip.log";
  for (int count : {0, 1, 1000}) {
    const std::vector<EventRecord> records = SomeRecords(count);
    EventLogHeader header = {
        .seed = 0xfedcba9876543210u, .dropped = 7, .blocked_lanes = uint64_t{1} << 63 | 5};
    ASSERT_TRUE(WriteEventLog(path, header, records).ok());
    const EventLogFile file = ReadEventLog(path).value();
    EXPECT_EQ(file.header.seed, header.seed);
    EXPECT_EQ(file.header.dropped, 7);
    EXPECT_EQ(file.header.blocked_lanes, header.blocked_lanes);
    EXPECT_EQ(Bytes(file.records), Bytes(records));
  }
}

// Tools of others read these files, and later versions read those of this one.
TEST(EventLogTest, TheHeaderIsThatOfTheFormat) {
  EventLogHeader header = {.seed = 0x0102030405060708, .dropped = 7, .blocked_lanes = 5};
  const std::string bytes = FileOf(header, SomeRecords(3));
  EXPECT_EQ(bytes.substr(0, 8), "GPUSHLOG");
  const auto word = [&](size_t at, size_t size) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, size);
    return value;
  };
  EXPECT_EQ(word(8, 4), 1u) << "the version";
  EXPECT_EQ(word(12, 4), sizeof(EventRecord));
  EXPECT_EQ(word(16, 8), header.seed);
  EXPECT_EQ(word(24, 8), 3u) << "records";
  EXPECT_EQ(word(32, 8), 7u) << "dropped";
  EXPECT_EQ(word(48, 8), 5u) << "blocked lanes";
  EXPECT_EQ(word(56, 8), 0u) << "reserved";
  EXPECT_EQ(bytes.substr(64), Bytes(SomeRecords(3)));
}

// So that an earlier library reads what it can, and refuses what it would misread.
TEST(EventLogTest, AFileHasTheLowestVersionThatSaysWhatItsRecordsAre) {
  const auto version_of = [](const EventRecord& record, uint32_t recorded = kEventLogVersion) {
    std::vector<EventRecord> records = SomeRecords(20);
    records.push_back(record);
    const auto file = Parse(FileOf({.version = recorded}, records));
    EXPECT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(Bytes(file->records), Bytes(records));
    return file->header.version;
  };
  EXPECT_EQ(version_of(Encode(1, QueryBeginCalled())), 1u);
  EXPECT_EQ(version_of(Encode(1, TokenStreamBegun())), 2u);
  EXPECT_EQ(version_of(Encode(1, TokenStreamEnded())), 2u);
  EXPECT_EQ(version_of(Encode(1, TokensMarked())), 2u);
  NextStated stated;
  stated.within_ns = 5;
  EXPECT_EQ(version_of(Encode(1, stated)), 1u);
  stated.input_size = 5;
  EXPECT_EQ(version_of(Encode(1, stated)), 2u);
  AppCreated app;
  EXPECT_EQ(version_of(Encode(1, app)), 1u);
  app.bounds_tokens = true;
  EXPECT_EQ(version_of(Encode(1, app)), 2u);
  EXPECT_EQ(version_of(Encode(1, app), 1), 1u) << "an earlier library recorded it, without marks";
}

TEST(EventLogTest, EveryTruncationIsRefused) {
  const std::string bytes = FileOf({}, SomeRecords(5));
  ASSERT_EQ(bytes.size(), 64u * 6);
  for (size_t length = 0; length < bytes.size(); ++length) {
    const absl::Status status = Parse(bytes.substr(0, length)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << length;
  }
  EXPECT_FALSE(Parse(bytes + "x").ok());
}

TEST(EventLogTest, EveryChangedBitIsRefused) {
  EventLogHeader header;
  header.seed = 42;
  const std::string bytes = FileOf(header, SomeRecords(5));
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(Parse(changed).ok()) << bit;
  }
}

TEST(EventLogTest, RefusalsSayWhy) {
  EXPECT_THAT(std::string(Parse("").status().message()), HasSubstr("has 0 bytes"));
  std::string bytes = FileOf({}, SomeRecords(2));
  std::string other = bytes;
  other[0] = 'X';
  EXPECT_THAT(std::string(Parse(other).status().message()), HasSubstr("GPUSHLOG"));
  other = bytes;
  for (const char version : {'\0', '\3'}) {
    other[8] = version;
    EXPECT_THAT(std::string(Parse(other).status().message()),
                HasSubstr("versions 1 to 2 with 64 are read here"));
  }
  other = bytes;
  std::memset(other.data() + 24, 0xff, 8);  // the count
  EXPECT_THAT(std::string(Parse(other).status().message()), HasSubstr("the limit is 4194304"));
  other = bytes;
  other[100] = static_cast<char>(other[100] ^ 1);
  EXPECT_THAT(std::string(Parse(other).status().message()), HasSubstr("its digest does not fit"));
  EXPECT_THAT(std::string(ReadEventLog("/nonexistent.log").status().message()),
              HasSubstr("/nonexistent.log"));
}

TEST(EventLogTest, ARecordOfAnUnknownTypeIsRefused) {
  EXPECT_THAT(
      std::string(Parse(FileOf({}, {Record(static_cast<EventType>(0), 1)})).status().message()),
      HasSubstr("has the type 0"));
  EXPECT_FALSE(Parse(FileOf({}, {Record(static_cast<EventType>(250), 1)})).ok());
}

TEST(DecisionDigestTest, DiffersWhenADecisionDiffersAndOnlyThen) {
  const std::vector<EventRecord> records = SomeRecords(100);
  const uint64_t digest = DecisionDigest(records);
  EXPECT_EQ(DecisionDigest(records), digest);
  const std::set<EventType> decisions = {EventType::kLaunched, EventType::kFastPathLaunched,
                                         EventType::kEvicted, EventType::kHeld,
                                         EventType::kCompleted};
  for (size_t i = 0; i < records.size(); ++i) {
    std::vector<EventRecord> changed = records;
    ++changed[i].b;
    const bool decision = decisions.count(static_cast<EventType>(records[i].type)) > 0;
    EXPECT_EQ(DecisionDigest(changed) != digest, decision) << i;
  }
  std::vector<EventRecord> shorter = records;
  shorter.resize(5);
  EXPECT_NE(DecisionDigest(shorter), digest);
}

TEST(DecisionDigestTest, DependsOnTheOrder) {
  const EventRecord a = Record(EventType::kLaunched, 1);
  const EventRecord b = Record(EventType::kEvicted, 2);
  EXPECT_NE(DecisionDigest({a, b}), DecisionDigest({b, a}));
}

}  // namespace
}  // namespace gpushare::core
