// Where a worker is in its launch, as PTX. See worker_place.h.

#include "src/ptx/twins/worker_place.h"

#include <string>

namespace gpushare::ptx {
namespace {

// ~r1: 1 where the launch has a leader, else 0. In a fused block one leader serves both parts.
std::string CountLeaders(const WorkerPlace& place) {
  std::string text = "\tld.param.u64 ~d0, [<host_eviction_word>];\n";
  if (!place.other_launch.empty()) {
    text +=
        "\tld.param.u64 ~d1, [<other_host_eviction_word>];\n"
        "\tor.b64 ~d0, ~d0, ~d1;\n";
  }
  return text +
         "\tsetp.ne.s64 ~p1, ~d0, 0;\n"
         "\tselp.u32 ~r1, 1, 0, ~p1;\n";
}

}  // namespace

std::string FindThread(const WorkerPlace& place) {
  std::string text = "\tmov.u32 ~r0, %tid.x;\n";
  if (place.first_thread > 0) {
    text += "\tsub.u32 ~r0, ~r0, " + std::to_string(place.first_thread) + ";\n";
  }
  return text;
}

std::string FindWorker(const WorkerPlace& place) {
  std::string text = CountLeaders(place) + "\tmov.u32 ~r2, %ctaid.x;\n\tsub.u32 ~r1, ~r2, ~r1;\n";
  if (place.workers > 1) {
    text += "\tmad.lo.u32 ~r1, ~r1, " + std::to_string(place.workers) + ", " +
            std::to_string(place.worker) + ";\n";
  }
  return text;
}

std::string CountWorkers(const WorkerPlace& place) {
  std::string text = CountLeaders(place) + "\tmov.u32 ~r3, %nctaid.x;\n\tsub.u32 ~r1, ~r3, ~r1;\n";
  if (place.workers > 1) {
    text += "\tmul.lo.u32 ~r1, ~r1, " + std::to_string(place.workers) + ";\n";
  }
  return text;
}

std::string FindWords(const WorkerPlace& place, const std::string& name) {
  std::string text = "\tmov.u32 ~" + name + ", " + place.shared;
  if (place.shared_offset > 0) text += "+" + std::to_string(place.shared_offset);
  return text + ";\n";
}

std::string OperandsOfBarrier(const WorkerPlace& place, uint32_t number) {
  const std::string text = std::to_string(number);
  return place.threads == 0 ? text : text + ", " + std::to_string(place.threads);
}

}  // namespace gpushare::ptx
