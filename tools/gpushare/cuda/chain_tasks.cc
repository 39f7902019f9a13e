#include "tools/gpushare/cuda/chain_tasks.h"

#include <algorithm>

#include "tools/gpushare/base/errors.h"

namespace gpushare::tool {

bool IsGelu(const std::string& task) {
  const ChainFamily* family = FamilyOfTask(task);
  return family != nullptr &&
         std::any_of(family->layer.begin(), family->layer.end(),
                     [&](const ChainStep& step) { return step.gelu && task == step.task; });
}

ChainOfTasks::ChainOfTasks(ChainPrograms& chains, const ChainFamily& family, const std::string& app,
                           const std::vector<WorkItem>& items)
    : chains_(chains), family_(family) {
  const size_t per_layer = family.layer.size();
  if (items.size() == 1 && per_layer > 1) {
    BindSingle(items[0].kernel);
    return;
  }
  for (size_t i = 0; i < items.size(); ++i) {
    CheckItem(app, i, items[i], family.layer[i % per_layer]);
  }
  if (items.size() % per_layer != 0) {
    throw InputError("App '" + app + "' has a chain of " + std::to_string(items.size()) +
                     " tasks, and a layer of it has " + std::to_string(per_layer) + ".");
  }
  layers_ = static_cast<int>(items.size() / per_layer);
  chains.Prepare(family, layers_);
  buffers_ = chains.NewBuffers(family, layers_);
  for (size_t i = 0; i < items.size(); ++i) Bind(static_cast<int>(i));
}

void ChainOfTasks::AddRaw(CudaRawApp& raw, size_t index) {
  const auto at = static_cast<int>(index);
  if (!family_.layer[index % family_.layer.size()].gelu) {
    raw.AddGemm(chains_.GemmAt(family_, buffers_, at));
    return;
  }
  raw.AddTask([params = chains_.GeluAt(family_, buffers_, at)](void* stream) {
    CheckCuda(LaunchGelu(params, stream), "Launching GELU");
  });
}

void ChainOfTasks::Verify(const std::string& app) {
  std::string sentence;
  const ChainPrograms::Answer answer = chains_.Check(family_, layers_, buffers_, &sentence);
  if (answer == ChainPrograms::Answer::kRight) return;
  if (answer == ChainPrograms::Answer::kUntouched) sentence = "Its tasks wrote no answer.";
  throw RunError("App '" + app + "': " + sentence);
}

void ChainOfTasks::CheckItem(const std::string& app, size_t index, const WorkItem& item,
                             const ChainStep& step) const {
  if (item.kernel != step.task) {
    throw InputError("App '" + app + "' has the task '" + item.kernel + "' as number " +
                     std::to_string(index + 1) + " of its chain, where '" + step.task +
                     "' belongs.");
  }
  const int64_t blocks =
      step.gelu ? GeluBlocks(static_cast<uint64_t>(family_.rows * step.n)) : item.block_tasks;
  if (item.block_tasks == blocks) return;
  throw InputError("App '" + app + "' gives " + std::to_string(item.block_tasks) +
                   " block tasks for '" + item.kernel + "', and it has " + std::to_string(blocks) +
                   ".");
}

void ChainOfTasks::BindSingle(const std::string& task) {
  const auto step =
      std::find_if(family_.layer.begin(), family_.layer.end(),
                   [&](const ChainStep& candidate) { return task == candidate.task; });
  buffers_ = chains_.NewBuffers(family_, 1);
  chains_.FillInputs(buffers_);
  Bind(static_cast<int>(step - family_.layer.begin()));
}

void ChainOfTasks::Bind(int index) {
  TaskBinding binding;
  if (family_.layer[static_cast<size_t>(index) % family_.layer.size()].gelu) {
    const GeluParams& params = gelus_.emplace_back(chains_.GeluAt(family_, buffers_, index));
    binding.block_tasks = GeluBlocks(params.elements);
    binding.arguments = &params;
    binding.arguments_size_bytes = sizeof(params);
  } else {
    const Gemm gemm = chains_.GemmAt(family_, buffers_, index);
    const gpushare_library_arguments& arguments = gemms_.emplace_back(
        gpushare_library_arguments{gemm.a, gemm.weights, nullptr, gemm.d, 1.0F, 0.0F});
    binding.arguments = &arguments;
    binding.arguments_size_bytes = sizeof(arguments);
  }
  bindings_.push_back(binding);
}

}  // namespace gpushare::tool
