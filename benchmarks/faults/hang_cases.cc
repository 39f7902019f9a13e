// Kernels that do not end. Each is bounded by the GPU's own clock, so that nothing stays behind.

#include <chrono>
#include <thread>

#include "benchmarks/faults/cases.h"
#include "benchmarks/faults/gpu_app.h"
#include "benchmarks/harness/quantiles.h"

namespace gpushare::benchmarks {
namespace {

constexpr int64_t kHangFloorNs = 300 * kMs;
constexpr int64_t kSoloNs = kMs;  // what the app states
constexpr WaitParams kSpin = {.wait_ns = 2'500'000'000, .sleep_ns = 1000};
// Some SMs only: a kernel that never ends keeps its SMs, and nothing can take them back.
constexpr int64_t kBlocks = 4;

GpuApp::Options ShortHangs(const char* policy) {
  GpuApp::Options options = {.policy = policy, .hang_floor_ns = kHangFloorNs, .hang_factor = 5};
  return options;
}

double Ms(int64_t ns) { return static_cast<double>(ns) / kMs; }

void ExpectTimedOut(const CompletionRecord& record) {
  Expect(record.verdict == GPUSHARE_VERDICT_TIMED_OUT,
         std::string("The hung task ends ") + gpushare_verdict_name(record.verdict) + ".");
  Expect(record.complete_ns - record.submit_ns < 1500 * kMs,
         "The hang was found after " + std::to_string(Ms(record.complete_ns - record.submit_ns)) +
             " ms.");
}

// `priority` launches BE work that cannot be evicted at once.
Json HungBe() {
  GpuApp app(ShortHangs("priority"));
  const Kernel spin = app.WaitKernel("spin", kSoloNs);
  const std::vector<double> before = app.RunQueries(50, 1);
  Ticket hung = Take(app.be.SubmitBe(GpuApp::WaitTask(spin, kSpin, kBlocks)));
  const std::vector<double> during = app.RunQueries(200, 1);
  const CompletionRecord record = app.Finish(std::move(hung));
  ExpectTimedOut(record);
  const RuntimeStats stats = app.Stats();
  Expect(stats.hung == 1, "The runtime counts " + std::to_string(stats.hung) + " hung launches.");
  app.ExpectHealthy();
  return {{"found_ms", Rounded(Ms(record.complete_ns - record.submit_ns), 1)},
          {"lc_p99_before_ms", Rounded(Quantile(before, 0.99), 3)},
          {"lc_p99_during_ms", Rounded(Quantile(during, 0.99), 3)},
          {"shutdown_ms", Rounded(app.ShutdownMs(5'000 * kMs), 1)}};
}

Json HungLc() {
  GpuApp app(ShortHangs("adaptive"));
  const Kernel spin = app.WaitKernel("spin", kSoloNs);
  const Ticket hung = Take(app.lc.SubmitLc(GpuApp::WaitTask(spin, kSpin, kBlocks)));
  const int64_t begin_ns = app.NowNs();
  const Status early = hung.Wait(begin_ns + 50 * kMs);
  const int64_t waited_ns = app.NowNs() - begin_ns;
  Expect(early.code() == GPUSHARE_DEADLINE_EXCEEDED, "The short wait answers " + early.ToString());
  Expect(waited_ns < 100 * kMs, "The wait of 50 ms took " + std::to_string(Ms(waited_ns)) + " ms.");
  Require(hung.Wait(app.NowNs() + kPatienceNs));
  const CompletionRecord record = Take(hung.Record());
  ExpectTimedOut(record);
  app.ExpectHealthy();
  return {{"wait_of_50_ms", Rounded(Ms(waited_ns), 1)},
          {"found_ms", Rounded(Ms(record.complete_ns - record.submit_ns), 1)},
          {"shutdown_ms", Rounded(app.ShutdownMs(5'000 * kMs), 1)}};
}

Json HungAtShutdown() {
  GpuApp app(ShortHangs("priority"));
  const Kernel spin = app.WaitKernel("spin", 2 * kPatienceNs);  // no hang by the prediction
  const Ticket hung = Take(app.be.SubmitBe(GpuApp::WaitTask(spin, kSpin, kBlocks)));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double took_ms = app.ShutdownMs(200 * kMs, GPUSHARE_DEADLINE_EXCEEDED);
  const CompletionRecord record = Take(hung.Record());
  Expect(record.verdict == GPUSHARE_VERDICT_TIMED_OUT,
         std::string("The hung task ends ") + gpushare_verdict_name(record.verdict) + ".");
  return {{"shutdown_of_200_ms", Rounded(took_ms, 1)}};
}

}  // namespace

std::vector<FaultCase> HangCases() {
  return {
      {"hung_be_kernel", "its ticket ends timed_out, LC goes on, its lane is replaced", 20, HungBe},
      {"hung_lc_kernel", "a wait keeps its deadline, its ticket ends timed_out", 20, HungLc},
      {"hung_at_shutdown", "the shutdown keeps its deadline", 20, HungAtShutdown},
  };
}

}  // namespace gpushare::benchmarks
