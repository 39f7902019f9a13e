// A BE quota of whole SMs made in four ways, LC beside it, and block tasks taken dynamically or
// bound to workers (SMGuard 6.2.1 and 5.2), on a GPU. Its parts:
//   be      BE time under a quota of n SMs over the ideal one: packed on a partition, spread, by
//           Filling & Retreating and by the same with four times the workers (quota_be_side.cc)
//   lc      LC time beside a BE kernel under a quota, over LC alone, and packed against Filling &
//           Retreating; BE's time with it (quota_lc_side.cc)
//   taking  block tasks of equal and of skewed lengths, taken from a counter or bound to workers
//           (quota_taking.cc)
//
// All ways take turns; medians. One JSON line a result on stdout, a table on stderr. Not 0: a wrong
// answer, a block task that did not run once, or one outside of its SMs. About 40 s with all parts.
//
// Use: quota_benchmark [--parts be,lc,taking] [--seed N] [--only BE_KERNEL]
//   be, taking: [--repeats N] [--ms SOLO_MS] [--quotas 8,16,...]
//   lc: [--lc-quotas 8,32,...] [--lc-launches N] [--lc-us LC_SOLO_US] [--be-ms BE_LAUNCH_MS]
//       [--lc-seconds LIMIT]

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/gpu/quota.h"
#include "benchmarks/gpu/quota_gpu.h"

namespace gpushare::quota {
namespace {

// MEASURED: with the default of 8, streams that share a hardware queue wait for each other. The
// first CUDA call reads it.
constexpr char kConnections[] = "CUDA_DEVICE_MAX_CONNECTIONS";

std::vector<std::string> Split(const std::string& value) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= value.size();) {
    const size_t comma = std::min(value.find(',', at), value.size());
    if (comma > at) parts.push_back(value.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

std::vector<std::string> Parts(const std::string& value) {
  std::vector<std::string> parts = Split(value);
  for (const std::string& part : parts) {
    if (part == "be" || part == "lc" || part == "taking") continue;
    Fail("the part " + part + " is not known: there are be, lc and taking");
  }
  return parts;
}

std::vector<int> Quotas(const std::string& value) {
  std::vector<int> quotas;
  for (const std::string& part : Split(value)) {
    quotas.push_back(std::max(1, std::atoi(part.c_str())));
  }
  return quotas;
}

int AtLeastOne(const std::string& value) { return std::max(1, std::atoi(value.c_str())); }
double AtLeast(double least, const std::string& value) {
  return std::max(least, std::atof(value.c_str()));
}

Arguments Parse(int argc, char** argv) {
  Arguments a;
  const std::map<std::string, std::function<void(const std::string&)>> options = {
      {"--parts", [&](const std::string& value) { a.parts = Parts(value); }},
      {"--seed",
       [&](const std::string& value) {
         a.seed = static_cast<uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
       }},
      {"--only", [&](const std::string& value) { a.only = value; }},
      {"--repeats", [&](const std::string& value) { a.repeats = AtLeastOne(value); }},
      {"--ms", [&](const std::string& value) { a.solo_ms = AtLeast(0.1, value); }},
      {"--quotas", [&](const std::string& value) { a.quotas = Quotas(value); }},
      {"--lc-quotas", [&](const std::string& value) { a.lc_quotas = Quotas(value); }},
      {"--lc-launches", [&](const std::string& value) { a.lc_launches = AtLeastOne(value); }},
      {"--lc-us", [&](const std::string& value) { a.lc_us = AtLeast(10, value); }},
      {"--be-ms", [&](const std::string& value) { a.be_ms = AtLeast(2, value); }},
      {"--lc-seconds", [&](const std::string& value) { a.lc_seconds = AtLeast(0, value); }},
  };
  for (int i = 1; i < argc; i += 2) {
    const auto option = options.find(argv[i]);
    if (option == options.end()) Fail(std::string("the option ") + argv[i] + " is not known");
    if (i + 1 >= argc) Fail(std::string(argv[i]) + " has no value");
    option->second(argv[i + 1]);
  }
  return a;
}

void Run(const Arguments& arguments) {
  Gpu gpu;
  std::printf(
      "{\"experiment\": \"machine\", \"gpu\": \"%s\", \"sms\": %d, \"repeats\": %d, "
      "\"solo_ms\": %.2f, \"lc_us\": %.1f, \"be_ms\": %.2f, \"seed\": %u, \"%s\": \"%s\"}\n",
      gpu.model().c_str(), gpu.sms(), arguments.repeats, arguments.solo_ms, arguments.lc_us,
      arguments.be_ms, arguments.seed, kConnections, std::getenv(kConnections));
  for (const std::string& part : arguments.parts) {
    if (part == "be") RunBeSide(gpu, arguments);
    if (part == "lc") RunLcSide(gpu, arguments);
    if (part == "taking") RunTaking(gpu.sms(), arguments);
  }
}

}  // namespace

}  // namespace gpushare::quota

int main(int argc, char** argv) {
  const gpushare::quota::Arguments arguments = gpushare::quota::Parse(argc, argv);
  setenv(gpushare::quota::kConnections, "32", 0);
  gpushare::quota::Run(arguments);
  return 0;
}
