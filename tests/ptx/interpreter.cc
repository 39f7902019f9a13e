// The interpreter of small kernels. See interpreter.h.

#include "tests/ptx/interpreter.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "src/ptx/analysis/opcodes.h"
#include "src/ptx/text/parser.h"
#include "src/ptx/text/token_cursor.h"

namespace gpushare::ptx {
namespace {

constexpr uint64_t kStepsMax = 20'000'000;

// The `back`-th type from the end of an opcode: "u32" of "ld.volatile.u32".
std::string_view TypeOf(std::string_view name, int back = 0) {
  for (; back > 0; --back) name = name.substr(0, name.rfind('.'));
  return name.substr(name.rfind('.') + 1);
}

uint32_t BytesOf(std::string_view type) {
  if (type.ends_with("64")) return 8;
  if (type.ends_with("32")) return 4;
  return type.ends_with("16") ? 2 : 1;
}

uint64_t Narrow(uint64_t value, uint32_t bytes) {
  return bytes >= 8 ? value : value & ((uint64_t{1} << (8 * bytes)) - 1);
}

int64_t Signed(uint64_t value, uint32_t bytes) {
  const int shift = 64 - 8 * static_cast<int>(bytes);
  return static_cast<int64_t>(value << shift) >> shift;
}

}  // namespace

Interpreter::Interpreter(std::string_view text, std::string_view entry) {
  const Refusal refusal = Parse(text, entry, false, module_);
  if (refusal.reason != Reason::kNone) error_ = refusal.message;
  for (uint32_t i = 0; i < module_.statements.size(); ++i) {
    const Statement& statement = module_.statements[i];
    if (statement.kind == StatementKind::kLabel) labels_[{statement.name, statement.scope}] = i;
  }
  for (const Word& word : module_.words) {
    if (word.symbol == kNoSymbol || shared_.contains(word.symbol)) continue;
    const Symbol& symbol = module_.symbols[static_cast<size_t>(word.symbol)];
    if (symbol.kind != SymbolKind::kShared) continue;
    shared_bytes_ = (shared_bytes_ + 31) / 32 * 32;
    shared_[word.symbol] = shared_bytes_;
    shared_bytes_ += symbol.size_bytes;
  }
  shared_bytes_ = (shared_bytes_ + 1023) / 1024 * 1024;
  for (const Word& word : module_.words) {
    if (word.symbol == kNoSymbol) continue;
    const Symbol& symbol = module_.symbols[static_cast<size_t>(word.symbol)];
    if (symbol.kind == SymbolKind::kDynamicShared) shared_[word.symbol] = shared_bytes_;
  }
}

void Interpreter::Fail(const std::string& what) {
  if (error_.empty()) error_ = what;
}

// The label in the innermost scope around the branch that has it.
uint32_t Interpreter::Label(const Statement& from, std::string_view name) {
  for (uint32_t scope = from.scope;; scope = module_.scopes[scope].parent) {
    const auto found = labels_.find({name, scope});
    if (found != labels_.end()) return found->second;
    if (scope == 0) break;
  }
  Fail("a branch leads to no label");
  return 0;
}

uint64_t Interpreter::Special(const Block& block, const Thread& thread,
                              std::string_view name) const {
  const auto dimension = static_cast<size_t>(name.back() - 'x');
  if (name.starts_with("%tid.")) return thread.index[dimension];
  if (name.starts_with("%ctaid.")) return block.index[dimension];
  if (name.starts_with("%ntid.")) return launch_->block[dimension];
  if (name == "%dynamic_smem_size") return launch_->dynamic_shared_bytes;
  if (name.starts_with("%nctaid.")) return launch_->grid[dimension];
  if (name == "%smid") return block.sm;
  return name == "%globaltimer" ? steps_ : 0;
}

uint64_t Interpreter::Value(const Block& block, const Thread& thread, const Word& word) const {
  if (word.is_number) {
    uint64_t value = 0;
    TokenCursor::ParseNumber(word.text, value);
    return word.negative ? 0 - value : value;
  }
  if (word.symbol == kNoSymbol) return Special(block, thread, word.text);
  const auto variable = shared_.find(word.symbol);
  if (variable != shared_.end()) return variable->second;
  const auto found = thread.registers.find(word.symbol);
  return found == thread.registers.end() ? 0 : found->second;
}

const Word* Interpreter::WordAt(const Statement& statement, uint16_t operand) const {
  for (uint32_t w = 0; w < statement.word_count; ++w) {
    const Word& word = module_.words[statement.first_word + w];
    if (word.operand == operand) return &word;
  }
  return nullptr;
}

uint64_t Interpreter::Operand(const Block& block, const Thread& thread, const Statement& statement,
                              uint16_t operand) const {
  const Word* const word = WordAt(statement, operand);
  return word == nullptr ? 0 : Value(block, thread, *word);
}

// Of the words of an operand, which `+` joins: `variable+8`.
uint64_t Interpreter::Sum(const Block& block, const Thread& thread, const Statement& statement,
                          uint16_t operand) const {
  uint64_t sum = 0;
  for (uint32_t w = 0; w < statement.word_count; ++w) {
    const Word& word = module_.words[statement.first_word + w];
    if (word.operand == operand) sum += Value(block, thread, word);
  }
  return sum;
}

void Interpreter::Set(Thread& thread, const Statement& statement, uint64_t value) {
  thread.registers[module_.words[statement.first_word].symbol] = value;
}

const uint8_t* Interpreter::Parameter(const Statement& statement, uint32_t bytes) const {
  const Word* name = nullptr;
  uint64_t offset = 0;
  for (uint32_t w = 0; w < statement.word_count; ++w) {
    const Word& word = module_.words[statement.first_word + w];
    if (!word.in_address) continue;
    uint64_t number = 0;
    if (word.is_number) TokenCursor::ParseNumber(word.text, number);
    offset += number;
    if (name == nullptr) name = &word;
  }
  for (size_t i = 0; name != nullptr && i < module_.entry.parameters.size(); ++i) {
    if (module_.entry.parameters[i].name != name->text) continue;
    const std::vector<uint8_t>& data = launch_->parameters.at(i);
    return offset + bytes <= data.size() ? data.data() + offset : nullptr;
  }
  return nullptr;
}

uint8_t* Interpreter::Place(Block& block, Thread& thread, const Statement& statement,
                            uint32_t bytes) {
  uint64_t address = 0;
  for (uint32_t w = 0; w < statement.word_count; ++w) {
    const Word& word = module_.words[statement.first_word + w];
    if (word.in_address) address += Value(block, thread, word);
  }
  std::vector<uint8_t>& place = HasModifier(statement.name, "shared") ? block.shared : *memory_;
  if (&place == memory_) address -= kGlobalBase;
  if (address > place.size() || place.size() - address < bytes) {
    Fail("line " + std::to_string(statement.line) + " reaches outside of its memory");
    return nullptr;
  }
  return place.data() + address;
}

// ld, st and atom. False if it is none of them.
bool Interpreter::Memory(Block& block, Thread& thread, const Statement& statement) {
  const std::string_view name = statement.name;
  const uint32_t bytes = BytesOf(TypeOf(name));
  const uint32_t count = HasModifier(name, "v4") ? 4 : HasModifier(name, "v2") ? 2 : 1;
  if (name.starts_with("ld.param")) {
    const uint8_t* const from = Parameter(statement, bytes);
    uint64_t value = 0;
    if (from == nullptr) Fail("line " + std::to_string(statement.line) + " reads no parameter");
    if (from != nullptr) std::memcpy(&value, from, bytes);
    Set(thread, statement, value);
    return true;
  }
  const bool loads = name.starts_with("ld.");
  if (!loads && !name.starts_with("st.") && !name.starts_with("atom.")) return false;
  uint8_t* const place = Place(block, thread, statement, bytes * count);
  if (place == nullptr) return true;
  if (name.starts_with("atom.")) {
    uint64_t old = 0;
    std::memcpy(&old, place, bytes);
    const uint64_t sum = old + Operand(block, thread, statement, 2);
    std::memcpy(place, &sum, bytes);
    Set(thread, statement, old);
    return true;
  }
  uint32_t element = 0;
  for (uint32_t w = 0; w < statement.word_count; ++w) {
    const Word& word = module_.words[statement.first_word + w];
    if (word.in_address) continue;
    uint64_t value = 0;
    if (loads) {
      std::memcpy(&value, place + size_t{element} * bytes, bytes);
      thread.registers[word.symbol] = value;
    } else {
      value = Value(block, thread, word);
      std::memcpy(place + size_t{element} * bytes, &value, bytes);
    }
    ++element;
  }
  return true;
}

bool Interpreter::Compare(Block& block, Thread& thread, const Statement& statement) const {
  const std::string_view name = statement.name;
  const std::string_view type = TypeOf(name);
  const uint32_t bytes = BytesOf(type);
  const uint64_t a = Narrow(Operand(block, thread, statement, 1), bytes);
  const uint64_t b = Narrow(Operand(block, thread, statement, 2), bytes);
  int order = a < b ? -1 : a > b;
  if (type.front() == 's') {
    order = Signed(a, bytes) < Signed(b, bytes) ? -1 : Signed(a, bytes) > Signed(b, bytes);
  }
  const std::string_view how = name.substr(5, 2);
  bool result = how == "eq"   ? order == 0
                : how == "ne" ? order != 0
                : how == "lt" ? order < 0
                : how == "le" ? order <= 0
                : how == "gt" ? order > 0
                              : order >= 0;
  const bool other = Operand(block, thread, statement, 3) != 0;
  if (HasModifier(name, "and")) result = result && other;
  if (HasModifier(name, "or")) result = result || other;
  return result;
}

bool Interpreter::Arithmetic(Block& block, Thread& thread, const Statement& statement) {
  const std::string_view name = statement.name;
  const std::string_view op = name.substr(0, name.find('.'));
  const uint32_t bytes = BytesOf(TypeOf(name));
  const uint64_t a = Operand(block, thread, statement, 1);
  const uint64_t b = Operand(block, thread, statement, 2);
  const uint64_t c = Operand(block, thread, statement, 3);
  const uint64_t na = Narrow(a, bytes);
  const uint64_t nb = Narrow(b, bytes);
  uint64_t value = 0;
  uint32_t width = bytes;
  if (op == "mov")
    value = Sum(block, thread, statement, 1);
  else if (op == "cvt") {
    value = na;
    width = BytesOf(TypeOf(name, 1));
  } else if (op == "add")
    value = a + b;
  else if (op == "sub")
    value = a - b;
  else if (op == "and")
    value = a & b;
  else if (op == "or")
    value = a | b;
  else if (op == "xor")
    value = a ^ b;
  else if (op == "shl")
    value = a << b;
  else if (op == "shr")
    value = na >> b;
  else if (op == "min")
    value = std::min(na, nb);
  else if (op == "max")
    value = std::max(na, nb);
  else if (op == "div")
    value = nb == 0 ? 0 : na / nb;
  else if (op == "rem")
    value = nb == 0 ? 0 : na % nb;
  else if (op == "selp")
    value = c != 0 ? a : b;
  else if (op == "mul" || op == "mad") {
    value = na * nb + (op == "mad" ? c : 0);
    if (HasModifier(name, "wide")) width = 2 * bytes;
  } else {
    return false;
  }
  Set(thread, statement, Narrow(value, name.ends_with(".pred") ? 8 : width));
  return true;
}

void Interpreter::Execute(Block& block, Thread& thread, const Statement& statement) {
  const Opcode* const opcode = FindOpcode(statement.name);
  const OpKind kind = opcode == nullptr ? OpKind::kRefused : opcode->kind;
  if (kind == OpKind::kBranch) {
    thread.at = Label(statement, WordAt(statement, 0)->text);
  } else if (kind == OpKind::kExit) {
    thread.done = true;
  } else if (kind == OpKind::kBarrier) {
    Wait(block, thread, statement, opcode->has_result);
  } else if (statement.name.starts_with("setp")) {
    Set(thread, statement, Compare(block, thread, statement) ? 1 : 0);
  } else if (opcode != nullptr &&
             (statement.name.starts_with("membar") || statement.name.starts_with("cp.async") ||
              statement.name.starts_with("setmaxnreg"))) {
    return;
  } else if (!Memory(block, thread, statement) && !Arithmetic(block, thread, statement)) {
    Fail("the interpreter does not know '" + std::string(statement.name) + "'");
  }
}

void Interpreter::Step(Block& block, Thread& thread) {
  if (thread.at >= module_.statements.size()) {
    thread.done = true;
    return;
  }
  const Statement& statement = module_.statements[thread.at++];
  if (statement.kind != StatementKind::kInstruction) return;
  if (statement.guard != kNoSymbol &&
      (thread.registers[statement.guard] != 0) == statement.guard_negated) {
    return;
  }
  Execute(block, thread, statement);
}

void Interpreter::Wait(Block& block, Thread& thread, const Statement& statement, bool reduces) {
  const uint16_t number = reduces ? 1 : 0;
  const Word& last = module_.words[statement.first_word + statement.word_count - 1];
  const bool counted = last.operand > number + (reduces ? 1 : 0);
  thread.waits = true;
  thread.barrier = Operand(block, thread, statement, number);
  thread.barrier_threads =
      counted ? Operand(block, thread, statement, static_cast<uint16_t>(number + 1)) : 0;
  thread.says = reduces && Value(block, thread, last) != 0;
}

// Lets threads go on that a barrier has all of. Fails where all wait and none can.
void Interpreter::Release(Block& block) {
  bool all_wait = true;
  std::map<uint64_t, bool> barriers;
  for (const Thread& thread : block.threads) {
    if (thread.done) continue;
    all_wait &= thread.waits;
    if (thread.waits) barriers[thread.barrier] = true;
  }
  bool released = false;
  for (const auto& [barrier, used] : barriers) released |= ReleaseBarrier(block, barrier);
  if (all_wait && !barriers.empty() && !released) Fail("all threads wait, and no barrier is full");
}

bool Interpreter::ReleaseBarrier(Block& block, uint64_t barrier) {
  bool says = false;
  uint64_t waiting = 0;
  uint64_t alive = 0;
  uint64_t threads = 0;
  for (const Thread& thread : block.threads) {
    if (thread.done) continue;
    ++alive;
    if (!thread.waits || thread.barrier != barrier) continue;
    if (waiting > 0 && thread.barrier_threads != threads) {
      Fail("threads wait at one barrier for different numbers of threads");
    }
    threads = thread.barrier_threads;
    says |= thread.says;
    ++waiting;
  }
  if (threads == 0) threads = alive;
  if (threads % 32 != 0 && threads != alive) Fail("a barrier counts a part of a warp");
  if (waiting != threads) return false;
  for (Thread& thread : block.threads) {
    if (thread.done || !thread.waits || thread.barrier != barrier) continue;
    thread.waits = false;
    const Statement& statement = module_.statements[thread.at - 1];
    if (FindOpcode(statement.name)->has_result) Set(thread, statement, says ? 1 : 0);
  }
  return true;
}

std::string Interpreter::Run(const InterpreterLaunch& launch, std::vector<uint8_t>& memory,
                             uint64_t seed) {
  launch_ = &launch;
  memory_ = &memory;
  std::mt19937_64 random(seed);
  std::vector<Block> blocks;
  for (uint32_t z = 0; z < launch.grid[2]; ++z) {
    for (uint32_t y = 0; y < launch.grid[1]; ++y) {
      for (uint32_t x = 0; x < launch.grid[0]; ++x) {
        Block block;
        block.index = {x, y, z};
        block.sm = static_cast<uint32_t>(blocks.size()) % launch.sms;
        block.shared.resize(shared_bytes_ + launch.dynamic_shared_bytes, 0xAB);
        for (uint32_t t = 0; t < launch.block[0] * launch.block[1] * launch.block[2]; ++t) {
          Thread thread;
          thread.index = {t % launch.block[0], t / launch.block[0] % launch.block[1],
                          t / launch.block[0] / launch.block[1]};
          block.threads.push_back(thread);
        }
        blocks.push_back(std::move(block));
      }
    }
  }
  while (error_.empty() && !blocks.empty()) {
    Block& block = blocks[random() % blocks.size()];
    const uint64_t index = random() % block.threads.size();
    const bool is_slow = index >= launch.slow_threads[0] && index < launch.slow_threads[1];
    Thread& thread = block.threads[index];
    if (thread.done || thread.waits || (is_slow && random() % 64 != 0)) continue;
    for (uint64_t run = random() % 40 + 1; run > 0 && !thread.done && !thread.waits; --run) {
      if (launch.each_step) launch.each_step(steps_);
      Step(block, thread);
      if (++steps_ > kStepsMax) Fail("the launch does not end");
    }
    if (thread.waits || thread.done) Release(block);
    if (std::all_of(block.threads.begin(), block.threads.end(),
                    [](const Thread& t) { return t.done; })) {
      std::swap(block, blocks.back());
      blocks.pop_back();
    }
  }
  return error_;
}

}  // namespace gpushare::ptx
