// Builds a timeline from an event log. See timeline.h.

#include "src/trace/timeline.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/log/events.h"
#include "src/core/log/names.h"

namespace gpushare::trace {
namespace {

using core::Decode;
using core::EventRecord;
using core::EventType;
using core::TimeNs;

// Perfetto does not show an empty slice, and its end would sort before its begin.
constexpr TimeNs kShortestSliceNs = 1;
// Logs hold CapSMs in thousandths.
constexpr double kThousandths = 1000;

// Clamps a time. Only a damaged record has one beyond 146 years; a difference of clamped times does
// not overflow.
TimeNs Sane(TimeNs time) { return std::clamp<TimeNs>(time, 0, TimeNs{1} << 62); }

// What all records of a log say about one ticket.
struct TicketFacts {
  int64_t predicted_ns = 0;
  int64_t measured_ns = 0;
};

// A slice without a track yet. Its begin event holds what is shown.
struct Slice {
  TimeNs end_ns = 0;
  TimelineEvent begin;
};

class Builder {
 public:
  explicit Builder(const TraceNames& names) : names_(names) {}

  Timeline Build(absl::Span<const EventRecord> records) {
    for (const EventRecord& record : records) Gather(record);
    for (const EventRecord& record : records) Show(record);
    for (auto& [place, slices] : place_slices_) LayOut(PlaceName(place), slices);
    for (auto& [app, slices] : query_slices_) {
      LayOut(absl::StrCat("queries: ", AppName(core::AppId{app})), slices);
    }
    std::stable_sort(timeline_.events.begin(), timeline_.events.end(),
                     [](const TimelineEvent& a, const TimelineEvent& b) {
                       return std::pair(a.time_ns, a.type) < std::pair(b.time_ns, b.type);
                     });
    return std::move(timeline_);
  }

 private:
  // First pass: collects what later records say about earlier slices.
  void Gather(const EventRecord& record) {
    switch (static_cast<EventType>(record.type)) {
      case EventType::kAdmitted: {
        const auto admitted = Decode<core::Admitted>(record);
        tickets_[admitted.task.ticket.value].predicted_ns = admitted.predicted_ns;
        break;
      }
      case EventType::kCompleted: {
        const auto completed = Decode<core::Completed>(record);
        TicketFacts& facts = tickets_[completed.task.ticket.value];
        facts.measured_ns = completed.measured_ns;
        if (completed.predicted_ns > 0) facts.predicted_ns = completed.predicted_ns;
        break;
      }
      case EventType::kLaunched:
      case EventType::kFastPathLaunched:
        launched_ns_[Decode<core::Launched>(record).launch.value] = record.time_ns;
        break;
      case EventType::kQueryBegun: {
        const auto begun = Decode<core::QueryBegun>(record);
        arrivals_[begun.query.value] = begun.arrival_ns;
        break;
      }
      default:
        break;
    }
  }

  void Show(const EventRecord& record) {
    const TimeNs time_ns = record.time_ns;
    switch (static_cast<EventType>(record.type)) {
      case EventType::kPartDone:
        ShowPart(time_ns, Decode<core::PartDone>(record));
        break;
      case EventType::kEvicted:
        ShowEviction(time_ns, Decode<core::Evicted>(record));
        break;
      case EventType::kQueryEnded:
        ShowQuery(time_ns, Decode<core::QueryEnded>(record));
        break;
      case EventType::kQueueDepth:
        ShowQueueDepth(time_ns, Decode<core::QueueDepth>(record));
        break;
      case EventType::kQuotaChanged: {
        const auto quota = Decode<core::QuotaChanged>(record);
        ShowCounter(time_ns, quota.app, "quota: ", TrackKind::kCount, quota.capsms);
        break;
      }
      case EventType::kChoice:
        ShowChoice(time_ns, Decode<core::Choice>(record));
        break;
      case EventType::kDeviceLost:
        ShowDeviceEvent(time_ns, "device lost", 0, Decode<core::DeviceLost>(record).error_code);
        break;
      case EventType::kLaneAbandoned:
        ShowDeviceEvent(time_ns, "lane abandoned", Decode<core::LaneAbandoned>(record).lane, 0);
        break;
      default:
        break;
    }
  }

  void ShowPart(TimeNs time_ns, const core::PartDone& part) {
    const core::TaskLabel& task = part.task;
    Slice slice;
    slice.begin.time_ns = part.start_ns;
    slice.end_ns = part.end_ns;
    const auto launched = launched_ns_.find(part.launch.value);
    if (part.end_ns <= 0) {  // no device timestamps: use what the host saw
      slice.begin.time_ns = launched == launched_ns_.end() ? time_ns : launched->second;
      slice.end_ns = time_ns;
    }
    slice.begin.category = task.app_class == core::AppClass::kLatencyCritical ? "LC" : "BE";
    slice.begin.name = Text(
        absl::StrCat(slice.begin.category, " ", AppName(task.app), ": ", KernelName(task.kernel)));
    const auto facts = tickets_.find(task.ticket.value);
    const int64_t predicted = facts == tickets_.end() ? 0 : facts->second.predicted_ns;
    const int64_t measured = facts == tickets_.end() ? 0 : facts->second.measured_ns;
    slice.begin.Add("predicted_ns", predicted);
    slice.begin.Add("measured_ns",
                    measured > 0 ? measured : Sane(slice.end_ns) - Sane(slice.begin.time_ns));
    slice.begin.Add("ticket", static_cast<int64_t>(task.ticket.value));
    slice.begin.Add("launch", static_cast<int64_t>(part.launch.value));
    slice.begin.Add("block_tasks", part.block_tasks_done);
    slice.begin.Add("outcome", core::OutcomePhrase(static_cast<uint8_t>(part.outcome)));
    place_slices_[part.place].push_back(slice);
  }

  void ShowEviction(TimeNs time_ns, const core::Evicted& evicted) {
    TimelineEvent event;
    event.time_ns = time_ns;
    event.track = NamedTrack("evictions", TrackKind::kSlices);
    event.category = "eviction";
    event.name = Text(absl::StrCat("eviction on ", PlaceName(evicted.place)));
    event.Add("reason", core::ReasonPhrase(static_cast<uint8_t>(evicted.reason)));
    event.Add("ticket", static_cast<int64_t>(evicted.ticket.value));
    event.Add("lane", evicted.lane);
    event.Add("epoch", static_cast<int64_t>(evicted.epoch));
    event.Add("workers_to_keep", evicted.workers_to_keep);
    timeline_.events.push_back(event);
  }

  void ShowQuery(TimeNs time_ns, const core::QueryEnded& ended) {
    const auto arrival = arrivals_.find(ended.query.value);
    Slice slice;
    slice.begin.time_ns =
        arrival == arrivals_.end() ? Sane(time_ns) - Sane(ended.latency_ns) : arrival->second;
    slice.end_ns = time_ns;
    slice.begin.category = "query";
    slice.begin.name = Text("query");
    slice.begin.Add("query", static_cast<int64_t>(ended.query.value));
    slice.begin.Add("latency_ns", ended.latency_ns);
    slice.begin.Add("target_ns", ended.target_ns);
    query_slices_[ended.app.value].push_back(slice);
    if (ended.target_ns <= 0 || ended.latency_ns <= ended.target_ns) return;
    TimelineEvent miss;
    miss.time_ns = time_ns;
    miss.track = NamedTrack(absl::StrCat("misses: ", AppName(ended.app)), TrackKind::kSlices);
    miss.category = "miss";
    miss.name = Text("QoS miss");
    miss.Add("query", static_cast<int64_t>(ended.query.value));
    miss.Add("latency_ns", ended.latency_ns);
    miss.Add("target_ns", ended.target_ns);
    timeline_.events.push_back(miss);
  }

  void ShowQueueDepth(TimeNs time_ns, const core::QueueDepth& event) {
    ShowCounter(time_ns, event.app, "queue depth: ", TrackKind::kCount, event.depth);
    ShowCounter(time_ns, event.app, "CapSMs used: ", TrackKind::kReal, event.capsms_thousandths);
    if (event.least_headroom_ns != core::kNever) {
      ShowCounter(time_ns, event.app, "headroom: ", TrackKind::kTimeNs, event.least_headroom_ns);
    }
  }

  void ShowCounter(TimeNs time_ns, core::AppId app, const char* what, TrackKind kind,
                   int64_t value) {
    TimelineEvent event;
    event.time_ns = time_ns;
    event.type = TimelineType::kCounter;
    event.track = NamedTrack(absl::StrCat(what, AppName(app)), kind);
    event.count = value;
    event.real = static_cast<double>(value) / kThousandths;
    timeline_.events.push_back(event);
  }

  std::string ChoiceName(core::ChoiceKind kind, int64_t choice) const {
    if (choice == core::PlannedChoice::kNoRunnerUp) return "none";
    if (kind == core::ChoiceKind::kLayout) return absl::StrCat(choice, " SMs for LC");
    if (kind == core::ChoiceKind::kOverlap) return absl::StrCat("BE ticket ", choice);
    const auto kernel = [this](int64_t id) {
      return KernelName(core::KernelId{static_cast<uint32_t>(id)});
    };
    return absl::StrCat(kernel(choice >> 32), " and ", kernel(choice & 0xffffffff));
  }

  void ShowChoice(TimeNs time_ns, const core::Choice& choice) {
    TimelineEvent event;
    event.time_ns = time_ns;
    event.track = NamedTrack("choices", TrackKind::kSlices);
    event.category = "choice";
    event.name = Text(absl::StrCat(ChoiceName(choice.kind, choice.chosen), ", before ",
                                   ChoiceName(choice.kind, choice.runner_up)));
    event.Add("ticket", static_cast<int64_t>(choice.ticket.value));
    event.Add("value", choice.value);
    event.Add("runner_up_value", choice.runner_up_value);
    timeline_.events.push_back(event);
  }

  void ShowDeviceEvent(TimeNs time_ns, const char* what, int64_t lane, int64_t value) {
    TimelineEvent event;
    event.time_ns = time_ns;
    event.track = NamedTrack("device", TrackKind::kSlices);
    event.category = "device";
    event.name = Text(what);
    event.Add("lane", lane);
    event.Add("value", value);
    timeline_.events.push_back(event);
  }

  // Puts each slice on the first track that is free; overlapping slices use further tracks.
  void LayOut(const std::string& name, std::vector<Slice>& slices) {
    for (Slice& slice : slices) {
      slice.begin.time_ns = Sane(slice.begin.time_ns);
      slice.end_ns = std::max(Sane(slice.end_ns), slice.begin.time_ns + kShortestSliceNs);
    }
    std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
      return a.begin.time_ns < b.begin.time_ns;
    });
    using Busy = std::pair<TimeNs, int32_t>;  // the time until which a track is busy, and the track
    std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
    std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> idle;
    int32_t count = 0;
    for (Slice& slice : slices) {
      while (!busy.empty() && busy.top().first <= slice.begin.time_ns) {
        idle.push(busy.top().second);
        busy.pop();
      }
      if (idle.empty()) {
        ++count;
        idle.push(
            NewTrack(count == 1 ? name : absl::StrCat(name, " (", count, ")"), TrackKind::kSlices));
      }
      const int32_t track = idle.top();
      idle.pop();
      busy.emplace(slice.end_ns, track);
      slice.begin.type = TimelineType::kBegin;
      slice.begin.track = track;
      timeline_.events.push_back(slice.begin);
      TimelineEvent end;
      end.time_ns = slice.end_ns;
      end.type = TimelineType::kEnd;
      end.track = track;
      timeline_.events.push_back(end);
    }
  }

  int32_t NewTrack(std::string name, TrackKind kind) {
    timeline_.tracks.push_back({std::move(name), kind});
    return static_cast<int32_t>(timeline_.tracks.size()) - 1;
  }
  int32_t NamedTrack(const std::string& name, TrackKind kind) {
    const auto [at, added] = named_tracks_.try_emplace(name, 0);
    if (added) at->second = NewTrack(name, kind);
    return at->second;
  }
  int32_t Text(std::string text) {
    const auto [at, added] =
        texts_.try_emplace(std::move(text), static_cast<int32_t>(timeline_.texts.size()));
    if (added) timeline_.texts.push_back(at->first);
    return at->second;
  }

  std::string AppName(core::AppId app) const {
    const auto found = names_.apps.find(app.value);
    return found == names_.apps.end() ? absl::StrCat("app ", app.value) : found->second;
  }
  std::string KernelName(core::KernelId kernel) const {
    if (kernel.value == 0) return "copy or opaque work";
    const auto found = names_.kernels.find(kernel.value);
    return found == names_.kernels.end() ? absl::StrCat("kernel ", kernel.value) : found->second;
  }
  std::string PlaceName(int32_t place) const {
    const auto found = names_.places.find(place);
    if (found != names_.places.end()) return found->second;
    return place == core::kWholeDevice ? "whole device" : absl::StrCat("place ", place);
  }

  const TraceNames& names_;
  Timeline timeline_;
  std::unordered_map<uint64_t, TicketFacts> tickets_;
  std::unordered_map<uint64_t, TimeNs> launched_ns_;  // by launch
  std::unordered_map<uint64_t, TimeNs> arrivals_;     // by query
  std::map<int32_t, std::vector<Slice>> place_slices_;
  std::map<uint32_t, std::vector<Slice>> query_slices_;
  std::unordered_map<std::string, int32_t> named_tracks_;
  std::unordered_map<std::string, int32_t> texts_;
};

}  // namespace

Timeline MakeTimeline(absl::Span<const EventRecord> records, const TraceNames& names) {
  return Builder(names).Build(records);
}

}  // namespace gpushare::trace
