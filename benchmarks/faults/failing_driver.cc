#include "benchmarks/faults/failing_driver.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

namespace gpushare::benchmarks {
namespace {

constexpr size_t kFunctionsMax = 128;
constexpr size_t kNone = kFunctionsMax;

using Word = uintptr_t;
using Function = int (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);

struct Slot {
  char name[64] = {};
  Function real = nullptr;
  std::atomic<int64_t> calls{0};
};

std::mutex slots_mutex;
std::array<Slot, kFunctionsMax> slots;
std::atomic<size_t> slot_count{0};
std::atomic<size_t> armed{kNone};
std::atomic<int64_t> calls_left{0};
std::atomic<int> failure{0};
std::atomic<bool> fired{false};

// What works after a sticky error, too: contexts are still pushed and named.
bool StaysWhole(const char* name) {
  return std::strncmp(name, "cuCtx", 5) == 0 || std::strncmp(name, "cuDevice", 8) == 0;
}

bool Fails(size_t index) {
  slots[index].calls.fetch_add(1, std::memory_order_relaxed);
  if (index == armed.load() && calls_left.fetch_sub(1) == 1) fired.store(true);
  return fired.load() && (index == armed.load() || !StaysWhole(slots[index].name));
}

template <size_t kIndex>
int Wrapper(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j, Word k,
            Word l) {
  if (Fails(kIndex)) return failure.load();
  return slots[kIndex].real(a, b, c, d, e, f, g, h, i, j, k, l);
}

template <size_t... kIndexes>
constexpr std::array<Function, sizeof...(kIndexes)> Wrappers(std::index_sequence<kIndexes...>) {
  return {&Wrapper<kIndexes>...};
}
constexpr std::array<Function, kFunctionsMax> kWrappers =
    Wrappers(std::make_index_sequence<kFunctionsMax>());

// cuGet* describe errors and the driver itself, and the CUDA runtime finds its functions by them.
bool IsWrapped(const char* name) {
  return std::strncmp(name, "cu", 2) == 0 && name[2] >= 'A' && name[2] <= 'Z' &&
         std::strncmp(name, "cuGet", 5) != 0 && std::strlen(name) < sizeof(Slot::name);
}

void* Wrap(const char* name, void* real) {
  const std::lock_guard<std::mutex> lock(slots_mutex);
  const size_t count = slot_count.load();
  for (size_t i = 0; i < count; ++i) {
    if (std::strcmp(slots[i].name, name) == 0) return reinterpret_cast<void*>(kWrappers[i]);
  }
  if (count == kFunctionsMax) return real;
  std::strcpy(slots[count].name, name);
  slots[count].real = reinterpret_cast<Function>(real);
  slot_count.store(count + 1);
  return reinterpret_cast<void*>(kWrappers[count]);
}

}  // namespace

std::vector<std::string> DriverFunctions() {
  std::vector<std::string> names;
  for (size_t i = 0; i < slot_count.load(); ++i) names.emplace_back(slots[i].name);
  return names;
}

void Arm(size_t function, int64_t nth, int code) {
  failure.store(code);
  fired.store(false);
  calls_left.store(nth);
  armed.store(function);
}

void Disarm() {
  armed.store(kNone);
  fired.store(false);
}

bool HasFired() { return fired.load(); }

void ResetCallCounts() {
  for (Slot& slot : slots) slot.calls.store(0);
}

int64_t CallsOf(size_t function) { return slots[function].calls.load(); }

void* FindFunction(void* library, const char* name) {
  using Find = void* (*)(void*, const char*);
  static const auto find = reinterpret_cast<Find>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
  void* const real = find(library, name);
  return real == nullptr || !IsWrapped(name) ? real : Wrap(name, real);
}

}  // namespace gpushare::benchmarks

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
extern "C" __attribute__((visibility("default"))) void* dlsym(void* library,
                                                              const char* name) noexcept {
  return gpushare::benchmarks::FindFunction(library, name);
}
