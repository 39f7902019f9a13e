// Token streams: the tokens that LC requests got, and the times between them.
//
// An engine's step gives a token to each of the requests that it serves. A request has a stream; a
// mark says that a task gives its stream a token, when the task has ended well. The first mark is
// the time to the first token (TTFT), counted from the request's arrival; each further one the
// distance to the one before (TBT). A task may be marked by many streams.
//
//   Use(MakeSlots())                  before the first Begin
//   Begin(app, arrival) -> stream     a request
//   Mark(stream, task)                before the task's end or after it, while its ticket is held
//   TaskEnded(task)                   its marks count
//   End(stream)
//
// An app has at most as many open streams as task slots. When it has no more, those that got no
// mark for its idle timeout are ended: their requests were lost. So are they by AbandonQueries, as
// queries are. A stream is no load and holds no BE work. Marks of a stream that has ended count no
// more.
//
// Nothing allocates but MakeSlots, for the first stream of a flow. Threads: MakeSlots any; the rest
// under the lock of Tick.

#ifndef GPUSHARE_SRC_CORE_STATE_TOKEN_STREAMS_H_
#define GPUSHARE_SRC_CORE_STATE_TOKEN_STREAMS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/core/base/limits.h"
#include "src/core/base/types.h"
#include "src/core/state/options.h"
#include "src/core/state/task.h"

namespace gpushare::core {

class TokenStreams {
  struct Stream {
    App* app = nullptr;  // null: free
    uint64_t generation = 0;
    TimeNs arrival_ns = 0;
    TimeNs marked_ns = 0;  // the last one; 0: none yet
    TimeNs quiet_since_ns = 0;
    int32_t older = kNone;  // of its app, by quiet_since_ns
    int32_t newer = kNone;
  };
  struct MarkOf {
    TokenStreamId stream;
    int32_t next = kNone;
  };

 public:
  // More than a megabyte.
  struct Slots {
    std::vector<Stream> streams;
    std::vector<int32_t> free_streams;
    std::vector<MarkOf> marks;
  };
  // Null: they are in use already.
  std::unique_ptr<Slots> MakeSlots() const;
  // Leaves them to the caller if others are in use.
  void Use(std::unique_ptr<Slots>& slots);
  // RESOURCE_EXHAUSTED: the app has as many as it may have.
  absl::StatusOr<TokenStreamId> Begin(App& app, TimeNs arrival_ns, TimeNs now_ns);
  // All of them or none. INVALID_ARGUMENT: one is not open, or the task is BE; RESOURCE_EXHAUSTED:
  // too many marks wait for the ends of tasks.
  absl::Status Mark(absl::Span<const TokenStreamId> streams, Task& task);
  absl::Status End(TokenStreamId id);
  // Null: it is not open.
  App* AppOf(TokenStreamId id) {
    const Stream* const stream = Find(id);
    return stream == nullptr ? nullptr : stream->app;
  }
  // Ends those of the app without a mark for `idle_ns`; 0: all. Returns how many.
  int32_t Abandon(App& app, int64_t idle_ns, TimeNs now_ns);
  // The app is released.
  void Drop(App& app) { Abandon(app, 0, 0); }

  // Counts the marks of a task that has ended; its record has the verdict and the time. Returns the
  // longest distance that they end, of streams of the task's own app; 0: none.
  int64_t TaskEnded(Task& task);

 private:
  static constexpr int32_t kNone = -1;
  struct List {
    int32_t oldest = kNone;
    int32_t newest = kNone;
  };

  Stream& At(int32_t slot) { return slots_->streams[static_cast<size_t>(slot)]; }
  int32_t SlotOf(const Stream& stream) const {
    return static_cast<int32_t>(&stream - slots_->streams.data());
  }
  List& ListOf(const App& app) { return lists_[static_cast<size_t>(app.slot)]; }
  void Link(Stream& stream);
  void Unlink(Stream& stream);
  bool IsIdle(const App& app, int32_t slot, TimeNs now_ns);
  Stream* Find(TokenStreamId id);
  // Returns the distance; 0 for the first mark.
  int64_t Count(Stream& stream, TimeNs now_ns);
  void Free(Stream& stream);

  std::unique_ptr<Slots> slots_;  // null before the first stream
  std::atomic<bool> has_slots_{false};
  std::array<List, kMaxApps> lists_;  // by the app's slot
  int32_t free_mark_ = kNone;
  int32_t marks_left_ = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_TOKEN_STREAMS_H_
