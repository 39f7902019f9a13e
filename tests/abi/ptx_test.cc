// Kernels of PTX through the C API on the simulated device: which forms they get, what refuses one,
// and that they are evicted like kernels that were compiled ahead.

#include <gpushare/gpushare.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

constexpr char kHeader[] = ".version 8.0\n.target sm_90a\n.address_size 64\n";
constexpr char kScale[] = R"(.visible .entry scale(.param .u64 out, .param .f32 factor)
.reqntid 128
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<2>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd1, [out];
  ld.param.f32 %f1, [factor];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.f32 %f2, [%rd3];
  mul.f32 %f2, %f2, %f1;
  st.global.f32 [%rd3], %f2;
  ret;
}
)";
// The setmaxnreg stands in line 9 behind the header.
constexpr char kSpecialised[] = R"(.visible .entry specialised(.param .u64 out)
.reqntid 128
{
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  setmaxnreg.dec.sync.aligned.u32 40;
  ret;
}
)";

// Whole warps leave, if blocks have one dimension. Nothing says that they have.
constexpr char kByWarps[] = R"(.visible .entry by_warps(.param .u64 out)
{
  .reg .pred %p<2>;
  .reg .b32 %r<3>;
  mov.u32 %r1, %tid.x;
  setp.ge.u32 %p1, %r1, 32;
  @%p1 ret;
  shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;
  ret;
}
)";

class PtxTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(api_.Open({"sim", GPUSHARE_DRIVE_POLL}));
    options_.name = "twin";
    record_.block_task_ns = 20 * kUs;
    options_.simulation = &record_;
  }
  void TearDown() override {
    if (kernel_ != nullptr) {
      EXPECT_OK(gpushare_kernel_release(kernel_));
    }
    api_.Close();
  }

  void Give(const std::string& kernels) {
    text_ = kHeader + kernels;
    code_.text = text_.c_str();
  }
  gpushare_status Register() {
    return gpushare_kernel_register_ptx(api_.runtime, &options_, &code_, &kernel_);
  }
  gpushare_kernel_info Info() const {
    gpushare_kernel_info info = GPUSHARE_KERNEL_INFO_INIT;
    EXPECT_OK(gpushare_kernel_info_by_name(api_.runtime, "twin", &info));
    return info;
  }
  uint32_t Guarantees() const {
    uint32_t bits = 0;
    EXPECT_OK(gpushare_guarantees(api_.runtime, GPUSHARE_TASK_DEFAULT, kernel_, &bits));
    return bits;
  }
  gpushare_completion_record Run() const {
    gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
    task.kernel = kernel_;
    task.block_tasks = 100'000;
    const gpushare_ticket ticket = api_.Submit(task, false);
    EXPECT_OK(gpushare_poll_until(api_.runtime,
                                  api_.NowNs() + 100 * kUs));  // it runs when the query comes
    const gpushare_ticket query = api_.Submit(api_.LcTask(), true);
    EXPECT_OK(gpushare_ticket_wait(api_.runtime, query, api_.Deadline()));
    EXPECT_OK(gpushare_ticket_wait(api_.runtime, ticket, api_.Deadline()));
    gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
    EXPECT_OK(gpushare_ticket_record(api_.runtime, ticket, &record));
    EXPECT_OK(gpushare_ticket_release(api_.runtime, query));
    EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
    return record;
  }

  Api api_;
  std::string text_;
  gpushare_ptx_code code_ = GPUSHARE_PTX_CODE_INIT;
  gpushare_kernel_options options_ = GPUSHARE_KERNEL_OPTIONS_INIT;
  gpushare_simulation_record record_ = GPUSHARE_SIMULATION_RECORD_INIT;
  gpushare_kernel* kernel_ = nullptr;
};

std::string Text(const std::function<gpushare_status(char*, size_t, size_t*)>& write) {
  size_t bytes = 0;
  EXPECT_OK(write(nullptr, 0, &bytes));
  std::string text(bytes, '\0');
  EXPECT_OK(write(text.data(), text.size(), &bytes));
  EXPECT_EQ(bytes, text.size());
  text.resize(bytes == 0 ? 0 : bytes - 1);
  return text;
}

TEST_F(PtxTest, AKernelWithItsTwinsIsEvictedForAQuery) {
  Give(kScale);
  ASSERT_OK(Register());
  const gpushare_kernel_info info = Info();
  EXPECT_EQ(info.kind, GPUSHARE_TASK_KERNEL);
  EXPECT_EQ(info.evictable, 1);
  EXPECT_EQ(info.worker_refusal, nullptr);
  EXPECT_EQ(info.slice_refusal, nullptr);
  EXPECT_EQ(info.threads_per_block, 128) << ".reqntid says so";
  EXPECT_EQ(Guarantees() & GPUSHARE_GUARANTEE_EVICTABLE, uint32_t{GPUSHARE_GUARANTEE_EVICTABLE});
  EXPECT_EQ(Guarantees() & GPUSHARE_GUARANTEE_DIVISIBLE, uint32_t{GPUSHARE_GUARANTEE_DIVISIBLE});
  const gpushare_completion_record record = Run();
  EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_OK);
  EXPECT_GT(record.evictions, 0);
}

TEST_F(PtxTest, ARefusedKernelRunsWholeAndSaysWhyAndWhere) {
  Give(kSpecialised);
  ASSERT_OK(Register());
  const gpushare_kernel_info info = Info();
  EXPECT_EQ(info.evictable, 0);
  ASSERT_NE(info.worker_refusal, nullptr);
  ASSERT_NE(info.slice_refusal, nullptr);
  for (const std::string refusal : {info.worker_refusal, info.slice_refusal}) {
    EXPECT_NE(refusal.find("Kernel 'specialised' has no "), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("line 9"), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("setmaxnreg"), std::string::npos) << refusal;
    EXPECT_EQ(refusal.back(), '.') << refusal;
  }
  EXPECT_EQ(info.worker_refusal_line, 9u);
  EXPECT_EQ(info.slice_refusal_line, 9u);
  EXPECT_EQ(Guarantees() & GPUSHARE_GUARANTEE_EVICTABLE, 0u);
  EXPECT_EQ(Guarantees() & GPUSHARE_GUARANTEE_DIVISIBLE, 0u);
  const gpushare_completion_record record = Run();
  EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(record.evictions, 0);
}

TEST_F(PtxTest, TheCallerMayWantFewerFormsOrNoEviction) {
  Give(kScale);
  code_.forms = GPUSHARE_PTX_FORM_SLICE;
  ASSERT_OK(Register());
  EXPECT_EQ(Info().evictable, 0);
  EXPECT_EQ(Info().worker_refusal, nullptr) << "nobody asked for it";
  EXPECT_EQ(Guarantees() & GPUSHARE_GUARANTEE_DIVISIBLE, uint32_t{GPUSHARE_GUARANTEE_DIVISIBLE});
  ASSERT_OK(gpushare_kernel_release(kernel_));
  code_.forms = 0;
  options_.evictable = GPUSHARE_CHOICE_NO;
  ASSERT_OK(Register());
  EXPECT_EQ(Info().evictable, 0);
}

// It is no form: by itself it asks for all of them.
TEST_F(PtxTest, AKernelForNodesOfGraphsHasTheFormsThatItNames) {
  Give(kScale);
  code_.forms = GPUSHARE_PTX_FORM_GRAPH_NODES;
  ASSERT_OK(Register());
  EXPECT_EQ(Info().evictable, 1);
  EXPECT_EQ(Guarantees() & GPUSHARE_GUARANTEE_DIVISIBLE, uint32_t{GPUSHARE_GUARANTEE_DIVISIBLE});
  ASSERT_OK(gpushare_kernel_release(kernel_));
  code_.forms = GPUSHARE_PTX_FORM_GRAPH_NODES | GPUSHARE_PTX_FORM_SLICE;
  ASSERT_OK(Register());
  EXPECT_EQ(Info().evictable, 0);
}

TEST_F(PtxTest, AKernelThatMustBeEvictableIsNotRegisteredWithoutItsWorkers) {
  Give(kSpecialised);
  options_.evictable = GPUSHARE_CHOICE_YES;
  EXPECT_FAILS(Register(), GPUSHARE_UNIMPLEMENTED, "line 9");
  EXPECT_EQ(kernel_, nullptr);
  Give(kScale);
  code_.forms = GPUSHARE_PTX_FORM_SLICE;
  EXPECT_FAILS(Register(), GPUSHARE_UNIMPLEMENTED, "no worker form");
  code_.forms = 0;
  ASSERT_OK(Register()) << "the name is free";
}

TEST_F(PtxTest, BadInputIsRefusedWithTheFieldAndTheLimit) {
  EXPECT_FAILS(gpushare_kernel_register_ptx(api_.runtime, &options_, nullptr, &kernel_),
               GPUSHARE_INVALID_ARGUMENT, "ptx_code");
  EXPECT_FAILS(Register(), GPUSHARE_INVALID_ARGUMENT, "ptx_code.text");
  code_.text = "";
  EXPECT_FAILS(Register(), GPUSHARE_INVALID_ARGUMENT, "no bytes");
  Give(kScale);
  code_.text_bytes = (16 << 20) + 1;
  EXPECT_FAILS(Register(), GPUSHARE_INVALID_ARGUMENT, "16777216");
  code_.text_bytes = 0;
  code_.forms = 8;
  EXPECT_FAILS(Register(), GPUSHARE_INVALID_ARGUMENT, "forms is 8");
  code_.forms = GPUSHARE_PTX_FORM_GRAPH_NODES << 1;
  EXPECT_FAILS(Register(), GPUSHARE_INVALID_ARGUMENT, "65536 graph nodes");
  code_.forms = 0;
  code_.entry = "scales";
  EXPECT_FAILS(Register(), GPUSHARE_NOT_FOUND, "'scales'");
  code_.entry = nullptr;
  options_.worker_function = this;
  EXPECT_FAILS(Register(), GPUSHARE_INVALID_ARGUMENT, "worker or slice function");
  options_.worker_function = nullptr;
  options_.yield_interval_ns = 1000;
  EXPECT_FAILS(Register(), GPUSHARE_INVALID_ARGUMENT, "yield points");
  options_.yield_interval_ns = 0;
  options_.threads_per_block = 256;
  EXPECT_FAILS(Register(), GPUSHARE_INVALID_ARGUMENT, "256 threads, and its PTX requires 128");
  options_.threads_per_block = 0;
  options_.kind = GPUSHARE_TASK_GRAPH;
  EXPECT_FAILS(Register(), GPUSHARE_INVALID_ARGUMENT, "not of kind kernel");
  options_.kind = GPUSHARE_TASK_DEFAULT;
  Give(std::string(kScale) + kSpecialised);
  EXPECT_FAILS(Register(), GPUSHARE_NOT_FOUND, "entry is null");
  code_.entry = "scale";
  ASSERT_OK(Register());
}

TEST_F(PtxTest, ABlockThatNoKernelHasIsRefused) {
  Give(kScale);
  for (const int32_t dimension : {INT32_MAX, 64, -1}) {
    options_.block_x = dimension;
    options_.block_y = options_.block_z = dimension == 64 ? 0 : dimension;
    EXPECT_FAILS(Register(), GPUSHARE_INVALID_ARGUMENT, "each dimension lies between 1 and 1024");
  }
  options_.block_x = options_.block_y = options_.block_z = 0;
  for (const std::string shape : {"1025", "64, 32", "1024, 1024, 1024"}) {
    std::string kernel = kScale;
    kernel.replace(kernel.find("128"), 3, shape);
    Give(kernel);
    EXPECT_FAILS(Register(), GPUSHARE_INVALID_ARGUMENT, "threads, and CUDA allows 1 to 1024");
  }
}

TEST_F(PtxTest, TheRequiredBlockCountsInEachDimension) {
  Give(kScale);
  options_.block_x = 64;
  options_.block_y = 2;
  options_.block_z = 1;
  EXPECT_FAILS(Register(), GPUSHARE_INVALID_ARGUMENT,
               "64 x 2 x 1 threads, and its PTX requires 128 x 1 x 1");
  options_.block_x = 128;
  options_.block_y = 1;
  options_.threads_per_block = 64;
  EXPECT_FAILS(Register(), GPUSHARE_INVALID_ARGUMENT, "64");
  options_.threads_per_block = 0;
  options_.block_x = 64;
  options_.block_y = 2;
  std::string kernel = kScale;
  kernel.replace(kernel.find("128"), 3, "64, 2");
  Give(kernel);
  ASSERT_OK(Register());
  ASSERT_OK(gpushare_kernel_release(kernel_));
  options_.block_x = options_.block_y = options_.block_z = 0;
  options_.threads_per_block = 128;  // its shape is the required one
  ASSERT_OK(Register());
}

TEST_F(PtxTest, ABlockHasAtMostTheThreadsThatTheTextAllows) {
  std::string kernel = kScale;
  kernel.replace(kernel.find(".reqntid 128"), 12, ".maxntid 64, 1");
  Give(kernel);
  options_.threads_per_block = 128;
  EXPECT_FAILS(Register(), GPUSHARE_INVALID_ARGUMENT, "128 threads, and its PTX allows 64");
  options_.threads_per_block = 0;
  options_.block_x = 32;
  options_.block_y = 4;
  options_.block_z = 1;
  EXPECT_FAILS(Register(), GPUSHARE_INVALID_ARGUMENT, "128 threads, and its PTX allows 64");
  options_.block_y = 2;
  ASSERT_OK(Register());
  EXPECT_EQ(Info().evictable, 1) << "it depends on no warp";
  ASSERT_OK(gpushare_kernel_release(kernel_));
  options_.block_x = options_.block_y = options_.block_z = 0;
  ASSERT_OK(Register()) << "no block is stated";
  options_.name = "ffma";  // the profile's block counts where none is stated
  EXPECT_FAILS(Register(), GPUSHARE_INVALID_ARGUMENT, "256 threads, and its PTX allows 64");
}

TEST_F(PtxTest, TwinsOfFlatBlocksAreRefusedForOtherBlocks) {
  Give(kByWarps);
  options_.block_x = 32;
  options_.block_y = 4;
  options_.block_z = 1;
  options_.evictable = GPUSHARE_CHOICE_YES;
  EXPECT_FAILS(Register(), GPUSHARE_UNIMPLEMENTED, ".reqntid 32, 4, 1");
  options_.evictable = GPUSHARE_CHOICE_DEFAULT;
  ASSERT_OK(Register());
  EXPECT_EQ(Info().evictable, 0);
  EXPECT_EQ(Guarantees() & GPUSHARE_GUARANTEE_DIVISIBLE, 0u);
  for (const std::string refusal : {Info().worker_refusal, Info().slice_refusal}) {
    EXPECT_NE(refusal.find("Kernel 'by_warps' has no "), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("32 x 4 x 1"), std::string::npos) << refusal;
  }
  EXPECT_EQ(Run().verdict, GPUSHARE_VERDICT_OK);
  ASSERT_OK(gpushare_kernel_release(kernel_));
  options_.block_x = 128;
  options_.block_y = 1;
  ASSERT_OK(Register());
  EXPECT_EQ(Info().evictable, 1);
}

TEST_F(PtxTest, ARefusalCanBeReadAfterItsKernelIsReleased) {
  Give(kSpecialised);
  ASSERT_OK(Register());
  const gpushare_kernel_info info = Info();
  const std::string refusal = info.worker_refusal;
  ASSERT_OK(gpushare_kernel_release(kernel_));
  options_.name = "another";
  Give(kScale);
  ASSERT_OK(Register());
  EXPECT_EQ(info.worker_refusal, refusal);
  EXPECT_NE(info.slice_refusal, nullptr);
}

TEST_F(PtxTest, ALengthEndsTheText) {
  Give(std::string(kScale) + "no PTX at all");
  code_.text_bytes = text_.size() - std::string("no PTX at all").size();
  ASSERT_OK(Register());
  EXPECT_EQ(Info().evictable, 1);
}

TEST_F(PtxTest, TextFunctionsSayWhatCanBeMadeAndMakeIt) {
  Give(std::string(kScale) + kSpecialised);
  EXPECT_EQ(Text([&](char* buffer, size_t size, size_t* bytes) {
              return gpushare_ptx_entries(&code_, buffer, size, bytes);
            }),
            "scale\nspecialised");
  uint32_t line = 1;
  const auto check = [&](char* buffer, size_t size, size_t* bytes) {
    return gpushare_ptx_check(&code_, GPUSHARE_FORM_WORKERS, &line, buffer, size, bytes);
  };
  code_.entry = "scale";
  EXPECT_EQ(Text(check), "");
  EXPECT_EQ(line, 0u);
  const auto transform = [&](char* buffer, size_t size, size_t* bytes) {
    return gpushare_ptx_transform(&code_, buffer, size, bytes);
  };
  const std::string module = Text(transform);
  EXPECT_GT(module.size(), text_.size());
  EXPECT_NE(module.find(kScale), std::string::npos) << "the original stays byte for byte";
  size_t bytes = 0;
  char small[8];
  EXPECT_FAILS(transform(small, sizeof(small), &bytes), GPUSHARE_OUT_OF_RANGE, "");
  code_.entry = "specialised";
  EXPECT_NE(Text(check).find("setmaxnreg"), std::string::npos);
  EXPECT_EQ(line, 25u);
  EXPECT_FAILS(transform(nullptr, 0, &bytes), GPUSHARE_UNIMPLEMENTED, "line 25");
  EXPECT_FAILS(gpushare_ptx_check(&code_, GPUSHARE_FORM_GRAPH, &line, nullptr, 0, &bytes),
               GPUSHARE_INVALID_ARGUMENT, "form is 4");
}

}  // namespace
}  // namespace gpushare_test
