// The flow graph of a body, its postdominators and its loops. See flow_graph.h.

#include "src/ptx/analysis/flow_graph.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "src/ptx/analysis/opcodes.h"

namespace gpushare::ptx {
namespace {

// Of one label of a branch by index: a search, and an edge that every later analysis follows.
constexpr uint64_t kStepsOfTarget = 64;

using LabelKey = std::pair<std::string_view, uint32_t>;  // name, scope

class Builder {
 public:
  Builder(const Module& module, StepBudget& budget, FlowGraph& graph)
      : module_(module), budget_(budget), graph_(graph) {}

  Refusal Run() {
    CutBlocks();
    for (uint32_t block = 0; block < graph_.blocks.size(); ++block) {
      if (!Connect(block)) return refusal_;
    }
    for (uint32_t block = 0; block < graph_.blocks.size(); ++block) {
      for (const uint32_t next : graph_.blocks[block].successors) {
        auto& back =
            next == graph_.exit() ? graph_.exit_predecessors : graph_.blocks[next].predecessors;
        back.push_back(block);
      }
    }
    return {};
  }

 private:
  static bool EndsBlock(const Statement& statement) {
    if (statement.kind != StatementKind::kInstruction) return false;
    const Opcode* const opcode = FindOpcode(statement.name);
    if (opcode == nullptr) return false;
    return opcode->kind == OpKind::kBranch || opcode->kind == OpKind::kExit ||
           opcode->kind == OpKind::kTrap;
  }

  void CutBlocks() {
    const auto count = static_cast<uint32_t>(module_.statements.size());
    graph_.block_of.resize(count);
    bool begins = true;
    for (uint32_t i = 0; i < count; ++i) {
      const Statement& statement = module_.statements[i];
      if (statement.kind == StatementKind::kLabel) {
        labels_[{statement.name, statement.scope}] = i;
        begins = true;
      }
      if (begins) {
        if (!graph_.blocks.empty()) graph_.blocks.back().end = i;
        graph_.blocks.emplace_back();
        graph_.blocks.back().first = i;
      }
      graph_.block_of[i] = static_cast<uint32_t>(graph_.blocks.size() - 1);
      begins = EndsBlock(statement);
    }
    if (graph_.blocks.empty()) graph_.blocks.emplace_back();
    graph_.blocks.back().end = count;
  }

  bool FindLabel(std::string_view name, uint32_t scope, uint32_t& statement) const {
    for (;;) {
      const auto found = labels_.find({name, scope});
      if (found != labels_.end()) {
        statement = found->second;
        return true;
      }
      if (scope == 0) return false;
      scope = module_.scopes[scope].parent;
    }
  }

  bool Fail(const Statement& statement, Reason reason, const std::string& what) {
    refusal_ = {reason, statement.line,
                "Line " + std::to_string(statement.line) + " has " + what + "."};
    return false;
  }

  static void Add(std::vector<uint32_t>& nodes, uint32_t node) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }

  bool AddTarget(const Statement& from, std::string_view label, std::vector<uint32_t>& nodes) {
    uint32_t target = 0;
    if (!FindLabel(label, from.scope, target)) {
      return Fail(from, Reason::kUnknownSymbol,
                  "a branch to '" + std::string(label.substr(0, 80)) +
                      "', a label that its body does not have");
    }
    nodes.push_back(graph_.block_of[target]);
    return true;
  }

  bool AddTable(const Statement& from, std::string_view table, std::vector<uint32_t>& nodes) {
    uint32_t label = 0;
    const bool found = FindLabel(table, from.scope, label);
    if (!found || label + 1 >= module_.statements.size() ||
        module_.statements[label + 1].name != ".branchtargets") {
      return Fail(from, Reason::kUnknownSymbol, "a branch by index without its .branchtargets");
    }
    const Statement& targets = module_.statements[label + 1];
    if (!budget_.Take(kStepsOfTarget * (uint64_t{1} + targets.word_count))) {
      return Fail(from, Reason::kTooLarge,
                  "a branch by index, and all of them have too many labels");
    }
    for (uint32_t i = 0; i < targets.word_count; ++i) {
      if (!AddTarget(from, module_.words[targets.first_word + i].text, nodes)) return false;
    }
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return true;
  }

  bool Connect(uint32_t index) {
    Block& block = graph_.blocks[index];
    const uint32_t next = index + 1;  // behind the last block: the exit
    if (block.first == block.end || !EndsBlock(module_.statements[block.end - 1])) {
      block.successors.push_back(next);
      return true;
    }
    const Statement& last = module_.statements[block.end - 1];
    const OpKind kind = FindOpcode(last.name)->kind;
    std::vector<uint32_t>& nodes = block.successors;
    if (kind == OpKind::kExit) nodes.push_back(graph_.exit());
    if (kind == OpKind::kBranch) {
      if (last.word_count == 0) return Fail(last, Reason::kSyntax, "a branch without a target");
      const Word& target = module_.words[last.first_word + last.word_count - 1];
      const bool by_table = last.name.starts_with("brx");
      if (by_table ? !AddTable(last, target.text, nodes) : !AddTarget(last, target.text, nodes)) {
        return false;
      }
    }
    if (last.guard != kNoSymbol) Add(nodes, next);
    if (nodes.size() > 1) block.branch = block.end - 1;
    return true;
  }

  const Module& module_;
  StepBudget& budget_;
  FlowGraph& graph_;
  std::map<LabelKey, uint32_t> labels_;  // statements
  Refusal refusal_;
};

// Blocks in an order in which a block comes after those that it leads to, from the exit backwards.
std::vector<uint32_t> BackwardOrder(const FlowGraph& graph) {
  std::vector<uint32_t> order;
  std::vector<bool> seen(graph.blocks.size() + 1);
  struct Visit {
    uint32_t node;
    size_t next;
  };
  std::vector<Visit> stack = {{graph.exit(), 0}};
  seen[graph.exit()] = true;
  while (!stack.empty()) {
    Visit& top = stack.back();
    const auto& back =
        top.node == graph.exit() ? graph.exit_predecessors : graph.blocks[top.node].predecessors;
    if (top.next == back.size()) {
      order.push_back(top.node);
      stack.pop_back();
      continue;
    }
    const uint32_t node = back[top.next++];
    if (!seen[node]) {
      seen[node] = true;
      stack.push_back({node, 0});
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace

Refusal BuildFlowGraph(const Module& module, StepBudget& budget, FlowGraph& graph) {
  graph = {};
  return Builder(module, budget, graph).Run();
}

// Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm", on the reversed graph.
std::vector<uint32_t> Postdominators(const FlowGraph& graph, StepBudget& budget) {
  const uint32_t exit = graph.exit();
  const std::vector<uint32_t> order = BackwardOrder(graph);
  std::vector<uint32_t> rank(exit + 1, UINT32_MAX);
  for (uint32_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
  std::vector<uint32_t> post(exit + 1, UINT32_MAX);
  post[exit] = exit;
  std::vector<uint32_t> unknown(exit, exit);
  for (bool changed = true; changed;) {
    changed = false;
    for (const uint32_t node : order) {
      if (node == exit) continue;
      uint32_t now = UINT32_MAX;
      for (uint32_t other : graph.blocks[node].successors) {
        if (!budget.Take(1)) return unknown;
        if (post[other] == UINT32_MAX) continue;
        if (now == UINT32_MAX) {
          now = other;
          continue;
        }
        while (now != other) {
          if (!budget.Take(1)) return unknown;
          uint32_t& later = rank[now] > rank[other] ? now : other;
          later = post[later];
        }
      }
      if (!budget.Take(1)) return unknown;
      if (post[node] != now) {
        post[node] = now;
        changed = true;
      }
    }
  }
  for (uint32_t& node : post) {
    if (node == UINT32_MAX) node = exit;
  }
  post.resize(exit);
  return post;
}

// Tarjan's algorithm without recursion.
std::vector<uint32_t> Components(const FlowGraph& graph) {
  const auto count = static_cast<uint32_t>(graph.blocks.size());
  std::vector<uint32_t> component(count, UINT32_MAX);
  std::vector<uint32_t> index(count, UINT32_MAX);
  std::vector<uint32_t> low(count);
  std::vector<uint32_t> open;
  struct Visit {
    uint32_t node;
    size_t next;
  };
  std::vector<Visit> stack;
  uint32_t visited = 0;
  uint32_t components = 0;
  for (uint32_t root = 0; root < count; ++root) {
    if (index[root] != UINT32_MAX) continue;
    stack.push_back({root, 0});
    while (!stack.empty()) {
      Visit& top = stack.back();
      const uint32_t node = top.node;
      if (top.next == 0) {
        index[node] = low[node] = visited++;
        open.push_back(node);
      }
      if (top.next < graph.blocks[node].successors.size()) {
        const uint32_t next = graph.blocks[node].successors[top.next++];
        if (next == graph.exit()) continue;
        if (index[next] == UINT32_MAX) {
          stack.push_back({next, 0});
        } else if (component[next] == UINT32_MAX) {
          low[node] = std::min(low[node], index[next]);
        }
        continue;
      }
      stack.pop_back();
      if (!stack.empty()) low[stack.back().node] = std::min(low[stack.back().node], low[node]);
      if (low[node] != index[node]) continue;
      for (uint32_t member = UINT32_MAX; member != node;) {
        member = open.back();
        open.pop_back();
        component[member] = components;
      }
      ++components;
    }
  }
  return component;
}

}  // namespace gpushare::ptx
