// Words of the library as types: identifiers, times, classes, kinds and states.
//
// Every stage uses these. Nothing here knows a device. Identifiers are strong: an AppId cannot be
// passed where a QueueId is meant. The value 0 is "none" for every Id; places and lanes are dense
// indices, where -1 is "none".

#ifndef GPUSHARE_SRC_CORE_BASE_TYPES_H_
#define GPUSHARE_SRC_CORE_BASE_TYPES_H_

#include <cstdint>
#include <functional>
#include <limits>

namespace gpushare::core {

// Nanoseconds on the device's injected monotonic clock (virtual on the simulated device).
using TimeNs = int64_t;
inline constexpr TimeNs kNever = std::numeric_limits<int64_t>::max();

template <class Tag, class Rep = uint32_t>
struct Id {
  Rep value = 0;
  constexpr explicit operator bool() const { return value != 0; }
  friend constexpr bool operator==(Id a, Id b) { return a.value == b.value; }
  friend constexpr bool operator!=(Id a, Id b) { return a.value != b.value; }
  friend constexpr bool operator<(Id a, Id b) { return a.value < b.value; }
};

using AppId = Id<struct AppTag>;
using QueueId = Id<struct QueueTag>;
using KernelId = Id<struct KernelTag>;
using QueryId = Id<struct QueryTag, uint64_t>;
using TokenStreamId = Id<struct TokenStreamTag, uint64_t>;
using TicketId = Id<struct TicketTag, uint64_t>;  // app, slot and generation; see ids.h
using LaunchId = Id<struct LaunchTag, uint64_t>;  // one device launch; a task may need several

using PlaceIndex = int32_t;  // a set of SMs: the whole device or one side of a split
inline constexpr PlaceIndex kWholeDevice = 0;
inline constexpr PlaceIndex kNoPlace = -1;
using LaneIndex = int32_t;
inline constexpr LaneIndex kNoLane = -1;

enum class AppClass : uint8_t { kLatencyCritical = 0, kBestEffort = 1 };

enum class TaskKind : uint8_t {
  kKernel = 0,   // a registered kernel with block tasks
  kGraph = 1,    // a registered graph: a chain of nodes that one launch starts
  kLibrary = 2,  // a cuBLAS or cuDNN call, not evictable
  kMemcpy = 3,
  kOpaque = 4,  // a callback or a region on a stream that the library gives
};

// How a task is launched. The same task may be relaunched in another form after an eviction.
enum class Form : uint8_t {
  kOriginal = 0,  // the ordinary grid, as CUDA would launch it
  kWorkers = 1,   // persistent workers that take block tasks until none is left or they are evicted
  kSlice = 2,     // a contiguous range of block tasks as an ordinary grid
  kFused = 3,     // workers of a precompiled pair
  kGraph = 4,
  kLibrary = 5,
  kMemcpy = 6,
  kOpaque = 7,
  kSegments = 8,  // parts of a graph, one after another, until none is left or it is evicted
};

// kPeer: device memory to device memory, of one GPU or of two.
enum class CopyDirection : uint8_t { kNone = 0, kHostToDevice = 1, kDeviceToHost = 2, kPeer = 3 };

// What BE apps share by weight, each by itself: the time of the SMs, and that of copies in each
// direction. An app that copies has no more and no less of the SMs for it.
inline constexpr size_t kSharedResources = 4;
inline constexpr size_t kSmTime = 0;
constexpr size_t ResourceOf(TaskKind kind, CopyDirection direction) {
  return kind == TaskKind::kMemcpy ? static_cast<size_t>(direction) : kSmTime;
}

// Directions of the link in which copies run: a bit each.
using LinkUse = uint8_t;
inline constexpr LinkUse kLinkIn = 1;   // to the device
inline constexpr LinkUse kLinkOut = 2;  // from the device
inline constexpr size_t kLinkUses = 4;  // combinations of directions, with none
constexpr LinkUse LinkUseOf(CopyDirection direction) {
  if (direction == CopyDirection::kHostToDevice) return kLinkIn;
  return direction == CopyDirection::kDeviceToHost ? kLinkOut : LinkUse{0};
}

// A task's life. Legal transitions: task_state.h.
enum class TaskState : uint8_t {
  kFree = 0,
  kSubmitted = 1,  // in the submit queue
  kWaiting = 2,    // admitted; a ticket or an earlier task of its queue is not done
  kReady = 3,      // head of its queue; the planner sees it
  kRunning = 4,    // at least one launch is on the device
  kEvicting = 5,   // every launch is evicted and at least one has not ended
  kDone = 6,
  kFailed = 7,
  kCancelled = 8,
  kDropped = 9,    // late, and its app asked to drop late queries
  kTimedOut = 10,  // the device never completed it; its lane was given up
};

constexpr bool IsTerminal(TaskState state) { return state >= TaskState::kDone; }

// What a ticket ends with.
enum class Verdict : uint8_t {
  kPending = 0,
  kOk = 1,
  kFailed = 2,
  kCancelled = 3,
  kDropped = 4,
  kTimedOut = 5,
  kDeviceLost = 6,
  kShutdown = 7,
};

// The planner's reasons, for plans, the event log, `explain` and traces.
enum class Reason : uint8_t {
  kNone = 0,
  kLcFirst = 1,               // an LC task: launched at once
  kFastPath = 2,              // an LC task launched by its submitter
  kBaseline = 3,              // fifo or priority: everything is launched in order of submission
  kIdleDevice = 4,            // no LC query is active
  kFitsHeadroom = 5,          // BE fits every headroom (Baymax 5.2)
  kFitsBlockingBudget = 6,    // BE's blocking time fits every budget
  kBesidePartition = 7,       // BE runs on SMs that the LC apps do not use
  kElasticReturn = 8,         // BE returns to the LC side of a split
  kResume = 9,                // the rest of an evicted task
  kQuota = 10,                // limited to its CapSM quota (SMGuard algorithm 1)
  kFillsGap = 11,             // a copy or slice cut to the blocking budget
  kTailCredit = 12,           // on credit of the tail accounts: it blocks longer than a budget
  kCoResident = 13,           // BE shares its SMs with a kernel that suits it
  kHoldHeadroom = 32,         // held: longer than the headroom of an active query
  kHoldBlocking = 33,         // held: its blocking time exceeds a blocking budget
  kHoldLcActive = 34,         // held: LC work is on the SMs it needs
  kHoldQueuedTime = 35,       // held: T_q gate (Baymax 5.2.1)
  kHoldCopies = 36,           // held: N_tr copies run in this direction (Baymax eq. 5)
  kHoldWindow = 37,           // held: the policy's in-flight window is full
  kHoldCapSm = 38,            // held: no CapSM left under its quota
  kHoldHysteresis = 39,       // held: the last LC query ended a moment ago
  kHoldQuiesced = 40,         // held: the application asked for quiet
  kHoldLane = 41,             // held: no lane of its place can take it
  kHoldParts = 42,            // held: it has as many launches as a task may have
  kHoldRunning = 43,          // held: as many BE tasks run as the device may have
  kHoldCounters = 44,         // held: every claim counter is in use
  kHoldLaunches = 45,         // held: the launch table is full
  kHoldPlan = 48,             // held: the policy's plan asks for what cannot be done
  kHoldTailCredit = 49,       // held: beyond a blocking budget, and a tail account lacks credit
  kHoldDuty = 50,             // held: BE work has had its share of time, and makes queries slower
  kHoldLcPriority = 51,       // held: an LC app of higher priority has a query, and it yields
  kEvictForLc = 64,           // evicted: an LC task needs its SMs
  kEvictForReservation = 65,  // evicted in part: an LC reservation is short of CapSMs
  kEvictForLayout = 66,       // evicted: the planner changed the partition layout
  kEvictForQuota = 67,        // evicted in part: its quota shrank
  kEvictForLcPriority = 68,   // evicted: an LC app of higher priority has a query
  kUserPolicy = 96,           // a policy from the application
  kDependencyFailed = 128,    // failed: what it waited for did not end OK
};

}  // namespace gpushare::core

template <class Tag, class Rep>
struct std::hash<gpushare::core::Id<Tag, Rep>> {
  size_t operator()(gpushare::core::Id<Tag, Rep> id) const noexcept {
    return std::hash<Rep>()(id.value);
  }
};

#endif  // GPUSHARE_SRC_CORE_BASE_TYPES_H_
