// Replay of an event log; see replay.h.
//
// All parts share one state, the position in the recorded log. The comparison advances it. The
// device delivers the completions recorded there, and InputPlayer performs the input recorded there
// or lets the scheduler tick.

#include "src/core/replay/replay.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/core/base/ids.h"
#include "src/core/base/limits.h"
#include "src/core/base/tuning.h"
#include "src/core/log/events.h"
#include "src/core/seams/graph_cut.h"

namespace gpushare::core {
namespace {

// Latest time in a log that is replayed, 73 years: sums with any duration stay below kNever.
constexpr TimeNs kLatestNs = TimeNs{1} << 61;

EventType TypeOf(const EventRecord& record) { return static_cast<EventType>(record.type); }

// Whether a caller caused the event, not the scheduler.
bool IsInput(EventType type) {
  return type == EventType::kSubmitted || type == EventType::kQueryBeginCalled ||
         type == EventType::kQueryEndCalled;
}

// Whether the complete stage appends the event while it handles the completions of one poll.
bool IsFromCompletion(EventType type) {
  return type == EventType::kPartDone || type == EventType::kCompleted ||
         type == EventType::kQueryEnded;
}

bool IsOfTask(EventType type) {
  switch (type) {
    case EventType::kAdmitted:
    case EventType::kLaunched:
    case EventType::kFastPathLaunched:
    case EventType::kPartDone:
    case EventType::kCompleted:
    case EventType::kHeld:
      return true;
    default:
      return false;
  }
}

// What the caller of a replay makes before the first recorded submission.
bool IsSetup(EventType type) {
  return type == EventType::kAppCreated || type == EventType::kQuotaChanged;
}

// A choice explains decisions and causes none: logs of libraries that wrote none replay as well. A
// depth is logged when it changes, and what it was before a log began is not in it.
bool IsCompared(EventType type) {
  return type != EventType::kChoice && type != EventType::kChoiceShift &&
         type != EventType::kQueueDepth;
}

// Compares appended records with the recorded ones, up to the first difference.
class Comparison final : public EventSink {
 public:
  explicit Comparison(absl::Span<const EventRecord> log) : log_(log) {
    for (size_t i = 0; i < log.size(); ++i) {
      if (!IsCompared(TypeOf(log[i]))) continue;
      numbers_.push_back(static_cast<uint32_t>(i));
    }
    skips_setup_ = !numbers_.empty() && !IsSetup(TypeOf(Recorded(0)));
  }

  void Append(const EventRecord& record) override {
    if (!difference_.empty() || !IsCompared(TypeOf(record))) return;
    if (skips_setup_ && !running_ && IsSetup(TypeOf(record))) return;
    if (at_ == size()) {
      difference_ = absl::StrCat("The replay goes on after the ", log_.size(),
                                 " recorded events, with ", Show(record), ".");
      return;
    }
    const EventRecord& expected = Recorded(at_);
    Learn(expected, record);
    const EventRecord translated = Translate(record);
    if (std::memcmp(&translated, &expected, sizeof(expected)) != 0) {
      difference_ = absl::StrCat("Event ", NumberOf(at_), " was recorded as ", Show(expected),
                                 ", and the replay has ", Show(translated), ".");
      return;
    }
    ++at_;
  }

  // Whether the log began after the apps were made.
  bool skips_setup() const { return skips_setup_; }
  // The setup is over.
  void Begin() { running_ = true; }
  bool Going() const { return difference_.empty() && at_ < size(); }
  size_t at() const { return at_; }
  // In the log; its size after the last record.
  size_t NumberOf(size_t position) const {
    return position < size() ? numbers_[position] : log_.size();
  }
  size_t size() const { return numbers_.size(); }
  const EventRecord& Recorded(size_t position) const { return log_[numbers_[position]]; }
  const EventRecord& Next(size_t ahead = 0) const { return Recorded(at_ + ahead); }
  bool HasNext(size_t ahead) const { return at_ + ahead < size(); }
  absl::Span<const EventRecord> log() const { return log_; }
  const std::string& difference() const { return difference_; }
  void Stop(std::string difference) {
    if (difference_.empty()) difference_ = std::move(difference);
  }

  // The replay's number of a recorded ticket or query; the same where none is known.
  uint64_t ToReplay(uint64_t recorded) const {
    const auto found = to_replay_.find(recorded);
    return found == to_replay_.end() ? recorded : found->second;
  }

  static std::string Show(const EventRecord& record) {
    return absl::StrCat("{type ", record.type, ", time ", record.time_ns, ", id ", record.id,
                        ", a ", record.a, ", b ", record.b, ", c ", record.c, ", d ", record.d,
                        ", app ", record.app, ", kernel ", record.kernel, ", place ", record.place,
                        ", reason ", record.reason, ", detail ", record.detail, "}");
  }

 private:
  // Remembers that two records of the same input name one ticket or query by two numbers.
  void Learn(const EventRecord& expected, const EventRecord& record) {
    if (expected.type != record.type || !IsInput(TypeOf(record))) return;
    Pair(expected.id, record.id);
    if (TypeOf(record) == EventType::kSubmitted) {
      Pair(expected.id | kImplicitQueryBit, record.id | kImplicitQueryBit);
    }
  }
  void Pair(uint64_t recorded, uint64_t replayed) {
    to_replay_[recorded] = replayed;
    to_recorded_[replayed] = recorded;
  }
  uint64_t ToRecorded(uint64_t replayed) const {
    const auto found = to_recorded_.find(replayed);
    return found == to_recorded_.end() ? replayed : found->second;
  }
  int64_t ToRecorded(int64_t replayed) const {
    return static_cast<int64_t>(ToRecorded(static_cast<uint64_t>(replayed)));
  }

  // The record with the ticket and query numbers of the recorded run.
  EventRecord Translate(EventRecord record) const {
    switch (TypeOf(record)) {
      case EventType::kCompleted:
        if (Completed::NamesDependency(record)) record.b = ToRecorded(record.b);
        record.c = ToRecorded(record.c);
        break;
      case EventType::kSubmitted:
        record.c = ToRecorded(record.c);
        break;
      case EventType::kWaits:
        record.a = ToRecorded(record.a);
        record.b = ToRecorded(record.b);
        record.c = ToRecorded(record.c);
        record.d = ToRecorded(record.d);
        break;
      case EventType::kAdmitted:
      case EventType::kLaunched:
      case EventType::kFastPathLaunched:
      case EventType::kEvicted:
      case EventType::kPartDone:
      case EventType::kHeld:
      case EventType::kQueryBegun:
      case EventType::kQueryEnded:
      case EventType::kQueryBeginCalled:
      case EventType::kQueryEndCalled:
        break;
      default:
        return record;  // the id is an app's or a lane's
    }
    record.id = ToRecorded(record.id);
    return record;
  }

  const absl::Span<const EventRecord> log_;
  std::vector<uint32_t> numbers_;  // in the log, by position
  size_t at_ = 0;
  bool skips_setup_ = false;  // the log begins after it
  bool running_ = false;
  std::string difference_;
  std::unordered_map<uint64_t, uint64_t> to_replay_;
  std::unordered_map<uint64_t, uint64_t> to_recorded_;
};

// Executes nothing; gives the answers of the recorded device.
class ReplayDevice final : public Device {
 public:
  ReplayDevice(const DeviceCapabilities& capabilities, const Comparison& comparison,
               uint64_t blocked_lanes)
      : capabilities_(capabilities), comparison_(comparison), blocked_lanes_(blocked_lanes) {
    capabilities_.virtual_time = true;
    for (const EventRecord& record : comparison.log()) {
      const EventType type = TypeOf(record);
      if (type == EventType::kLaunched || type == EventType::kFastPathLaunched) {
        launched_.insert(Decode<Launched>(record).launch.value);
      }
    }
    // A log that began after the setup does not say when that was: a run in virtual time makes its
    // apps at 0.
    now_ns_.store(comparison.skips_setup() ? 0 : comparison.log()[0].time_ns);
  }

  TimeNs NowNs() const override { return now_ns_.load(std::memory_order_relaxed); }
  const DeviceCapabilities& capabilities() const override { return capabilities_; }
  absl::Status PrepareKernel(const KernelDesc&) override { return absl::OkStatus(); }
  // As many segments as the BE tasks of the recorded run had.
  GraphCut CutOf(const KernelDesc& graph) const override {
    GraphCut cut = CutOfRecord(graph);
    for (const EventRecord& record : comparison_.log()) {
      if (TypeOf(record) != EventType::kSubmitted) continue;
      const auto submitted = Decode<Submitted>(record);
      if (submitted.task.kernel != graph.id || submitted.kind != TaskKind::kGraph) continue;
      if (submitted.task.app_class != AppClass::kBestEffort) continue;
      if (submitted.amount != cut.segments) {
        cut = {.segments = static_cast<int32_t>(submitted.amount)};
      }
      break;
    }
    return cut;
  }
  absl::Status PrepareFusedKernel(FusedKernelDesc&) override { return absl::OkStatus(); }
  absl::StatusOr<PlaceIndex> CreatePlace(const PlaceSpec&) override { return ++places_; }
  absl::StatusOr<LaneIndex> CreateLane(const LaneSpec& spec) override {
    const bool blocked = lanes_ < kMaxLanes && (blocked_lanes_ >> lanes_ & 1) != 0;
    if (spec.evictable && blocked) return Blocked(lanes_);
    return lanes_++;
  }
  void AbandonLane(LaneIndex) override {}
  // The recorded device made none if its loss is what the log has next.
  absl::Status ReplaceLane(LaneIndex lane, const LaneSpec& spec) override {
    if (comparison_.Going() && TypeOf(comparison_.Next()) == EventType::kDeviceLost) {
      return absl::ResourceExhaustedError(
          absl::StrCat("Lane ", lane, " was not replaced in the recorded run."));
    }
    const bool blocked = (blocked_lanes_ >> lane & 1) != 0;
    return spec.evictable && blocked ? Blocked(lane) : absl::OkStatus();
  }
  // Progress, unless the recorded run gave up the launch's lane now: there was none. Or soon: then
  // it waited for the answer.
  std::optional<int64_t> ReadClaims(int32_t counter) override {
    int64_t& claims = claims_[static_cast<size_t>(counter)];
    for (size_t ahead = 0; comparison_.Going() && comparison_.HasNext(ahead); ++ahead) {
      const EventRecord& record = comparison_.Next(ahead);
      if (record.time_ns > NowNs() + kClaimsAnswerNs) break;
      if (TypeOf(record) != EventType::kLaneAbandoned) continue;
      const LaneIndex lane = Decode<LaneAbandoned>(record).lane;
      if (lane < 0 || lane >= kMaxLanes) continue;
      if ((lanes_of_counter_[static_cast<size_t>(counter)] >> lane & 1) == 0) continue;
      return record.time_ns > NowNs() ? std::nullopt : std::optional<int64_t>(claims);
    }
    return ++claims;
  }
  absl::Status Evict(LaneIndex, uint64_t, int32_t) override { return absl::OkStatus(); }
  void* LaneStream(LaneIndex) override { return nullptr; }
  int64_t BusySmNs() const override { return 0; }

  // A launch that the log lacks was refused by the recorded device.
  absl::Status Launch(const LaunchRequest& request) override {
    for (const LaunchPart& part : request.parts) {
      if (part.counter < 0) continue;
      if (part.reset_counter) claims_[static_cast<size_t>(part.counter)] = 0;
      uint64_t& lanes = lanes_of_counter_[static_cast<size_t>(part.counter)];
      lanes = (part.reset_counter ? 0 : lanes) | uint64_t{1} << part.lane;
    }
    if (launched_.count(request.parts[0].launch.value) > 0) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("Launch ", request.parts[0].launch.value,
                                            " was refused by the recorded device, or never made."));
  }

  // Delivers only the next completions of the log: one that was seen a Tick later is not due yet.
  // Each is delivered once, also when the replay differs and the position stands still.
  size_t PollCompletions(absl::Span<DeviceCompletion> out) override {
    size_t count = 0;
    if (!comparison_.Going()) return 0;
    delivered_ = std::max(delivered_, comparison_.at());
    for (; count < out.size() && delivered_ < comparison_.size(); ++delivered_) {
      const EventRecord& record = comparison_.Recorded(delivered_);
      if (!IsFromCompletion(TypeOf(record)) || record.time_ns > NowNs()) break;
      if (TypeOf(record) != EventType::kPartDone) continue;
      const auto part = Decode<PartDone>(record);
      DeviceCompletion& completion = out[count++];
      completion = DeviceCompletion();
      completion.launch = part.launch;
      completion.outcome = part.outcome;
      completion.start_ns = part.start_ns;
      completion.end_ns = part.end_ns;
      completion.block_tasks_done = part.block_tasks_done;
      if (completion.outcome == Outcome::kDeviceLost) {
        ++delivered_;
        break;  // what follows is of the lost device
      }
    }
    return count;
  }

  TimeNs NextEventNs() const override {
    return comparison_.Going() ? std::max(comparison_.Next().time_ns, NowNs()) : kNever;
  }
  void AdvanceTo(TimeNs time) override { now_ns_.store(std::max(NowNs(), time)); }

 private:
  static absl::Status Blocked(LaneIndex lane) {
    return absl::DeadlineExceededError(
        absl::StrCat("Evictions on lane ", lane, " were blocked in the recorded run."));
  }

  DeviceCapabilities capabilities_;
  const Comparison& comparison_;
  const uint64_t blocked_lanes_;
  std::atomic<TimeNs> now_ns_{0};  // any thread may ask for the time
  PlaceIndex places_ = kWholeDevice;
  LaneIndex lanes_ = 0;
  std::array<int64_t, kMaxCounters> claims_{};
  std::array<uint64_t, kMaxCounters> lanes_of_counter_{};  // one bit a lane
  std::unordered_set<uint64_t> launched_;
  size_t delivered_ = 0;  // position after the last completion that was given back
};

void NoHostWork(void*, void*) {}

class InputPlayer {
 public:
  InputPlayer(Comparison& comparison, ReplayDevice& device, Scheduler& scheduler)
      : comparison_(comparison), device_(device), scheduler_(scheduler) {
    for (const EventRecord& record : comparison.log()) {
      if (TypeOf(record) != EventType::kWaits) continue;
      for (const TicketId ticket : Decode<Waits>(record).waits_for) {
        if (ticket) ++waits_left_[ticket];
      }
    }
  }

  void Run() {
    int idle_ticks = 0;
    while (comparison_.Going()) {
      device_.AdvanceTo(comparison_.Next().time_ns);
      const size_t before = comparison_.at();
      if (IsInput(TypeOf(comparison_.Next()))) {
        PerformInputs();
      } else {
        scheduler_.Tick();
      }
      idle_ticks = comparison_.at() == before ? idle_ticks + 1 : 0;
      if (idle_ticks > kMaxIdleReplayTicks) {
        comparison_.Stop(absl::StrCat("The replay does nothing where event ",
                                      comparison_.NumberOf(comparison_.at()), " was recorded as ",
                                      Comparison::Show(comparison_.Next()), "."));
      }
    }
  }

 private:
  // Inputs of callbacks stand right after the Tick that ran them, and are performed before the next
  // Tick.
  void PerformInputs() {
    while (comparison_.Going() && IsInput(TypeOf(comparison_.Next())) &&
           comparison_.Next().time_ns <= device_.NowNs()) {
      const EventRecord input = comparison_.Next();
      const size_t before = comparison_.at();
      const absl::Status status = Perform(input);
      if (!status.ok()) {
        comparison_.Stop(absl::StrCat("Event ", comparison_.NumberOf(before), ", ",
                                      Comparison::Show(input),
                                      ", is refused in the replay: ", status.message()));
      }
      assert((comparison_.at() > before || !comparison_.Going()) && "an input is recorded at once");
    }
  }

  absl::Status Perform(const EventRecord& input) {
    switch (TypeOf(input)) {
      case EventType::kSubmitted:
        return Submit(Decode<Submitted>(input));
      case EventType::kQueryBeginCalled: {
        const auto begin = Decode<QueryBeginCalled>(input);
        return scheduler_
            .BeginQuery(begin.queue, begin.arrival_ns, std::bit_cast<double>(begin.input_size_bits))
            .status();
      }
      default:
        return scheduler_.EndQuery(ToReplay(Decode<QueryEndCalled>(input).query));
    }
  }

  absl::Status Submit(const Submitted& input) {
    TaskSpec spec;
    spec.queue = input.queue;
    if ((input.query.value & kImplicitQueryBit) == 0) spec.query = ToReplay(input.query);
    spec.kernel = input.task.kernel;
    spec.arrival_ns = input.arrival_ns;
    // A log has no releases. A ticket is kept as long as a later submission waits for it.
    spec.detached = waits_left_.count(input.task.ticket) == 0;
    spec.work.kind = input.kind;
    switch (input.kind) {
      case TaskKind::kKernel:
        spec.work.block_tasks = input.amount;
        break;
      case TaskKind::kMemcpy:
        spec.work.copy.bytes = input.amount;
        spec.work.copy.direction = input.direction();
        spec.work.copy.pinned = input.pinned();
        break;
      case TaskKind::kOpaque:
        spec.work.host_function = &NoHostWork;
        spec.work.declared_ns = input.amount;
        break;
      case TaskKind::kLibrary:
        spec.work.declared_ns = input.amount;
        break;
      case TaskKind::kGraph:
        break;
    }
    const std::vector<TicketId> recorded_waits = WaitsOf(input.task.ticket);
    std::vector<TicketId> waits;
    waits.reserve(recorded_waits.size());
    for (const TicketId ticket : recorded_waits) waits.push_back(ToReplay(ticket));
    spec.wait_tickets = waits;
    const bool critical = input.task.app_class == AppClass::kLatencyCritical;
    absl::Status status =
        (critical ? scheduler_.SubmitLc(spec) : scheduler_.SubmitBe(spec)).status();
    for (const TicketId ticket : recorded_waits) {
      if (status.ok() && --waits_left_[ticket] == 0)
        status = scheduler_.ReleaseTicket(ToReplay(ticket));
    }
    return status;
  }

  // The recorded tickets that a submission waits for, from the records that follow it.
  std::vector<TicketId> WaitsOf(TicketId ticket) const {
    std::vector<TicketId> waits;
    for (size_t ahead = 1; comparison_.HasNext(ahead); ++ahead) {
      const EventRecord& record = comparison_.Next(ahead);
      if (TypeOf(record) != EventType::kWaits) break;
      const auto event = Decode<Waits>(record);
      if (event.ticket != ticket) break;
      for (TicketId earlier : event.waits_for) {
        if (earlier) waits.push_back(earlier);
      }
    }
    return waits;
  }

  template <class SomeId>
  SomeId ToReplay(SomeId recorded) const {
    return SomeId{comparison_.ToReplay(recorded.value)};
  }

  Comparison& comparison_;
  ReplayDevice& device_;
  Scheduler& scheduler_;
  std::unordered_map<TicketId, int> waits_left_;  // of recorded tickets, by later submissions
};

constexpr int Number(TaskKind kind) { return static_cast<int>(kind); }

absl::Status CheckRecord(const EventRecord& record, size_t number, TimeNs earlier_ns) {
  if (record.time_ns < earlier_ns || record.time_ns > kLatestNs) {
    return absl::InvalidArgumentError(
        absl::StrCat("Event ", number, " of the log is at ", record.time_ns,
                     " ns, and a replay needs times between ", earlier_ns,
                     " ns, that of the event before it, and ", kLatestNs, " ns."));
  }
  if (TypeOf(record) == EventType::kSubmitted && record.detail > Number(TaskKind::kOpaque)) {
    return absl::InvalidArgumentError(
        absl::StrCat("Event ", number, " of the log submits work of the kind ", record.detail,
                     ", and the last known kind is ", Number(TaskKind::kOpaque), "."));
  }
  if (TypeOf(record) != EventType::kPartDone) return absl::OkStatus();
  const auto part = Decode<PartDone>(record);
  if (part.start_ns >= 0 && part.start_ns <= part.end_ns && part.end_ns <= record.time_ns &&
      part.block_tasks_done >= 0 && part.outcome <= Outcome::kDeviceLost) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "Event ", number,
      " of the log is of a part that no device can have done: ", Comparison::Show(record), "."));
}

// A log that begins inside a run lacks the state at its start.
absl::Status CheckLog(const EventLogFile& log) {
  if (log.records.empty()) return absl::InvalidArgumentError("The event log is empty.");
  if (log.header.dropped > 0) {
    return absl::InvalidArgumentError(absl::StrCat("The event log dropped ", log.header.dropped,
                                                   " records, and a replay needs all of them."));
  }
  std::unordered_set<uint64_t> submitted;
  TimeNs earlier_ns = 0;
  for (size_t i = 0; i < log.records.size(); ++i) {
    const EventRecord& record = log.records[i];
    if (absl::Status status = CheckRecord(record, i, earlier_ns); !status.ok()) return status;
    earlier_ns = record.time_ns;
    if (TypeOf(record) == EventType::kSubmitted) submitted.insert(record.id);
    if (IsOfTask(TypeOf(record)) && submitted.count(record.id) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "The event log begins inside a run, or lacks events: event ", i, " is of task ",
          record.id,
          ", and no event before it submits that task. A replay needs the log of a run from before "
          "its first submission."));
    }
  }
  return absl::OkStatus();
}

}  // namespace

struct Replayer::State {
  explicit State(const EventLogFile& log)
      : comparison(log.records), blocked_lanes(log.header.blocked_lanes) {}

  Comparison comparison;
  const uint64_t blocked_lanes;
  ReplayDevice* device = nullptr;  // the scheduler owns it
};

Replayer::Replayer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Replayer::~Replayer() = default;

absl::StatusOr<std::unique_ptr<Replayer>> Replayer::Create(const EventLogFile& log) {
  if (absl::Status status = CheckLog(log); !status.ok()) return status;
  return std::unique_ptr<Replayer>(new Replayer(std::make_unique<State>(log)));
}

std::unique_ptr<Device> Replayer::MakeDevice(const DeviceCapabilities& capabilities) {
  auto device =
      std::make_unique<ReplayDevice>(capabilities, state_->comparison, state_->blocked_lanes);
  state_->device = device.get();
  return device;
}

EventSink& Replayer::events() { return state_->comparison; }

ReplayResult Replayer::Run(Scheduler& scheduler) {
  Comparison& comparison = state_->comparison;
  comparison.Begin();
  InputPlayer(comparison, *state_->device, scheduler).Run();

  ReplayResult result;
  result.records = static_cast<int64_t>(comparison.log().size());
  result.records_equal = static_cast<int64_t>(comparison.NumberOf(comparison.at()));
  for (size_t i = 0; i < comparison.log().size(); ++i) {
    if (!IsDecision(TypeOf(comparison.log()[i]))) continue;
    ++result.decisions;
    if (static_cast<int64_t>(i) < result.records_equal) ++result.decisions_equal;
  }
  result.difference = comparison.difference();
  result.matches = result.difference.empty();
  // What the scheduler appends when it ends was not recorded.
  comparison.Stop("The replay is over.");
  return result;
}

}  // namespace gpushare::core
