// The handle table; see handles.h.

#include "bindings/c/handles.h"

#include <array>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace gpushare::abi {
namespace {

// Most handles in one process: a few runtimes of 1024 kernels each, with their apps and queues.
constexpr uint32_t kHandlesMax = 65536;
constexpr int kSlotBits = 16;
constexpr int kKindBits = 4;
constexpr uint64_t kGenerationMax = (uint64_t{1} << 40) - 1;

uint64_t Pack(HandleKind kind, uint64_t generation, uint32_t slot) {
  return slot | static_cast<uint64_t>(kind) << kSlotBits | generation << (kSlotBits + kKindBits);
}
uint32_t SlotOf(uint64_t word) { return static_cast<uint32_t>(word & (kHandlesMax - 1)); }

struct Slot {
  std::atomic<uint64_t> word{0};
  std::atomic<void*> object{nullptr};
  // Guarded by the table's mutex.
  uint64_t generation = 0;
  uint32_t references = 0;
  std::shared_ptr<void> owner;
};

struct Table {
  std::mutex mutex;
  std::array<Slot, kHandlesMax> slots;
  std::vector<uint32_t> free;
  uint32_t used = 0;
};

// One table for the process, because a handle does not say which runtime it belongs to. It is all
// zero bytes, so that a slot takes memory with its first handle. Never destroyed, because programs
// release handles in static destructors.
union Immortal {
  constexpr Immortal() : table() {}
  ~Immortal() {}  // NOLINT(modernize-use-equals-default): a defaulted one would be deleted
  Table table;
};
constinit Immortal the_only;

Table& TheTable() { return the_only.table; }

const char* KindName(HandleKind kind) {
  switch (kind) {
    case HandleKind::kRuntime:
      return "runtime";
    case HandleKind::kApp:
      return "app";
    case HandleKind::kQueue:
      return "queue";
    case HandleKind::kKernel:
      return "kernel";
    case HandleKind::kFusedKernel:
      return "fused kernel";
    case HandleKind::kEventLog:
      return "event log";
  }
  return "unknown";
}

// The live slot of a word, or null if the word is stale. The caller holds the mutex.
Slot* LiveSlot(Table& table, HandleKind kind, uintptr_t word) {
  return FindHandle(kind, word) == nullptr ? nullptr : &table.slots[SlotOf(word)];
}

}  // namespace

absl::StatusOr<uintptr_t> CreateHandle(HandleKind kind, std::shared_ptr<void> object) {
  Table& table = TheTable();
  const std::lock_guard<std::mutex> lock(table.mutex);
  table.free.reserve(kHandlesMax);  // once, so that a release never allocates
  uint32_t index = 0;
  if (!table.free.empty()) {
    index = table.free.back();
    table.free.pop_back();
  } else if (table.used < kHandlesMax) {
    index = table.used++;
  } else {
    return absl::ResourceExhaustedError(
        absl::StrCat("The process holds ", kHandlesMax, " handles, which is the limit."));
  }
  Slot& slot = table.slots[index];
  slot.generation = slot.generation == kGenerationMax ? 1 : slot.generation + 1;
  slot.references = 1;
  slot.object.store(object.get(), std::memory_order_relaxed);
  slot.owner = std::move(object);
  const uint64_t word = Pack(kind, slot.generation, index);
  slot.word.store(word, std::memory_order_release);
  return word;
}

void* FindHandle(HandleKind kind, uintptr_t word) noexcept {
  if ((word >> kSlotBits & ((1u << kKindBits) - 1)) != static_cast<uint64_t>(kind)) return nullptr;
  const Slot& slot = TheTable().slots[SlotOf(word)];
  if (slot.word.load(std::memory_order_acquire) != word) return nullptr;
  return slot.object.load(std::memory_order_relaxed);
}

absl::Status RetainHandle(HandleKind kind, uintptr_t word) {
  Table& table = TheTable();
  const std::lock_guard<std::mutex> lock(table.mutex);
  Slot* const slot = LiveSlot(table, kind, word);
  if (slot == nullptr) return BadHandle(kind, word);
  ++slot->references;
  return absl::OkStatus();
}

absl::Status ReleaseHandle(HandleKind kind, uintptr_t word, LastReference on_last) {
  if (word == 0) return absl::OkStatus();
  Table& table = TheTable();
  std::shared_ptr<void> owner;  // dropped after the lock
  {
    std::unique_lock<std::mutex> lock(table.mutex);
    Slot* slot = LiveSlot(table, kind, word);
    if (slot == nullptr) return BadHandle(kind, word);
    if (slot->references > 1) {
      --slot->references;
      return absl::OkStatus();
    }
    lock.unlock();  // the release may wait for the flow, whose callbacks may use handles
    absl::Status status = on_last();
    if (!status.ok()) return status;
    lock.lock();
    slot = LiveSlot(table, kind, word);
    if (slot == nullptr) return BadHandle(kind, word);
    slot->word.store(0, std::memory_order_release);
    slot->object.store(nullptr, std::memory_order_relaxed);
    slot->references = 0;
    owner = std::move(slot->owner);
    table.free.push_back(SlotOf(word));
  }
  return absl::OkStatus();
}

absl::Status BadHandle(HandleKind kind, uintptr_t word) {
  if (word == 0) {
    return absl::InvalidArgumentError(absl::StrCat("The ", KindName(kind), " handle is null."));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "The ", KindName(kind), " handle 0x", absl::Hex(word),
      " is not live: it was released, or it is none of gpushare's ", KindName(kind), "s."));
}

}  // namespace gpushare::abi
