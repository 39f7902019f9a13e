// Barriers of a kernel. See barriers.h.

#include "src/ptx/analysis/barriers.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "src/ptx/analysis/opcodes.h"
#include "src/ptx/base/limits.h"
#include "src/ptx/text/token_cursor.h"

namespace gpushare::ptx {
namespace {

constexpr uint32_t kBarriers = 16;  // of a block
constexpr uint32_t kUnknown = UINT32_MAX;

struct Barrier {
  uint32_t statement = 0;
  uint32_t number = kUnknown;  // kUnknown: in a register
  bool partial = false;        // counts some of the block's threads, or does not wait
  bool reduces = false;
  bool arrives = false;  // and does not wait
};

// The words of one operand; `word` is the first.
const Word* OperandAt(const Module& module, const Statement& statement, uint16_t operand) {
  for (uint32_t w = 0; w < statement.word_count; ++w) {
    const Word& word = module.words[statement.first_word + w];
    if (word.operand == operand) return &word;
  }
  return nullptr;
}

uint16_t OperandCount(const Module& module, const Statement& statement) {
  if (statement.word_count == 0) return 0;
  const Word& last = module.words[statement.first_word + statement.word_count - 1];
  return static_cast<uint16_t>(last.operand + 1);
}

uint64_t BlockThreads(const Entry& entry) {
  const auto& shape = entry.block_required;
  return uint64_t{shape[0]} * shape[1] * shape[2];
}

Barrier ReadBarrier(const Module& module, uint32_t index) {
  const Statement& statement = module.statements[index];
  Barrier barrier;
  barrier.statement = index;
  barrier.reduces = HasModifier(statement.name, "red");
  const uint16_t first = barrier.reduces ? 1 : 0;
  uint64_t value = 0;
  const Word* const number = OperandAt(module, statement, first);
  if (number != nullptr && number->is_number && TokenCursor::ParseNumber(number->text, value)) {
    barrier.number = static_cast<uint32_t>(value);
  }
  const uint16_t operands = OperandCount(module, statement);
  const bool counted = operands > first + (barrier.reduces ? 2 : 1);
  barrier.arrives = HasModifier(statement.name, "arrive");
  barrier.partial = barrier.arrives;
  if (counted) {
    const Word* const count = OperandAt(module, statement, static_cast<uint16_t>(first + 1));
    barrier.partial |= count == nullptr || !count->is_number ||
                       !TokenCursor::ParseNumber(count->text, value) ||
                       value != BlockThreads(module.entry);
  }
  return barrier;
}

// For each block, whether some thread may end without reaching `target`, while another that was
// beside it at a branch still reaches it.
class Bypass {
 public:
  Bypass(const FlowGraph& graph, const Divergence& divergence, StepBudget& budget)
      : graph_(graph), divergence_(divergence), budget_(budget) {}

  // True once the budget is used up.
  bool Exists(uint32_t target, Spread separated_from) {
    if (!budget_.Take(graph_.blocks.size() + 1)) return true;
    const std::vector<bool> reaches = Backward(target, UINT32_MAX);
    const std::vector<bool> avoids = Backward(graph_.exit(), target);
    for (uint32_t block = 0; block < graph_.blocks.size(); ++block) {
      if (divergence_.branches[block] < separated_from) continue;
      if (!budget_.Take(1 + graph_.blocks[block].successors.size())) return true;
      if (Separates(block, reaches, avoids) && IsBeforeJoin(block, target)) return true;
    }
    return false;
  }

 private:
  bool Separates(uint32_t block, const std::vector<bool>& reaches,
                 const std::vector<bool>& avoids) const {
    const std::vector<uint32_t>& next = graph_.blocks[block].successors;
    uint32_t can_reach = 0;
    uint32_t can_avoid = 0;
    uint32_t both = 0;
    for (const uint32_t node : next) {
      can_reach += reaches[node];
      can_avoid += avoids[node];
      both += reaches[node] && avoids[node];
    }
    // Two different ways: not one and the same successor for both.
    return can_reach > 0 && can_avoid > 0 && !(can_reach == 1 && can_avoid == 1 && both == 1);
  }

  // Whether separated threads can meet `target`, or end, before they are together again.
  bool IsBeforeJoin(uint32_t from, uint32_t target) {
    const uint32_t join = divergence_.joins[from];
    if (join == graph_.exit()) return true;
    if (!budget_.Take(graph_.blocks.size() / 8 + 1)) return true;
    std::vector<bool> seen(graph_.blocks.size());
    std::vector<uint32_t> open = {from};
    while (!open.empty()) {
      const uint32_t block = open.back();
      open.pop_back();
      const std::vector<uint32_t>& next = graph_.blocks[block].successors;
      if (!budget_.Take(1 + next.size())) return true;
      for (const uint32_t node : next) {
        if (node == join || node == graph_.exit() || seen[node]) continue;
        if (node == target) return true;
        seen[node] = true;
        open.push_back(node);
      }
    }
    return false;
  }

  // The nodes from which `target` can be reached without passing `closed`; target included.
  std::vector<bool> Backward(uint32_t target, uint32_t closed) {
    std::vector<bool> seen(graph_.blocks.size() + 1);
    std::vector<uint32_t> open = {target};
    seen[target] = true;
    while (!open.empty()) {
      const uint32_t node = open.back();
      open.pop_back();
      const auto& back =
          node == graph_.exit() ? graph_.exit_predecessors : graph_.blocks[node].predecessors;
      if (!budget_.Take(1 + back.size())) return seen;
      for (const uint32_t before : back) {
        if (before == closed || seen[before]) continue;
        seen[before] = true;
        open.push_back(before);
      }
    }
    return seen;
  }

  const FlowGraph& graph_;
  const Divergence& divergence_;
  StepBudget& budget_;
};

Refusal At(const Statement& statement, Reason reason, const std::string& what) {
  return {reason, statement.line, "Line " + std::to_string(statement.line) + " has " + what + "."};
}

Refusal ChooseLoopBarrier(const Module& module, const std::vector<Barrier>& barriers,
                          BarrierPlan& plan) {
  uint32_t used = 0;
  bool zero_is_partial = false;
  for (const Barrier& barrier : barriers) {
    // Whether as many threads wait as arrive is not known. Arrivals that are left over would stay
    // on the barrier of the next block task.
    if (barrier.arrives) {
      return At(module.statements[barrier.statement], Reason::kPartialBarrier,
                "arrivals at a barrier, which may outlive the block task");
    }
    if (barrier.partial && barrier.number >= kBarriers) {
      return At(module.statements[barrier.statement], Reason::kPartialBarrier,
                "a barrier for some of the threads whose number is in a register");
    }
    if (barrier.number < kBarriers) used |= 1U << barrier.number;
    zero_is_partial |= barrier.partial && barrier.number == 0;
  }
  if (!zero_is_partial) return {};
  while (plan.loop_barrier < kBarriers && (used >> plan.loop_barrier & 1U) != 0) {
    ++plan.loop_barrier;
  }
  if (plan.loop_barrier < kBarriers) return {};
  return At(module.statements[barriers.front().statement], Reason::kPartialBarrier,
            "one of 16 barriers in use, and the worker needs one more");
}

// With early exits every barrier must be one that ended threads can join.
Refusal JoinEndedThreads(const Module& module, const std::vector<Barrier>& barriers,
                         BarrierPlan& plan) {
  for (const Barrier& barrier : barriers) {
    const Statement& statement = module.statements[barrier.statement];
    if (barrier.partial) {
      return At(statement, Reason::kPartialBarrier,
                "a barrier for some of the threads in a kernel whose threads may end early");
    }
    if (barrier.reduces) {
      return At(statement, Reason::kPartialBarrier,
                "a reduction over a barrier in a kernel whose threads may end early");
    }
    if (barrier.number >= kBarriers || barrier.number != barriers.front().number) {
      return At(statement, Reason::kPartialBarrier,
                "one of several barriers in a kernel whose threads may end early");
    }
    plan.statements.push_back(barrier.statement);
  }
  plan.loop_barrier = barriers.front().number;
  return {};
}

}  // namespace

Refusal PlanBarriers(const Module& module, const FlowGraph& graph, const Divergence& divergence,
                     StepBudget& budget, BarrierPlan& plan) {
  plan = {};
  std::vector<Barrier> barriers;
  Bypass bypass(graph, divergence, budget);
  std::vector<bool> barrier_checked(graph.blocks.size());
  std::vector<bool> warp_checked(graph.blocks.size());
  for (uint32_t i = 0; i < module.statements.size() && !budget.exhausted(); ++i) {
    const Statement& statement = module.statements[i];
    if (statement.kind != StatementKind::kInstruction) continue;
    const OpKind kind = FindOpcode(statement.name)->kind;
    const uint32_t block = graph.block_of[i];
    if (kind == OpKind::kExit) {
      ++plan.exits;
    } else if (kind == OpKind::kBarrier) {
      barriers.push_back(ReadBarrier(module, i));
      const bool guarded = statement.guard != kNoSymbol &&
                           divergence.values[static_cast<size_t>(statement.guard)] > Spread::kBlock;
      if (plan.early_exits || (barrier_checked[block] && !guarded)) continue;
      barrier_checked[block] = true;
      plan.early_exits = guarded || bypass.Exists(block, Spread::kWarp);
    } else if ((kind == OpKind::kWarp || kind == OpKind::kWarpSame) && !warp_checked[block]) {
      warp_checked[block] = true;
      if (bypass.Exists(block, Spread::kThread) && !budget.exhausted()) {
        return At(statement, Reason::kWarpSync,
                  "'" + std::string(statement.name) +
                      "' of a whole warp, of which some threads may have ended");
      }
    }
  }
  if (budget.exhausted()) {
    return {Reason::kTooLarge, module.entry.line,
            "The kernel's branches are more than the analysis of its barriers can follow."};
  }
  if (barriers.empty()) {
    plan.early_exits = false;
    return {};
  }
  if (plan.early_exits && plan.exits > kEarlyExitsMax) {
    return {Reason::kTooLarge, module.entry.line,
            "The kernel has " + std::to_string(plan.exits) +
                " exits, some of them in front of barriers, and the most are " +
                std::to_string(kEarlyExitsMax) + "."};
  }
  return plan.early_exits ? JoinEndedThreads(module, barriers, plan)
                          : ChooseLoopBarrier(module, barriers, plan);
}

}  // namespace gpushare::ptx
