// Every bound of the command's own inputs, with its unit and its reason.

#ifndef GPUSHARE_TOOLS_GPUSHARE_BASE_LIMITS_H_
#define GPUSHARE_TOOLS_GPUSHARE_BASE_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace gpushare::tool {

// A scenario with a million explicit arrivals is about 12 MB; anything larger is not a scenario.
inline constexpr size_t kScenarioBytesMax = size_t{16} << 20;
// A task set of 1,024 tasks with 132 measured sizes each, with and without conflict, is about 8 MB.
inline constexpr size_t kTaskSetBytesMax = size_t{16} << 20;
// Random sets at one point of a figure, and tasks of one: hours of planning beyond.
inline constexpr int64_t kEvaluatedSetsMax = 100'000;
inline constexpr int64_t kEvaluatedTasksMax = 1'000;
// JSON nesting: the schema itself is six deep.
inline constexpr int kJsonDepthMax = 32;
// The library's own limit on apps in one process.
inline constexpr size_t kAppsMax = 64;
// The library's own limit on priorities of LC apps, up and down.
inline constexpr int kPriorityMax = 100;
inline constexpr size_t kCasesMax = 1024;
// The library takes 1024 fused kernels; a scenario has few.
inline constexpr size_t kFusedPairsMax = 64;
// Blocks of a part in a fused block: the library's own limit.
inline constexpr int64_t kFusedBlocksMax = 32;
// Threads and bytes of shared memory in `ptx --fused`: the library refuses far less.
inline constexpr uint32_t kFusedNumberMax = 1 << 24;
inline constexpr uint32_t kThreadRegistersMax = 255;
// Phases of a stream of arrivals: a day in steps of five minutes has 288.
inline constexpr size_t kPhasesMax = 1024;
// The shortest phase: below the time of any query, and long enough that a silence of an hour is
// passed at once.
inline constexpr int64_t kPhaseNsMin = 1'000;
// Rates are relative, so that a larger one is a unit error.
inline constexpr double kPhaseRateMax = 1e6;
// Mean queries of a batch.
inline constexpr double kBatchSizeMax = 1'000;
// Gaps and busy periods of an engine that a scenario does not state: those of a decoder of 1.1 B
// parameters on an H200.
inline constexpr int64_t kStepGapNsMin = 50'000;
inline constexpr int64_t kStepGapNsMax = 300'000;
inline constexpr int64_t kStatedGapNsMax = 100'000'000;  // what the library takes
inline constexpr int64_t kStepBusyNsMin = 20'000'000;
inline constexpr int64_t kStepBusyNsMax = 500'000'000;
// What the library takes of a periodic app.
inline constexpr size_t kWorstCasesMax = 1'024;
inline constexpr int kPlaceSmsMax = 1'024;
inline constexpr double kNeighbourFactorMax = 100;
// Of a period, the most by which a sporadic gap is longer: beyond it another period is meant.
inline constexpr double kJitterMax = 10;
inline constexpr size_t kTasksPerQueryMax = 256;
inline constexpr int64_t kQueriesMax = 1'000'000;
inline constexpr int kQueuesPerAppMax = 16;
inline constexpr int kDepthMax = 64;
inline constexpr size_t kNameBytesMax = 63;
// A trace of arrivals: the longest public LLM trace of one day has a few million rows.
inline constexpr size_t kTraceBytesMax = size_t{512} << 20;
inline constexpr size_t kTraceRowsMax = 10'000'000;
// One hour of device time: longer is taken for a unit error, as in the library.
inline constexpr int64_t kDurationNsMax = int64_t{3600} * 1'000'000'000;
inline constexpr int64_t kTraceMsMax = 10'000;
// Rounds of a row: each opens the device anew and warms up.
inline constexpr int64_t kRoundsMax = 100;
// The finished rows of a partial set: about 20 KB a row, 1024 cases of a dozen policies.
inline constexpr size_t kRowsBytesMax = size_t{512} << 20;
// A samples file after decompression: as much as the library reads.
inline constexpr int64_t kSamplesBytesMax = int64_t{256} << 20;
// PTX of one module: as much as the library takes.
inline constexpr size_t kPtxBytesMax = size_t{16} << 20;
// An event log of one run: 64-byte records, 1 GiB.
inline constexpr size_t kEventLogBytesMax = size_t{1} << 30;
// A result.json: about 2 KB a row, 1024 cases of fifteen rows.
inline constexpr size_t kResultBytesMax = size_t{64} << 20;
// One call of `gpushare plot`: results and logs that a page can show and a reader can look at. The
// runs of a result are marks of a few plots.
inline constexpr size_t kPlotInputsMax = 16;
inline constexpr size_t kPlotLogsMax = 16;
inline constexpr size_t kPlotRunsMax = 2048;
// Most polls without any movement of the device's clock; a run with more of them is given up.
inline constexpr int64_t kIdlePollsMax = 100'000;

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_BASE_LIMITS_H_
