// The gate of an eager BE loop (gpushare/torch/eager.py): each launch on its stream waits here
// until the library leaves room for it.
//
//   gate.Launch(key)     before each launch; returns when it may go to the GPU
//   gate.Launched()      behind it, if WantsLaunched()
//   gate.Close()         launches that wait end; so does the open region; waits for the regions,
//                        at most kCloseNs
//
// A BE region is open while launches go on. Mostly a launch finds it open with room, and costs a
// clock, a call of gpushare_region_room and a few sums. Otherwise:
//
//   LC work runs            the region ends, and the next one begins when there is room again
//   too much outstanding    waits for what was launched before
//   an unknown operation    runs alone until LC work leaves it alone once, and what it takes then
//                           is its expected time
//   longer than the room    a region of its own, as soon as the idle time has saved for it or the
//                           tail accounts have the credit
//
// An unknown operation claims what unknown ones before it took, and twice the time that LC work has
// left it alone. So in a loop of long operations the first runs of all but one are on credit too.
//
// What is outstanding is what was launched and is not complete, by expected times. Events behind
// groups of launches correct the sum, and teach the times. A query meets all of what is
// outstanding, and on average half of a single operation, which is why gpushare_region_room counts
// twice there.
//
// Invariants: with known times at most outstanding_ns are outstanding, or one operation. An error
// of the library opens the gate for good: a launch cannot fail, and the loop's end reports it.
// A wait ends with room, with an error, with Close of any thread, or with a signal (HostCalls).
// None is inside a call of the library: each asks and comes back, so that these can end it.
// Threads: any; the interpreter's lock is released while a launch waits. Close is called without
// it.

#ifndef GPUSHARE_BINDINGS_PYTHON_NATIVE_EAGER_GATE_H_
#define GPUSHARE_BINDINGS_PYTHON_NATIVE_EAGER_GATE_H_

#include <gpushare/gpushare.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "bindings/python/native/operation_times.h"

namespace gpushare::python {

struct LibraryCalls {
  decltype(&gpushare_region_begin) region_begin = nullptr;
  decltype(&gpushare_region_end) region_end = nullptr;
  decltype(&gpushare_region_room) region_room = nullptr;
  decltype(&gpushare_ticket_wait) ticket_wait = nullptr;
  decltype(&gpushare_ticket_release) ticket_release = nullptr;
};

// Functions of the CUDA driver. The status 0 is success. All null: a device without streams, where
// what is outstanding is known by expected times alone.
struct DriverCalls {
  int (*event_create)(void** out, unsigned flags) = nullptr;
  int (*event_destroy)(void* event) = nullptr;
  int (*event_record)(void* event, void* stream) = nullptr;
  int (*event_query)(void* event) = nullptr;  // 0: complete
  int (*stream_wait_event)(void* stream, void* event, unsigned flags) = nullptr;
  int (*stream_is_capturing)(void* stream, int* out_status) = nullptr;  // 0: it is not
  // A query of an event would spoil a capture that another thread makes in the global mode.
  int (*exchange_capture_mode)(int* mode) = nullptr;
};

struct HostCalls {
  int64_t (*now_ns)() = nullptr;
  // Between two looks of a launch that has waited for so long.
  void (*pause)(int64_t waited_ns) = nullptr;
  // Gives the interpreter's lock away where this thread has it. The result is for `restore`.
  void* (*release)() = nullptr;
  void (*restore)(void* released) = nullptr;
  // Whether a signal ends the wait. May take the lock and give it away again, and run any code.
  // Null: no signal does.
  bool (*interrupted)(void* released) = nullptr;
};

// The clock and the pauses of this machine, without an interpreter.
HostCalls SystemCalls();

struct EagerOptions {
  gpushare_runtime* runtime = nullptr;
  // Two regions take turns: the next one begins before the last one is complete.
  std::array<gpushare_queue*, 2> queues = {};
  void* stream = nullptr;  // of the loop
  int64_t outstanding_ns = 0;
};

struct EagerCounts {
  std::atomic<int64_t> operations = 0;
  std::atomic<int64_t> regions = 0;
  std::atomic<int64_t> refusals = 0;   // regions that might not begin yet
  std::atomic<int64_t> on_credit = 0;  // operations longer than the room, or on what was saved
  std::atomic<int64_t> measured = 0;   // alone, because nothing was known
  std::atomic<int64_t> held_ns = 0;    // time that launches waited
};

class EagerGate {
 public:
  EagerGate(const EagerOptions& options, const LibraryCalls& library, const DriverCalls& driver,
            const HostCalls& host);
  EagerGate(const EagerGate&) = delete;
  EagerGate& operator=(const EagerGate&) = delete;

  // Makes the events. False: the driver refuses. Close destroys them.
  bool Open();
  // GPUSHARE_OK, or the error that opened the gate for good. GPUSHARE_CANCELLED: a signal ended the
  // wait. GPUSHARE_FAILED_PRECONDITION: the gate is closed.
  gpushare_status Launch(uint64_t key);
  bool WantsLaunched() const { return follows_.load(std::memory_order_relaxed); }
  void Launched();
  // Without the interpreter's lock. GPUSHARE_DEADLINE_EXCEEDED: a region was not complete, or could
  // not be ended, within kCloseNs; what was launched goes on. A second one waits for the first.
  gpushare_status Close();
  // Longer than the library's hang limit of a short task, 10 s, behind which the task completes.
  static constexpr int64_t kCloseNs = 30'000'000'000;

  const EagerCounts& counts() const { return counts_; }
  void* stream() const { return options_.stream; }

 private:
  static constexpr int kGroups = 8;     // that wait for their event
  static constexpr int kGroupMax = 32;  // launches

  // Launches between two events.
  struct Group {
    void* event = nullptr;
    int64_t first_ns = 0;  // when the first and the last were launched
    int64_t last_ns = 0;
    int64_t work_ns = 0;  // expected
    int count = 0;
    std::array<uint16_t, kGroupMax> slots = {};

    const uint16_t* begin() const { return slots.data(); }
    const uint16_t* end() const { return slots.data() + count; }
  };
  struct Lane {
    gpushare_queue* queue = nullptr;
    gpushare_ticket ticket = {0};  // of its last region
    void* stream = nullptr;        // of that region
  };

  // The two locks of a call: the gate's, and the interpreter's, which is away while the call waits.
  class Waiting;

  bool MayGo(int64_t now_ns, int64_t expected_ns);
  gpushare_status Await(uint16_t slot, Waiting& waiting, int64_t& now_ns);
  bool TryToGo(uint16_t slot, Waiting& waiting, bool& progress);
  bool TryAlone(int64_t needs_ns, int64_t room_ns, Waiting& waiting, bool& progress);
  void NoteLaunch(uint16_t slot, int64_t now_ns);
  int64_t UnknownNs(uint16_t slot, int64_t room_ns) const;
  void RaiseUnknown(int64_t took_ns);
  void FinishMeasurement(Waiting& waiting);

  int64_t Room();
  int64_t StandingNs(int64_t room_ns) const;
  bool BeginRegion(int64_t bound_ns, Waiting& waiting);
  bool EndRegion();
  bool Leave(Lane& lane);
  void GiveUp(Lane& lane);

  void DestroyEvent(Group& group);
  bool HasEvents() const { return driver_.event_record != nullptr; }
  bool IsCapturing() const;
  bool IsDrained() const;
  void CloseGroup();
  bool Reap();
  bool IsComplete(const Group& group);
  bool ReapOldest();
  void Learn(const Group& group, int64_t end_ns, bool exact);
  int64_t LaterNs() const;
  void Fail(gpushare_status status);
  Group& At(int index) { return groups_[static_cast<size_t>((first_ + index) % kGroups)]; }
  const Group& At(int index) const {
    return groups_[static_cast<size_t>((first_ + index) % kGroups)];
  }

  const EagerOptions options_;
  const LibraryCalls library_;
  const DriverCalls driver_;
  const HostCalls host_;
  std::mutex mutex_;
  OperationTimes times_;
  EagerCounts counts_;
  gpushare_status failed_ = GPUSHARE_OK;
  bool closes_ = false;  // a Close has begun, and later ones wait for it
  bool closed_ = false;
  std::atomic<bool> closing_ = false;  // set without mutex_, which a launch that waits has

  std::array<Lane, 2> lanes_;
  bool region_open_ = false;       // of lanes_[0]
  bool region_on_credit_ = false;  // of one operation, which it has
  int64_t region_bound_ns_ = 0;
  int64_t region_began_ns_ = 0;
  int64_t credit_asked_ns_ = 0;  // when a region on credit was asked for last

  std::array<Group, kGroups> groups_;
  int first_ = 0;    // the oldest group that waits for its event
  int pending_ = 0;  // such groups
  Group group_;      // of the launches since the last event
  void* last_event_ = nullptr;
  int64_t busy_until_ns_ = 0;  // when what is outstanding is complete, as expected
  int64_t looked_ns_ = 0;      // when the oldest group was found incomplete last
  int64_t last_end_ns_ = 0;    // of the group before, and whether it was seen when it happened
  bool last_exact_ = false;
  int32_t measures_ = -1;   // the slot of the unknown operation that runs alone; -1: none
  int64_t unknown_ns_ = 0;  // what one claims of which nothing was seen; 0: none has run
  std::atomic<bool> follows_ = false;
};

}  // namespace gpushare::python

#endif  // GPUSHARE_BINDINGS_PYTHON_NATIVE_EAGER_GATE_H_
