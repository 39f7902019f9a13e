// Samples files: what is written is read back, and what is broken is refused with its line.

#include "src/models/samples/samples_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "src/models/samples/hold_out.h"
#include "src/models/samples/query_name.h"
#include "src/models/samples/row_times.h"
#include "tests/temporary_folder.h"

namespace gpushare::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kHead[] = R"({"samples_version":1,"gpu_model":"NVIDIA H200","sm_count":132})"
                         "\n";

class SamplesFileTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_ + "/samples.jsonl"; }
  void Append(const std::string& text) const { std::ofstream(path(), std::ios::app) << text; }
  void Add(const SampleRow& row, bool simulated = false) const {
    SamplesWriter writer = SamplesWriter::Open(path(), {"NVIDIA H200", 132, simulated}).value();
    writer.Add(row);
    const absl::Status closed = writer.Close();
    ASSERT_TRUE(closed.ok()) << closed;
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
};

SampleRow Solo() {
  SampleRow row;
  row.kernel = "sincos";
  row.form = core::Form::kWorkers;
  row.block_tasks = 4224;
  row.sms = 64;
  row.workers_per_sm = 3;
  row.ns = {100.04, 101, 99.5};
  return row;
}

TEST_F(SamplesFileTest, EveryKindOfRowIsReadBack) {
  Add(Solo());
  SampleRow call = Solo();
  call.call.operation = core::LibraryOperation::kMatmul;
  call.call.m = 128;
  Add(call);
  SampleRow copy;
  copy.what = SampleKind::kCopy;
  copy.to_device = false;
  copy.both_ways = true;
  copy.bytes = 4096;
  copy.ns = {7};
  Add(copy);
  SampleRow beside = Solo();
  beside.what = SampleKind::kBeside;
  beside.neighbour = "streaming";
  beside.neighbour_sms = 68;
  beside.alone_ns = {50};
  Add(beside);
  SampleRow fused;
  fused.what = SampleKind::kFused;
  fused.kernel = "a_b";
  fused.tensor = "a";
  fused.neighbour = "b";
  fused.load_percent = 180;
  fused.neighbour_ns = {3};
  fused.ns = {4};
  Add(fused);
  SampleRow counters;
  counters.what = SampleKind::kCounters;
  counters.kernel = "sincos";
  counters.counters = {{"dram", 0.25}};
  Add(counters);
  SampleRow contended = copy;
  contended.what = SampleKind::kCopyBeside;
  contended.both_ways = false;
  contended.neighbour_bytes = 16384;
  contended.alone_ns = {5};
  Add(contended);
  SampleRow beside_copy = Solo();
  beside_copy.what = SampleKind::kBesideCopy;
  beside_copy.pinned = false;
  beside_copy.both_ways = true;
  beside_copy.bytes = 8192;
  beside_copy.alone_ns = {90};
  Add(beside_copy);
  const Samples samples = LoadSamples(path()).value();
  EXPECT_EQ(samples.head.gpu_model, "NVIDIA H200");
  ASSERT_EQ(samples.rows.size(), 8U);
  EXPECT_EQ(samples.rows[0].workers_per_sm, 3);
  EXPECT_EQ(samples.rows[0].form, core::Form::kWorkers);
  EXPECT_THAT(samples.rows[0].ns, ElementsAre(100, 101, 99.5));
  EXPECT_EQ(samples.rows[1].call.m, 128);
  EXPECT_TRUE(samples.rows[2].both_ways);
  EXPECT_FALSE(samples.rows[2].to_device);
  EXPECT_EQ(samples.rows[3].neighbour, "streaming");
  EXPECT_THAT(samples.rows[3].alone_ns, ElementsAre(50));
  EXPECT_EQ(samples.rows[4].load_percent, 180);
  EXPECT_EQ(samples.rows[5].counters[0].value, 0.25);
  EXPECT_EQ(samples.rows[6].what, SampleKind::kCopyBeside);
  EXPECT_EQ(samples.rows[6].neighbour_bytes, 16384);
  EXPECT_FALSE(samples.rows[6].to_device);
  EXPECT_THAT(samples.rows[6].alone_ns, ElementsAre(5));
  EXPECT_EQ(samples.rows[7].what, SampleKind::kBesideCopy);
  EXPECT_EQ(samples.rows[7].bytes, 8192);
  EXPECT_FALSE(samples.rows[7].pinned);
  EXPECT_TRUE(samples.rows[7].both_ways);
  EXPECT_EQ(samples.rows[7].kernel, "sincos");
}

// Rows of earlier files lack these keys, and later files have them only where they say something.
TEST_F(SamplesFileTest, RareKeysAreLeftOutAndReadBack) {
  Add(Solo());
  SampleRow query = Solo();
  query.kernel = "chain@48";
  query.form = core::Form::kGraph;
  query.input_size = 48;
  Add(query);
  SampleRow fused;
  fused.what = SampleKind::kFused;
  fused.kernel = "a_b_1_2";
  fused.tensor = "a";
  fused.neighbour = "b";
  fused.cuda_blocks = 2;
  fused.neighbour_ns = {3};
  fused.ns = {4};
  Add(fused);
  std::ifstream in(path());
  std::string line;
  std::getline(in, line);
  std::getline(in, line);
  EXPECT_THAT(line, ::testing::Not(HasSubstr("input_size")));
  const Samples samples = LoadSamples(path()).value();
  ASSERT_EQ(samples.rows.size(), 3U);
  EXPECT_EQ(samples.rows[0].input_size, 0);
  EXPECT_EQ(samples.rows[1].input_size, 48);
  EXPECT_EQ(samples.rows[2].tensor_blocks, 1);
  EXPECT_EQ(samples.rows[2].cuda_blocks, 2);
}

TEST_F(SamplesFileTest, ALineThatWasBeingWrittenCostsNothingElse) {
  Add(Solo());
  Append(R"({"what":"solo","ker)");
  const Samples cut = LoadSamples(path()).value();
  EXPECT_EQ(cut.rows.size(), 1U);
  Add(Solo());
  const Samples mended = LoadSamples(path()).value();
  EXPECT_EQ(mended.rows.size(), 2U);
}

TEST_F(SamplesFileTest, AFileIsOfOneDevice) {
  Add(Solo());
  const absl::Status other = SamplesWriter::Open(path(), {"NVIDIA A100", 108}).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.message()), HasSubstr("'NVIDIA H200' with 132 SMs"));
  EXPECT_EQ(SamplesWriter::Open(path(), {"NVIDIA H200", 132, true}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(SamplesFileTest, AFileThatIsNoneIsLeftAlone) {
  Append("not a samples file\n");
  EXPECT_EQ(SamplesWriter::Open(path(), {"NVIDIA H200", 132}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::filesystem::file_size(path()), 19U);
}

TEST_F(SamplesFileTest, AFileWithoutALineEndIsNotEmptied) {
  Append(R"({"schema_version":1,"device":{}})");
  const auto bytes = std::filesystem::file_size(path());
  EXPECT_EQ(SamplesWriter::Open(path(), {"NVIDIA H200", 132}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::filesystem::file_size(path()), bytes);
}

TEST_F(SamplesFileTest, AHeadThatWasBeingWrittenIsWrittenAgain) {
  Append(std::string(kHead).substr(0, 20));
  Add(Solo());
  EXPECT_EQ(LoadSamples(path())->rows.size(), 1U);
}

TEST_F(SamplesFileTest, ARowIsOnDiskBeforeTheNextIsMeasured) {
  SamplesWriter writer = SamplesWriter::Open(path(), {"NVIDIA H200", 132}).value();
  writer.Add(Solo());
  const Samples first = LoadSamples(path()).value();
  EXPECT_EQ(first.rows.size(), 1U);
  SampleRow impossible = Solo();
  impossible.ns = {-5};
  writer.Add(impossible);
  EXPECT_EQ(writer.left_out(), 1);
  EXPECT_TRUE(writer.Close().ok());
  EXPECT_EQ(LoadSamples(path())->rows.size(), 1U);
}

TEST(ParseSamplesTest, WhatIsBrokenIsNamedWithItsLine) {
  const auto message = [](const std::string& line) {
    return std::string(ParseSamples(kHead + line + "\n").status().message());
  };
  EXPECT_THAT(message(R"({"what":"solo","kernel":"a"})"), HasSubstr("Line 2: Key 'sms'"));
  EXPECT_THAT(message(R"({"kernel":"a","ns":[1]})"), HasSubstr("Key 'what' is missing"));
  EXPECT_THAT(message(R"({"what":"copy","bytes":0,"ns":[1]})"), HasSubstr("'bytes'"));
  EXPECT_THAT(message(R"({"what":"copy","bytes":1,"kernel":"a","ns":[1]})"),
              HasSubstr("'kernel' is not known"));
  EXPECT_THAT(message(R"({"what":"solo","kernel":"a","sms":1,"ns":[-1]})"), HasSubstr("'ns[0]'"));
  EXPECT_THAT(message(R"({"what":"nothing"})"), HasSubstr("one of solo, copy"));
  EXPECT_THAT(message(R"({"what":"counters","kernel":"a","counters":[{"value":1}]})"),
              HasSubstr("without a name"));
  EXPECT_THAT(message(R"({"what":"copy_beside","bytes":1,"ns":[1]})"),
              HasSubstr("Key 'alone_ns' is missing"));
  EXPECT_THAT(message(R"({"what":"beside_copy","kernel":"a","bytes":1,"alone_ns":[1],"ns":[1]})"),
              HasSubstr("Key 'sms'"));
  EXPECT_THAT(message(R"({"what":"solo","kernel":"a","sms":1,"input_size":-1,"ns":[1]})"),
              HasSubstr("'input_size'"));
  EXPECT_THAT(message("[]"), HasSubstr("an object"));
  EXPECT_EQ(ParseSamples("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(ParseSamples("{\"samples_version\":2}\n").status().message()),
              HasSubstr("Line 1"));
}

// A row keeps its side when it is measured again, on whatever machine.
TEST(HoldOutTest, TheSplitIsFixed) {
  SampleRow row = Solo();
  const bool side = IsHeldOut(row);
  row.ns = {5};
  EXPECT_EQ(IsHeldOut(row), side);
  int held = 0;
  for (int i = 0; i < 4000; ++i) held += IsHeldOut("subject " + std::to_string(i)) ? 1 : 0;
  EXPECT_NEAR(held, 1000, 100);
}

TEST(HoldOutTest, BlindCallsTrainNothing) {
  SampleRow row = Solo();
  for (int i = 0; i < 40; ++i) {
    row.kernel = "blind.matmul.f16." + std::to_string(i);
    EXPECT_TRUE(IsBlind(row));
    EXPECT_TRUE(IsHeldOut(row));
  }
  row.kernel = "matmul.f16.blind.";
  EXPECT_FALSE(IsBlind(row));
}

// A contended pair is held out whichever of its repeats was taken, and its directions apart.
TEST(HoldOutTest, ContendedPairsHaveSubjectsOfTheirOwn) {
  SampleRow row;
  row.what = SampleKind::kCopyBeside;
  row.bytes = 4096;
  const std::string opposed = SubjectOf(row);
  row.neighbour = "sincos";
  EXPECT_NE(SubjectOf(row), opposed);
  const std::string beside = SubjectOf(row);
  row.to_device = false;
  EXPECT_NE(SubjectOf(row), beside);
  row.what = SampleKind::kBesideCopy;
  const std::string kernel = SubjectOf(row);
  row.pinned = false;
  EXPECT_NE(SubjectOf(row), kernel);
}

TEST(QueryNameTest, ANameTellsTheQueryAndItsSize) {
  EXPECT_EQ(ParseQueryName("chain@48").query, "chain");
  EXPECT_EQ(ParseQueryName("chain@48").input_size, 48);
  for (const char* none : {"chain", "@48", "chain@", "chain@0", "chain@-3", "chain@4x", ""}) {
    EXPECT_EQ(ParseQueryName(none).query, none);
    EXPECT_EQ(ParseQueryName(none).input_size, 0) << none;
  }
}

TEST(RowTimesTest, MediansOfValuesAndOfRatios) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(MedianRatio({2, 9, 8}, {1, 3, 2, 7}), 3);
  EXPECT_EQ(MedianRatio({1}, {0}), 0);
}

}  // namespace
}  // namespace gpushare::models
