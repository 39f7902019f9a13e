// Performs the inputs of a log. See input_player.h.

#include "src/core/replay/input_player.h"

#include <cassert>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"
#include "src/core/base/tuning.h"

namespace gpushare::core {
namespace {

void NoHostWork(void*, void*) {}

}  // namespace

InputPlayer::InputPlayer(Comparison& comparison, ReplayDevice& device, Scheduler& scheduler)
    : comparison_(comparison), device_(device), scheduler_(scheduler) {
  for (const EventRecord& record : comparison.log()) {
    if (TypeOf(record) != EventType::kWaits) continue;
    if (IsOfTokens(record)) {
      ++uses_left_[Decode<TokensMarked>(record).ticket];
      continue;
    }
    for (const TicketId ticket : Decode<Waits>(record).waits_for) {
      if (ticket) ++uses_left_[ticket];
    }
  }
}

void InputPlayer::Run() {
  int idle_ticks = 0;
  while (comparison_.Going()) {
    if (comparison_.Next().time_ns > device_.NowNs()) PassTime(comparison_.Next().time_ns);
    if (!comparison_.Going()) break;
    device_.AdvanceTo(comparison_.Next().time_ns);
    const size_t before = comparison_.at();
    if (IsInput(comparison_.Next())) {
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

// Plans that nothing but their time asked for leave no event where they change nothing to see, and
// others start from what they decided.
void InputPlayer::PassTime(TimeNs until_ns) {
  int ticks = 0;
  while (comparison_.Going() && scheduler_.Tick()) {
    if (++ticks > kMaxReplayTicksAtOnce) {
      comparison_.Stop(absl::StrCat("The replay does not come to rest before event ",
                                    comparison_.NumberOf(comparison_.at()), "."));
    }
  }
  if (!comparison_.Going() || until_ns - 1 <= device_.NowNs()) return;
  const absl::Status status = scheduler_.PollUntil(until_ns - 1);
  if (!status.ok()) comparison_.Stop(std::string(status.message()));
}

void InputPlayer::PerformInputs() {
  while (comparison_.Going() && IsInput(comparison_.Next()) &&
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

absl::Status InputPlayer::Perform(const EventRecord& input) {
  switch (TypeOf(input)) {
    case EventType::kSubmitted:
      return Submit(Decode<Submitted>(input));
    case EventType::kWaits:
      return Mark(Decode<TokensMarked>(input).ticket);
    case EventType::kQueryBeginCalled:
      return BeginQueryOrStream(input);
    case EventType::kAppUpdated:
      return Update(Decode<AppUpdated>(input));
    default:
      return EndQueryOrStream(input);
  }
}

absl::Status InputPlayer::BeginQueryOrStream(const EventRecord& input) {
  if (IsOfTokens(input)) {
    const auto begin = Decode<TokenStreamBegun>(input);
    return scheduler_.BeginTokenStream(begin.app, begin.arrival_ns).status();
  }
  const auto begin = Decode<QueryBeginCalled>(input);
  return scheduler_.BeginQuery(begin.queue, begin.arrival_ns, begin.input_size).status();
}

absl::Status InputPlayer::EndQueryOrStream(const EventRecord& input) {
  if (IsOfTokens(input)) {
    return scheduler_.EndTokenStream(comparison_.ToReplay(Decode<TokenStreamEnded>(input).stream));
  }
  return scheduler_.EndQuery(comparison_.ToReplay(Decode<QueryEndCalled>(input).query));
}

// One call of the recorded run, or several of the same task that fill their records: those do the
// same in one.
absl::Status InputPlayer::Mark(TicketId ticket) {
  std::vector<TokenStreamId> streams;
  int records = 0;
  for (bool more = true; more && comparison_.HasNext(static_cast<size_t>(records));) {
    const EventRecord& record = comparison_.Next(static_cast<size_t>(records));
    if (TypeOf(record) != EventType::kWaits || !IsOfTokens(record)) break;
    const auto marked = Decode<TokensMarked>(record);
    if (marked.ticket != ticket) break;
    ++records;
    for (const TokenStreamId stream : marked.streams) {
      if (stream) streams.push_back(comparison_.ToReplay(stream));
    }
    more = static_cast<bool>(marked.streams.back());
  }
  absl::Status status = scheduler_.MarkTokens(streams, comparison_.ToReplay(ticket));
  for (; status.ok() && records > 0; --records) status = Used(ticket);
  return status;
}

absl::Status InputPlayer::Used(TicketId ticket) {
  if (--uses_left_[ticket] > 0) return absl::OkStatus();
  return scheduler_.ReleaseTicket(comparison_.ToReplay(ticket));
}

absl::Status InputPlayer::Update(const AppUpdated& input) {
  AppUpdate update;
  if (input.app_class == AppClass::kBestEffort) {
    update.weight = input.weight;
  } else {
    update.promise = PromiseUpdate::Of(input.promise);
    update.priority = input.priority;
  }
  return scheduler_.UpdateApp(input.app, update);
}

absl::Status InputPlayer::Submit(const Submitted& input) {
  TaskSpec spec;
  spec.queue = input.queue;
  if ((input.query.value & kImplicitQueryBit) == 0) spec.query = comparison_.ToReplay(input.query);
  spec.kernel = input.task.kernel;
  spec.arrival_ns = input.arrival_ns;
  // A log has no releases. A ticket is kept as long as a later submission or mark names it.
  spec.detached = uses_left_.count(input.task.ticket) == 0;
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
  const NextStated stated = StatedOf(input.task.ticket);
  spec.next_within_ns = stated.within_ns;
  spec.input_size = stated.input_size;
  const std::vector<TicketId> recorded_waits = WaitsOf(input.task.ticket);
  std::vector<TicketId> waits;
  waits.reserve(recorded_waits.size());
  for (const TicketId ticket : recorded_waits) waits.push_back(comparison_.ToReplay(ticket));
  spec.wait_tickets = waits;
  const bool critical = input.task.app_class == AppClass::kLatencyCritical;
  absl::Status status = (critical ? scheduler_.SubmitLc(spec) : scheduler_.SubmitBe(spec)).status();
  for (const TicketId ticket : recorded_waits) {
    if (status.ok()) status = Used(ticket);
  }
  return status;
}

std::vector<TicketId> InputPlayer::WaitsOf(TicketId ticket) const {
  std::vector<TicketId> waits;
  for (size_t ahead = 1; comparison_.HasNext(ahead); ++ahead) {
    const EventRecord& record = comparison_.Next(ahead);
    if (TypeOf(record) != EventType::kWaits || IsOfTokens(record)) break;
    const auto event = Decode<Waits>(record);
    if (event.ticket != ticket) break;
    for (TicketId earlier : event.waits_for) {
      if (earlier) waits.push_back(earlier);
    }
  }
  return waits;
}

NextStated InputPlayer::StatedOf(TicketId ticket) const {
  size_t ahead = 1;
  while (comparison_.HasNext(ahead) && TypeOf(comparison_.Next(ahead)) == EventType::kWaits)
    ++ahead;
  if (!comparison_.HasNext(ahead)) return {};
  const EventRecord& record = comparison_.Next(ahead);
  if (TypeOf(record) != EventType::kNextStated) return {};
  const auto stated = Decode<NextStated>(record);
  return stated.ticket == ticket ? stated : NextStated();
}

}  // namespace gpushare::core
