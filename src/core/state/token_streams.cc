// Slots of token streams and their marks (token_streams.h).

#include "src/core/state/token_streams.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/base/ids.h"
#include "src/core/base/limits.h"

namespace gpushare::core {
namespace {

absl::Status NoStream(TokenStreamId id) {
  return absl::InvalidArgumentError(
      absl::StrCat("Token stream ", id.value, " was not begun or is ended already."));
}

}  // namespace

std::unique_ptr<TokenStreams::Slots> TokenStreams::MakeSlots() const {
  if (has_slots_.load(std::memory_order_acquire)) return nullptr;
  auto slots = std::make_unique<Slots>();
  slots->streams.resize(kMaxTokenStreams);
  slots->marks.resize(kMaxTokenMarks);
  slots->free_streams.reserve(kMaxTokenStreams);
  for (int32_t s = kMaxTokenStreams - 1; s >= 0; --s) slots->free_streams.push_back(s);
  for (int32_t m = 0; m < kMaxTokenMarks; ++m) {
    slots->marks[static_cast<size_t>(m)].next = m + 1 < kMaxTokenMarks ? m + 1 : kNone;
  }
  return slots;
}

void TokenStreams::Use(std::unique_ptr<Slots>& slots) {
  if (slots_ != nullptr || slots == nullptr) return;
  slots_ = std::move(slots);
  free_mark_ = 0;
  marks_left_ = kMaxTokenMarks;
  has_slots_.store(true, std::memory_order_release);
}

absl::StatusOr<TokenStreamId> TokenStreams::Begin(App& app, TimeNs arrival_ns, TimeNs now_ns) {
  if (app.token_streams >= app.options.tasks_max) {
    while (IsIdle(app, ListOf(app).oldest, now_ns)) Free(At(ListOf(app).oldest));
  }
  if (app.token_streams >= app.options.tasks_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("App '", app.options.name, "' has ", app.token_streams,
                     " open token streams, and it may have ", app.options.tasks_max,
                     ", as many as it has task slots."));
  }
  if (slots_->free_streams.empty()) {
    return absl::ResourceExhaustedError(absl::StrCat("The runtime has ", kMaxTokenStreams,
                                                     " open token streams, and has no more."));
  }
  const int32_t slot = slots_->free_streams.back();
  slots_->free_streams.pop_back();
  Stream& stream = At(slot);
  stream.app = &app;
  ++stream.generation;
  stream.arrival_ns = arrival_ns;
  stream.marked_ns = 0;
  stream.quiet_since_ns = now_ns;
  Link(stream);
  ++app.token_streams;
  return TokenStreamId{PackSlot({0, static_cast<uint32_t>(slot), stream.generation})};
}

absl::Status TokenStreams::Mark(absl::Span<const TokenStreamId> streams, Task& task) {
  if (!IsLc(task)) {
    return absl::InvalidArgumentError(
        "A mark names a best-effort task, and tokens come from latency-critical ones.");
  }
  for (const TokenStreamId id : streams) {
    if (Find(id) == nullptr) return NoStream(id);
  }
  if (static_cast<int64_t>(streams.size()) > marks_left_) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMaxTokenMarks - marks_left_, " marks wait for the ends of their tasks, and ",
                     "there may be ", kMaxTokenMarks, "."));
  }
  for (const TokenStreamId id : streams) {
    const int32_t index = free_mark_;
    MarkOf& mark = slots_->marks[static_cast<size_t>(index)];
    free_mark_ = mark.next;
    --marks_left_;
    mark = {id, task.token_mark - 1};
    task.token_mark = index + 1;
  }
  if (task.complete.load(std::memory_order_acquire)) TaskEnded(task);
  return absl::OkStatus();
}

absl::Status TokenStreams::End(TokenStreamId id) {
  Stream* const stream = Find(id);
  if (stream == nullptr) return NoStream(id);
  Free(*stream);
  return absl::OkStatus();
}

int32_t TokenStreams::Abandon(App& app, int64_t idle_ns, TimeNs now_ns) {
  int32_t ended = 0;
  for (int32_t slot = ListOf(app).oldest; slot != kNone;) {
    Stream& stream = At(slot);
    slot = stream.newer;
    if (idle_ns > 0 && now_ns - stream.quiet_since_ns < idle_ns) continue;
    Free(stream);
    ++ended;
  }
  return ended;
}

int64_t TokenStreams::TaskEnded(Task& task) {
  int64_t longest_ns = 0;
  for (int32_t index = task.token_mark - 1; index != kNone;) {
    MarkOf& mark = slots_->marks[static_cast<size_t>(index)];
    Stream* const stream = Find(mark.stream);
    if (stream != nullptr && task.record.verdict == Verdict::kOk) {
      const int64_t distance_ns = Count(*stream, task.record.complete_ns);
      if (stream->app == task.app) longest_ns = std::max(longest_ns, distance_ns);
    }
    const int32_t next = mark.next;
    mark.next = free_mark_;
    free_mark_ = index;
    ++marks_left_;
    index = next;
  }
  task.token_mark = 0;
  return longest_ns;
}

TokenStreams::Stream* TokenStreams::Find(TokenStreamId id) {
  if (id.value == 0 || (id.value & 0xffff) == 0) return nullptr;
  const SlotAddress address = UnpackSlot(id.value);
  if (address.owner != 0 || slots_ == nullptr) return nullptr;
  if (address.slot >= slots_->streams.size()) return nullptr;
  Stream& stream = slots_->streams[address.slot];
  const bool same = (stream.generation & kGenerationMask) == address.generation;
  return stream.app != nullptr && same ? &stream : nullptr;
}

int64_t TokenStreams::Count(Stream& stream, TimeNs now_ns) {
  AppEvidence& app = stream.app->evidence;
  const TimeNs before_ns = stream.marked_ns;
  // A task that is marked late may have ended before another one of the stream.
  stream.marked_ns = std::max(before_ns, now_ns);
  if (now_ns > stream.quiet_since_ns) {
    stream.quiet_since_ns = now_ns;
    Unlink(stream);
    Link(stream);
  }
  if (before_ns == 0) {
    app.first_tokens.Add(std::max<int64_t>(0, now_ns - stream.arrival_ns));
    return 0;
  }
  const int64_t distance_ns = std::max<int64_t>(0, now_ns - before_ns);
  const Promise& promise = stream.app->options.promise;
  app.token_distances.Add(distance_ns, distance_ns > promise.LatencyLimit());
  return distance_ns;
}

void TokenStreams::Free(Stream& stream) {
  Unlink(stream);
  --stream.app->token_streams;
  stream.app = nullptr;
  slots_->free_streams.push_back(SlotOf(stream));
}

// As the newest one of its app. Marks that come late may break the order: what they leave behind a
// newer one makes room later.
void TokenStreams::Link(Stream& stream) {
  List& list = ListOf(*stream.app);
  const int32_t slot = SlotOf(stream);
  stream.older = list.newest;
  stream.newer = kNone;
  (list.newest == kNone ? list.oldest : At(list.newest).newer) = slot;
  list.newest = slot;
}

void TokenStreams::Unlink(Stream& stream) {
  List& list = ListOf(*stream.app);
  (stream.older == kNone ? list.oldest : At(stream.older).newer) = stream.newer;
  (stream.newer == kNone ? list.newest : At(stream.newer).older) = stream.older;
}

bool TokenStreams::IsIdle(const App& app, int32_t slot, TimeNs now_ns) {
  return slot != kNone && now_ns - At(slot).quiet_since_ns >= app.options.idle_timeout_ns;
}

}  // namespace gpushare::core
