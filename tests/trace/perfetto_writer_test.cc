// Decodes Perfetto traces and checks tracks, slices that never overlap, order of time, names,
// stamps.

#include "src/trace/perfetto_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "src/core/log/events.h"
#include "src/core/seams/device.h"
#include "src/trace/perfetto_fields.h"

namespace gpushare::trace {
namespace {

using core::EventRecord;
using core::EventType;
using protozero::pbf_reader;
using ::testing::Contains;
using ::testing::Not;

struct DecodedTrack {
  std::string name;
  std::string process;
  uint64_t parent = 0;
  bool counter = false;
  int32_t unit = 0;
};

struct DecodedEvent {
  uint64_t time_ns = 0;
  int32_t type = 0;
  uint64_t track = 0;
  std::string name;
  std::string category;
  double value = 0;
  std::map<std::string, int64_t> numbers;
  std::map<std::string, std::string> texts;
};

struct Decoded {
  std::map<uint64_t, DecodedTrack> tracks;
  std::vector<DecodedEvent> events;
  uint64_t process = 0;
  int packets = 0;

  std::vector<std::string> TrackNames() const {
    std::vector<std::string> names;
    for (const auto& [uuid, track] : tracks) names.push_back(track.name);
    return names;
  }
  const std::string& NameOf(const DecodedEvent& event) const { return tracks.at(event.track).name; }
  std::vector<DecodedEvent> On(const std::string& track, int32_t type) const {
    std::vector<DecodedEvent> found;
    for (const DecodedEvent& event : events) {
      if (NameOf(event) == track && event.type == type) found.push_back(event);
    }
    return found;
  }
};

DecodedTrack DecodeTrack(pbf_reader message, uint64_t* uuid) {
  DecodedTrack track;
  while (message.next()) {
    switch (message.tag()) {
      case perfetto::kTrackUuid:
        *uuid = message.get_uint64();
        break;
      case perfetto::kTrackName:
        track.name = message.get_string();
        break;
      case perfetto::kTrackParentUuid:
        track.parent = message.get_uint64();
        break;
      case perfetto::kTrackProcess: {
        pbf_reader process = message.get_message();
        while (process.next()) {
          if (process.tag() == perfetto::kProcessName) {
            track.process = process.get_string();
          } else {
            EXPECT_EQ(process.tag(), perfetto::kProcessPid);
            process.skip();
          }
        }
        break;
      }
      case perfetto::kTrackCounter: {
        track.counter = true;
        pbf_reader counter = message.get_message();
        while (counter.next(perfetto::kCounterUnit)) track.unit = counter.get_enum();
        break;
      }
      default:
        ADD_FAILURE() << "unknown field of a track: " << message.tag();
        message.skip();
    }
  }
  return track;
}

void DecodeAnnotation(pbf_reader message, DecodedEvent* event) {
  std::string name;
  while (message.next()) {
    if (message.tag() == perfetto::kAnnotationName) {
      name = message.get_string();
    } else if (message.tag() == perfetto::kAnnotationIntValue) {
      event->numbers[name] = message.get_int64();
    } else if (message.tag() == perfetto::kAnnotationStringValue) {
      event->texts[name] = message.get_string();
    } else {
      ADD_FAILURE() << "unknown field of an annotation: " << message.tag();
      message.skip();
    }
  }
}

void DecodeEvent(pbf_reader message, DecodedEvent* event) {
  while (message.next()) {
    switch (message.tag()) {
      case perfetto::kEventType:
        event->type = message.get_enum();
        break;
      case perfetto::kEventTrackUuid:
        event->track = message.get_uint64();
        break;
      case perfetto::kEventName:
        event->name = message.get_string();
        break;
      case perfetto::kEventCategories:
        event->category = message.get_string();
        break;
      case perfetto::kEventCounterValue:
        event->value = static_cast<double>(message.get_int64());
        break;
      case perfetto::kEventDoubleCounterValue:
        event->value = message.get_double();
        break;
      case perfetto::kEventDebugAnnotations:
        DecodeAnnotation(message.get_message(), event);
        break;
      default:
        ADD_FAILURE() << "unknown field of an event: " << message.tag();
        message.skip();
    }
  }
}

// Fails where a reader of Perfetto would: a missing sequence, an unknown track, time going
// backwards.
Decoded Decode(const std::string& bytes) {
  Decoded decoded;
  pbf_reader trace(bytes);
  while (trace.next()) {
    EXPECT_EQ(trace.tag(), perfetto::kTracePacket);
    pbf_reader packet = trace.get_message();
    ++decoded.packets;
    DecodedEvent event;
    bool is_event = false;
    uint32_t sequence = 0;
    while (packet.next()) {
      switch (packet.tag()) {
        case perfetto::kPacketTimestamp:
          event.time_ns = packet.get_uint64();
          break;
        case perfetto::kPacketSequenceId:
          sequence = packet.get_uint32();
          break;
        case perfetto::kPacketSequenceFlags:
          EXPECT_EQ(packet.get_uint32(), perfetto::kSequenceIncrementalStateCleared);
          EXPECT_EQ(decoded.packets, 1);
          break;
        case perfetto::kPacketTrackDescriptor: {
          uint64_t uuid = 0;
          const DecodedTrack track = DecodeTrack(packet.get_message(), &uuid);
          EXPECT_NE(uuid, 0u);
          EXPECT_EQ(decoded.tracks.count(uuid), 0u);
          if (!track.process.empty()) decoded.process = uuid;
          decoded.tracks[uuid] = track;
          break;
        }
        case perfetto::kPacketTrackEvent:
          DecodeEvent(packet.get_message(), &event);
          is_event = true;
          break;
        default:
          ADD_FAILURE() << "unknown field of a packet: " << packet.tag();
          packet.skip();
      }
    }
    EXPECT_NE(sequence, 0u);
    if (!is_event) continue;
    EXPECT_EQ(decoded.tracks.count(event.track), 1u);
    if (!decoded.events.empty()) {
      EXPECT_GE(event.time_ns, decoded.events.back().time_ns);
    }
    decoded.events.push_back(event);
  }
  for (const auto& [uuid, track] : decoded.tracks) {
    if (uuid != decoded.process) {
      EXPECT_EQ(track.parent, decoded.process) << track.name;
    }
  }
  return decoded;
}

// Every begin has an end; no slice nests, overlaps or is empty.
void ExpectFlatSlices(const Decoded& decoded) {
  std::map<uint64_t, std::vector<uint64_t>> open;
  for (const DecodedEvent& event : decoded.events) {
    std::vector<uint64_t>& stack = open[event.track];
    if (event.type == perfetto::kTypeSliceBegin) {
      EXPECT_TRUE(stack.empty()) << decoded.NameOf(event) << " at " << event.time_ns;
      stack.push_back(event.time_ns);
    } else if (event.type == perfetto::kTypeSliceEnd) {
      ASSERT_EQ(stack.size(), 1u) << decoded.NameOf(event) << " at " << event.time_ns;
      EXPECT_GT(event.time_ns, stack.back());
      stack.pop_back();
    }
  }
  for (const auto& [track, stack] : open) EXPECT_TRUE(stack.empty());
}

EventRecord Record(EventType type, int64_t time_ns, uint64_t id) {
  EventRecord record = {.time_ns = time_ns, .id = id, .type = static_cast<uint8_t>(type)};
  return record;
}

EventRecord Part(uint64_t ticket, int16_t place, int64_t start_ns, int64_t end_ns) {
  EventRecord record = Record(EventType::kPartDone, end_ns + 2000, ticket);
  record.a = static_cast<int64_t>(ticket) + 1000;
  record.b = start_ns;
  record.c = end_ns;
  record.d = 64;
  record.place = place;
  record.app = ticket % 2 == 0 ? 1 : 2;
  record.app_class = static_cast<uint8_t>(ticket % 2 == 0 ? core::AppClass::kLatencyCritical
                                                          : core::AppClass::kBestEffort);
  record.kernel = 5;
  return record;
}

TraceNames Names() {
  TraceNames names;
  names.apps = {{1, "chat"}, {2, "train"}};
  names.kernels = {{5, "decode"}};
  names.places = {{0, "whole device, 132 SMs"}, {1, "LC side, 84 SMs"}, {2, "BE side, 48 SMs"}};
  names.device = "NVIDIA H200";
  names.simulated = true;
  return names;
}

TEST(PerfettoWriterTest, ASliceShowsItsLogRecords) {
  EventRecord admitted = Record(EventType::kAdmitted, 5, 2);
  admitted.a = 950;
  EventRecord completed = Record(EventType::kCompleted, 4000, 2);
  completed.a = 950;
  completed.b = 1000;
  EventRecord part = Part(2, 1, 100, 1100);
  part.detail = static_cast<uint8_t>(core::Outcome::kEvicted);
  const Decoded decoded = Decode(FormatPerfettoTrace({admitted, part, completed}, Names()));
  ExpectFlatSlices(decoded);
  const auto begins = decoded.On("LC side, 84 SMs", perfetto::kTypeSliceBegin);
  ASSERT_EQ(begins.size(), 1u);
  EXPECT_EQ(begins[0].time_ns, 100u);
  EXPECT_EQ(begins[0].name, "LC chat: decode");
  EXPECT_EQ(begins[0].category, "LC");
  EXPECT_EQ(begins[0].numbers.at("predicted_ns"), 950);
  EXPECT_EQ(begins[0].numbers.at("measured_ns"), 1000);
  EXPECT_EQ(begins[0].numbers.at("ticket"), 2);
  EXPECT_EQ(begins[0].numbers.at("block_tasks"), 64);
  EXPECT_EQ(begins[0].texts.at("outcome"), "evicted");
  const auto ends = decoded.On("LC side, 84 SMs", perfetto::kTypeSliceEnd);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].time_ns, 1100u);
}

TEST(PerfettoWriterTest, TheProcessSaysWhetherItWasSimulated) {
  TraceNames names = Names();
  Decoded decoded = Decode(FormatPerfettoTrace({}, names));
  EXPECT_EQ(decoded.tracks.at(decoded.process).process, "SIMULATED NVIDIA H200");
  names.simulated = false;
  decoded = Decode(FormatPerfettoTrace({}, names));
  EXPECT_EQ(decoded.tracks.at(decoded.process).process, "NVIDIA H200");
}

TEST(PerfettoWriterTest, OverlappingPartsGetFurtherTracks) {
  const Decoded decoded =
      Decode(FormatPerfettoTrace({Part(1, 0, 0, 100), Part(3, 0, 50, 150), Part(5, 0, 100, 200),
                                  Part(7, 0, 60, 70), Part(9, 2, 60, 70)},
                                 Names()));
  ExpectFlatSlices(decoded);
  // At most three slices overlap, and a slice that begins where another ends takes its track.
  EXPECT_EQ(decoded.On("whole device, 132 SMs", perfetto::kTypeSliceBegin).size(), 2u);
  EXPECT_EQ(decoded.On("whole device, 132 SMs (2)", perfetto::kTypeSliceBegin).size(), 1u);
  EXPECT_EQ(decoded.On("whole device, 132 SMs (3)", perfetto::kTypeSliceBegin).size(), 1u);
  EXPECT_EQ(decoded.On("BE side, 48 SMs", perfetto::kTypeSliceBegin).size(), 1u);
}

TEST(PerfettoWriterTest, RandomPartsNeverOverlapOnATrackAndNoneIsLost) {
  std::mt19937_64 random(11);
  std::uniform_int_distribution<int64_t> start(0, 20000);
  std::uniform_int_distribution<int64_t> length(0, 3000);
  std::vector<EventRecord> records;
  for (uint64_t ticket = 1; ticket <= 500; ++ticket) {
    const int64_t at = start(random);
    records.push_back(Part(ticket, static_cast<int16_t>(ticket % 3), at, at + length(random)));
  }
  const Decoded decoded = Decode(FormatPerfettoTrace(records, Names()));
  ExpectFlatSlices(decoded);
  EXPECT_EQ(decoded.events.size(), 1000u);
}

TEST(PerfettoWriterTest, QueriesAndMissesAreOnTheirAppsTracks) {
  std::vector<EventRecord> records;
  for (uint64_t query = 1; query <= 2; ++query) {
    const int64_t latency_ns = 400 * static_cast<int64_t>(query);
    records.push_back(core::Encode(  // arrived before it was submitted
        1010, core::QueryBegun{
                  .query = core::QueryId{query}, .app = core::AppId{1}, .arrival_ns = 1000}));
    records.push_back(
        core::Encode(1000 + latency_ns, core::QueryEnded{.query = core::QueryId{query},
                                                         .app = core::AppId{1},
                                                         .latency_ns = latency_ns,
                                                         .target_ns = 500}));
  }
  const Decoded decoded = Decode(FormatPerfettoTrace(records, Names()));
  ExpectFlatSlices(decoded);
  const auto first = decoded.On("queries: chat", perfetto::kTypeSliceBegin);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].time_ns, 1000u);
  EXPECT_EQ(decoded.On("queries: chat (2)", perfetto::kTypeSliceBegin).size(), 1u);
  const auto misses = decoded.On("misses: chat", perfetto::kTypeInstant);
  ASSERT_EQ(misses.size(), 1u);
  EXPECT_EQ(misses[0].name, "QoS miss");
  EXPECT_EQ(misses[0].time_ns, 1800u);
  EXPECT_EQ(misses[0].numbers.at("query"), 2);
  EXPECT_EQ(misses[0].numbers.at("target_ns"), 500);
}

TEST(PerfettoWriterTest, CountersHaveTheirUnits) {
  const EventRecord depth = core::Encode(10, core::QueueDepth{.app = core::AppId{2},
                                                              .depth = 7,
                                                              .capsms_thousandths = 48500,
                                                              .least_headroom_ns = -1200});
  const EventRecord unlimited = core::Encode(20, core::QueueDepth{.app = core::AppId{2}});
  const Decoded decoded = Decode(FormatPerfettoTrace({depth, unlimited}, Names()));
  const auto depths = decoded.On("queue depth: train", perfetto::kTypeCounter);
  ASSERT_EQ(depths.size(), 2u);
  EXPECT_EQ(depths[0].value, 7);
  const auto used = decoded.On("CapSMs used: train", perfetto::kTypeCounter);
  ASSERT_EQ(used.size(), 2u);
  EXPECT_DOUBLE_EQ(used[0].value, 48.5);
  const auto headrooms = decoded.On("headroom: train", perfetto::kTypeCounter);
  ASSERT_EQ(headrooms.size(), 1u);
  EXPECT_EQ(headrooms[0].value, -1200);
  for (const auto& [uuid, track] : decoded.tracks) {
    if (track.name == "headroom: train") {
      EXPECT_TRUE(track.counter);
      EXPECT_EQ(track.unit, perfetto::kUnitTimeNs);
    }
  }
}

TEST(PerfettoWriterTest, EvictionsShowTheirReason) {
  EventRecord evicted = Record(EventType::kEvicted, 10, 3);
  evicted.place = 1;
  evicted.c = 4;
  evicted.reason = static_cast<uint8_t>(core::Reason::kEvictForLc);
  const Decoded decoded = Decode(FormatPerfettoTrace({evicted}, Names()));
  const auto instants = decoded.On("evictions", perfetto::kTypeInstant);
  ASSERT_EQ(instants.size(), 1u);
  EXPECT_EQ(instants[0].name, "eviction on LC side, 84 SMs");
  EXPECT_EQ(instants[0].texts.at("reason"), "evicted for LC");
  EXPECT_EQ(instants[0].numbers.at("workers_to_keep"), 4);
}

TEST(PerfettoWriterTest, ChoicesShowTheRunnerUp) {
  EventRecord choice = Record(EventType::kChoice, 10, 0);
  choice.detail = static_cast<uint8_t>(core::ChoiceKind::kLayout);
  choice.a = 84;
  choice.b = 92;
  choice.c = 712'000;
  choice.d = 690'000;
  EventRecord alone = choice;
  alone.b = core::PlannedChoice::kNoRunnerUp;
  const Decoded decoded = Decode(FormatPerfettoTrace({choice, alone}, Names()));
  const auto instants = decoded.On("choices", perfetto::kTypeInstant);
  ASSERT_EQ(instants.size(), 2u);
  EXPECT_EQ(instants[0].name, "84 SMs for LC, before 92 SMs for LC");
  EXPECT_EQ(instants[0].numbers.at("value"), 712'000);
  EXPECT_EQ(instants[0].numbers.at("runner_up_value"), 690'000);
  EXPECT_EQ(instants[1].name, "84 SMs for LC, before none");
}

TEST(PerfettoWriterTest, WithoutDeviceTimestampsTheHostsTimesAreShown) {
  EventRecord launched = Record(EventType::kLaunched, 300, 1);
  launched.a = 1001;
  EventRecord part = Part(1, 0, 0, 0);
  part.time_ns = 900;
  const Decoded decoded = Decode(FormatPerfettoTrace({launched, part}, Names()));
  ASSERT_EQ(decoded.events.size(), 2u);
  EXPECT_EQ(decoded.events[0].time_ns, 300u);
  EXPECT_EQ(decoded.events[1].time_ns, 900u);
}

// A log that dropped records, or another program's log, must not break the trace.
TEST(PerfettoWriterTest, DamagedRecordsAreShownByNumberOrLeftOut) {
  EventRecord unknown = Record(static_cast<EventType>(200), 5, 1);
  EventRecord backwards = Part(1, 31, 500, 100);
  backwards.app = 99;
  backwards.kernel = 98;
  backwards.detail = 77;
  EventRecord early = Part(3, 0, -50, -10);
  const Decoded decoded = Decode(FormatPerfettoTrace({unknown, backwards, early}, TraceNames()));
  ExpectFlatSlices(decoded);
  const auto begins = decoded.On("place 31", perfetto::kTypeSliceBegin);
  ASSERT_EQ(begins.size(), 1u);
  EXPECT_EQ(begins[0].name, "BE app 99: kernel 98");
  EXPECT_EQ(begins[0].texts.at("outcome"), "unknown");
}

TEST(PerfettoWriterTest, TheFileHoldsTheTrace) {
  const std::string path = ::testing::TempDir() + "/gpushare_test.pftrace";
  ASSERT_TRUE(WritePerfettoTrace(path, {Part(1, 0, 0, 100)}, Names()).ok());
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  EXPECT_EQ(bytes.str(), FormatPerfettoTrace({Part(1, 0, 0, 100)}, Names()));
  EXPECT_EQ(WritePerfettoTrace("/nonexistent/x.pftrace", {}, Names()).code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace gpushare::trace
