// libgpushare_ptx.so from outside, by its C header alone.

#include <gpushare/ptx.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tests/ptx/kernels.h"

namespace gpushare::ptx {
namespace {

struct Release {
  void operator()(gpushare_twin* twin) const { gpushare_twin_release(twin); }
};

struct Made {
  std::unique_ptr<gpushare_twin, Release> twin;
  gpushare_twin_facts facts = GPUSHARE_TWIN_FACTS_INIT;
};

Made Make(const std::string& text, uint32_t forms, const char* entry = nullptr,
          uint32_t worker_registers_max = 0) {
  gpushare_twin_options options = GPUSHARE_TWIN_OPTIONS_INIT;
  options.forms = forms;
  options.text = text.data();
  options.text_bytes = text.size();
  options.entry = entry;
  options.worker_registers_max = worker_registers_max;
  gpushare_twin* twin = nullptr;
  EXPECT_EQ(gpushare_twin_create(&options, &twin), GPUSHARE_TWIN_OK);
  Made made;
  made.twin.reset(twin);
  EXPECT_EQ(gpushare_twin_get_facts(twin, &made.facts), GPUSHARE_TWIN_OK);
  return made;
}

std::string Entries(const std::string& text) {
  std::string names(gpushare_twin_entries(text.data(), text.size(), nullptr, 0), '\0');
  EXPECT_EQ(gpushare_twin_entries(text.data(), text.size(), names.data(), names.size()),
            names.size());
  names.pop_back();
  return names;
}

TEST(PtxLibrary, TwinsFollowTheTextAndTheFactsDescribeIt) {
  const std::string text = KernelText(kEarlyReturn, ".maxntid 32, 1, 1\n");
  const Made made = Make(text, GPUSHARE_TWIN_WORKERS | GPUSHARE_TWIN_SLICE, "k", 40);
  EXPECT_STREQ(made.facts.reason, "none");
  EXPECT_STREQ(made.facts.refusal, "");
  const std::string module(made.facts.module, made.facts.module_bytes);
  EXPECT_EQ(Entries(module), "k\nk_gpushare_workers\nk_gpushare_slice");
  EXPECT_STREQ(made.facts.worker_entry, "k_gpushare_workers");
  EXPECT_STREQ(made.facts.slice_entry, "k_gpushare_slice");
  EXPECT_NE(module.find(".maxnreg 40"), std::string::npos);
  EXPECT_EQ(made.facts.block_max[0], 32u);
  EXPECT_EQ(made.facts.early_exits, 1u);
  EXPECT_EQ(made.facts.parameter_count, 1u);
  EXPECT_EQ(made.facts.parameters_bytes, 8u);
  EXPECT_GT(made.facts.instructions, 10u);
}

TEST(PtxLibrary, WithoutFormsItOnlyChecks) {
  const Made made = Make(KernelText(kBlockSum), 0);
  EXPECT_STREQ(made.facts.entry, "k");
  EXPECT_STREQ(made.facts.module, "");
  EXPECT_STREQ(made.facts.worker_entry, "");
  EXPECT_EQ(made.facts.static_shared_bytes, 256u);
}

TEST(PtxLibrary, ARefusalIsAnAnswerWithALine) {
  const Made made = Make(KernelText("mov.u32 %r1, %smid;\nret;"), GPUSHARE_TWIN_WORKERS);
  EXPECT_STREQ(made.facts.reason, "special register");
  EXPECT_EQ(made.facts.line, 16u);
  EXPECT_NE(std::string_view(made.facts.refusal).find("'%smid'"), std::string_view::npos);
  EXPECT_EQ(made.facts.module_bytes, 0u);
  EXPECT_EQ(made.facts.instructions, 0u);
}

TEST(PtxLibrary, BadArgumentsAreErrors) {
  const std::string text = KernelText(kBlockSum);
  gpushare_twin_options options = GPUSHARE_TWIN_OPTIONS_INIT;
  gpushare_twin* twin = nullptr;
  EXPECT_EQ(gpushare_twin_create(&options, &twin), GPUSHARE_TWIN_INVALID_ARGUMENT);  // no text
  options.text = text.c_str();
  EXPECT_EQ(gpushare_twin_create(&options, nullptr), GPUSHARE_TWIN_INVALID_ARGUMENT);
  EXPECT_EQ(gpushare_twin_create(nullptr, &twin), GPUSHARE_TWIN_INVALID_ARGUMENT);
  options.forms = 1;
  EXPECT_EQ(gpushare_twin_create(&options, &twin), GPUSHARE_TWIN_INVALID_ARGUMENT);
  options.forms = 0;
  options.struct_size -= 8;
  EXPECT_EQ(gpushare_twin_create(&options, &twin), GPUSHARE_TWIN_INVALID_ARGUMENT);
  EXPECT_EQ(twin, nullptr);
  gpushare_twin_facts facts = GPUSHARE_TWIN_FACTS_INIT;
  EXPECT_EQ(gpushare_twin_get_facts(nullptr, &facts), GPUSHARE_TWIN_INVALID_ARGUMENT);
  gpushare_twin_release(nullptr);
  EXPECT_EQ(gpushare_twin_entries(nullptr, 0, nullptr, 0), 0u);
  EXPECT_EQ(gpushare_twin_version(), static_cast<uint32_t>(GPUSHARE_TWIN_VERSION));
}

TEST(PtxLibrary, NamesAreCutWhereTheBufferEnds) {
  const std::string text = KernelText("ret;");
  const std::string two = text + text.substr(text.find(".visible")).replace(16, 1, "second");
  ASSERT_EQ(Entries(two), "k\nsecond");
  char buffer[4] = {'x', 'x', 'x', 'x'};
  EXPECT_EQ(gpushare_twin_entries(two.c_str(), 0, buffer, sizeof(buffer)), 9u);
  EXPECT_STREQ(buffer, "k\ns");
  EXPECT_EQ(Entries("no PTX"), "");
}

}  // namespace
}  // namespace gpushare::ptx
