// The text of a learned model: what is written is read back, and what is out of range is refused.

#include "src/models/learned/learned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gpushare::models {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LearnedTest, WhatIsWrittenIsReadBack) {
  Learned learned;
  learned.kernels.resize(1);
  learned.kernels[0].name = "decode";
  learned.kernels[0].solo.samples = 5;
  learned.kernels[0].shape = {132, {{100, 1.25}, {400, 0.75}}};
  learned.kernels[0].beside_copies[core::kLinkOut] = {9, 0.96, 0};
  learned.kernels[0].eviction = {250e3, 1e3, true};
  learned.kernels[0].blocking.mean = 200e3;
  learned.copies.push_back({2, true, {}, {5, 0.25, {{3, 4096, 1.5}}}});
  learned.pairs.push_back({"decode", "train", 84, {7, 0.5, 0}});
  learned.fused.push_back({"pair", 0.04, {{0.5, 1.1}, {2, 2.4}}});
  learned.queries.push_back({"service", {{}, {{3, 128, 2.5}}, 3, 0.1, 0.05}});
  const std::string text = FormatLearned(learned);
  const Learned read = ParseLearned(text).value();
  EXPECT_EQ(FormatLearned(read), text);
  EXPECT_EQ(read.queries.at(0).model.table.at(0).ratio, 2.5);
  EXPECT_EQ(read.kernels.at(0).eviction.mean_ns, 250e3);
  EXPECT_EQ(read.kernels.at(0).shape.round, 132);
  EXPECT_EQ(read.kernels.at(0).beside_copies[core::kLinkOut].mean, 0.96);
  EXPECT_EQ(read.kernels.at(0).beside_copies[core::kLinkIn].samples, 0);
  ASSERT_EQ(read.kernels.at(0).shape.ratios.size(), 2U);
  EXPECT_EQ(read.kernels.at(0).shape.ratios[1].ratio, 0.75);
  EXPECT_EQ(read.copies.at(0).direction, 2);
  EXPECT_EQ(read.copies.at(0).table.samples, 5);
  EXPECT_EQ(read.copies.at(0).table.error, 0.25);
  ASSERT_EQ(read.copies.at(0).table.points.size(), 1U);
  EXPECT_EQ(read.copies.at(0).table.points[0].ratio, 1.5);
  EXPECT_EQ(read.pairs.at(0).speed.mean, 0.5);
  EXPECT_EQ(read.fused.at(0).error, 0.04);
  EXPECT_EQ(read.fused.at(0).points.at(1).duration_ratio, 2.4);
}

TEST(LearnedTest, AKernelNeedsANameAndATextItsVersion) {
  EXPECT_THAT(ParseLearned("{}").status().message(), HasSubstr("'schema_version' is missing"));
  EXPECT_THAT(ParseLearned(R"({"schema_version": 2})").status().message(),
              HasSubstr("it must be 1"));
  EXPECT_THAT(ParseLearned(R"({"schema_version": 1, "kernels": [{}]})").status().message(),
              HasSubstr("'kernels[0]' needs a 'name'"));
  EXPECT_THAT(ParseLearned(R"({"schema_version": 1, "pairs": [{"speed": {"mean": 11}}]})")
                  .status()
                  .message(),
              HasSubstr("'pairs[0].speed.mean' is 11, and it must be from 0 to 10"));
}

TEST(LearnedTest, NeighbourWeightsOfFormerFeaturesAreReadAsNothing) {
  const auto text = [](int count) {
    std::string weights = "1";
    for (int i = 1; i < count; ++i) weights += ",1";
    return R"({"schema_version": 1, "kernels": [{"name": "decode", "neighbours": {"weights": [)" +
           weights + "]}}]}";
  };
  for (const int former : {9, 13}) {
    const Learned old = ParseLearned(text(former)).value();
    EXPECT_FALSE(old.kernels.at(0).neighbours.known);
    EXPECT_EQ(old.kernels.at(0).neighbours.weights[0], 0);
  }
  const Learned now = ParseLearned(text(10)).value();
  EXPECT_TRUE(now.kernels.at(0).neighbours.known);
  EXPECT_EQ(now.kernels.at(0).neighbours.weights[9], 1);
  EXPECT_THAT(ParseLearned(text(12)).status().message(), HasSubstr("has 12 numbers"));
}

// Two kernels, three numbers of their workers, and two pairs.
Learned WithCoResident() {
  Learned learned;
  co_resident::State& state = learned.co_resident;
  state.kernels.resize(2);
  for (co_resident::KernelFeatures& kernel : state.kernels) {
    kernel.values.fill(0.25);
    kernel.workers_per_sm_max = 4;
  }
  state.workers = {{0, 1}, {0, 3}, {1, 4}};
  state.pairs = {{0, 2, 0.5}, {2, 1, -0.25}};
  state.error = 0.1;
  state.new_kernel_error = 0.3;
  return learned;
}

TEST(LearnedTest, PairsOnTheSameSmsAreReadBack) {
  const std::string text = FormatLearned(WithCoResident());
  const Learned read = ParseLearned(text).value();
  EXPECT_EQ(FormatLearned(read), text);
  EXPECT_EQ(read.co_resident.kernels.at(1).values.back(), 0.25);
  EXPECT_EQ(read.co_resident.workers.at(1).per_sm, 3);
  EXPECT_EQ(read.co_resident.pairs.at(1).timed, 2);
  EXPECT_EQ(read.co_resident.pairs.at(1).weight, -0.25);
  EXPECT_EQ(read.co_resident.new_kernel_error, 0.3);
  // Nothing known takes no text.
  EXPECT_THAT(FormatLearned(Learned()), Not(HasSubstr("co_resident")));
}

TEST(LearnedTest, PairsThatPointNowhereAreRefused) {
  const auto refusal = [](auto change) {
    Learned learned = WithCoResident();
    change(learned.co_resident);
    return std::string(ParseLearned(FormatLearned(learned)).status().message());
  };
  using co_resident::State;
  EXPECT_THAT(refusal([](State& state) { state.pairs[1].neighbour = 3; }),
              HasSubstr("'co_resident.pairs' has in row 1 workers that"));
  EXPECT_THAT(refusal([](State& state) { state.workers[2].kernel = 2; }),
              HasSubstr("'co_resident.workers' has in row 2 a kernel that"));
  EXPECT_THAT(refusal([](State& state) { state.workers[0].per_sm = 5; }),
              HasSubstr("'co_resident.workers' has in row 0 more or fewer workers"));
  EXPECT_THAT(refusal([](State& state) { state.workers[0].per_sm = 0; }),
              HasSubstr("'co_resident.workers' has in row 0 more or fewer workers"));
  EXPECT_THAT(refusal([](State& state) { state.kernels[0].values.back() = 0; }),
              HasSubstr("'co_resident.kernels' has in row 0 a kernel without"));
  EXPECT_THAT(refusal([](State& state) { state.kernels[0].values[3] = 101; }),
              HasSubstr("'co_resident.kernels[0].features[3]' is 101"));
  EXPECT_THAT(refusal([](State& state) { state.pairs[0].weight = 1e7; }),
              HasSubstr("'co_resident.pairs[2]' is 10000000"));
  EXPECT_THAT(
      ParseLearned(R"({"schema_version": 1, "co_resident": {"pairs": [0, 1]}})").status().message(),
      HasSubstr("'co_resident.pairs' has 2 numbers, and its rows have 3"));
  EXPECT_THAT(
      ParseLearned(R"({"schema_version": 1, "co_resident": {"kernels": [{"features": [0.5]}]}})")
          .status()
          .message(),
      HasSubstr("has 1 numbers, and its rows have 14"));
}

LibraryClass Products() {
  LibraryClass one;
  one.call_class = 5;  // half precision, aligned
  one.method = LibraryMethod::kNeighbours;
  one.error = 0.1;
  one.most_ratio = 2;
  LibraryRow row;
  row.call.operation = core::LibraryOperation::kMatmul;
  row.call.type = core::DataType::kBfloat16;
  row.call.transpose_b = true;
  row.call.batch = 3;
  row.call.m = row.call.n = row.call.k = 512;
  row.value = 1.25;
  one.rows.assign(2, row);
  return one;
}

LibraryClass Convolutions() {
  LibraryClass one;
  one.call_class = 9;
  one.method = LibraryMethod::kLine;
  one.weights.assign(37, 0.5);
  LibraryRow row;
  row.call.operation = core::LibraryOperation::kConvolution;
  row.call.type = core::DataType::kFloat16;
  row.call.channels_last = true;
  row.call.batch = 128;
  row.call.channels = row.call.filters = 64;
  row.call.height = row.call.width = 56;
  row.call.filter_height = row.call.filter_width = 3;
  row.call.padding = 1;
  row.value = -0.5;
  one.rows.assign(1, row);
  return one;
}

TEST(LearnedTest, LibraryCallsAreReadBack) {
  Learned learned;
  learned.library.classes = {Products(), Convolutions()};
  const std::string text = FormatLearned(learned);
  EXPECT_THAT(text, HasSubstr(R"("rows":"1250,18,3,512,512,512;1250,18,3,512,512,512;")"));
  const Learned read = ParseLearned(text).value();
  EXPECT_EQ(FormatLearned(read), text);
  const LibraryRow& product = read.library.classes.at(0).rows.at(1);
  EXPECT_EQ(product.value, 1.25);
  EXPECT_TRUE(product.call.transpose_b);
  EXPECT_EQ(product.call.type, core::DataType::kBfloat16);
  const LibraryRow& convolution = read.library.classes.at(1).rows.at(0);
  EXPECT_EQ(convolution.call.padding, 1);
  EXPECT_EQ(convolution.call.operation, core::LibraryOperation::kConvolution);
  EXPECT_TRUE(convolution.call.channels_last);
}

std::string WithClass(const std::string& fields) {
  return R"({"schema_version":1,"library":[{"class":5,"method":"neighbours",)" + fields + "}]}";
}

TEST(LearnedTest, BadLibraryCallsAreRefused) {
  EXPECT_TRUE(ParseLearned(WithClass(R"("rows":"1,1,1,8,8,8;")")).ok());
  for (const char* rows : {"1,1,1,8,8,8", "1,1,1,8,8;", "1,1,1,8,8,8,8;", "1,3,1,8,8,8;",
                           "1,192,1,8,8,8;", "1,1,1,-8,8,8;", "1,1,1,8,8,1073741825;",
                           "64001,1,1,8,8,8;", "1,1,1,8,8,99999999999999999999;", "a"}) {
    EXPECT_THAT(ParseLearned(WithClass(std::string(R"("rows":")") + rows + '"')).status().message(),
                HasSubstr("bad row"))
        << rows;
  }
  std::string many;
  for (int i = 0; i < 1025; ++i) many += "1,1,1,8,8,8;";
  EXPECT_THAT(ParseLearned(WithClass(R"("rows":")" + many + '"')).status().message(),
              HasSubstr("more than 1024 rows"));
  EXPECT_THAT(ParseLearned(WithClass(R"("weights":[1],"rows":"")")).status().message(),
              HasSubstr("the method needs 0"));
  EXPECT_THAT(ParseLearned(R"({"schema_version":1,"library":[{"rows":"1,1,1,8,8,8,1,1,1,1,1,1,1;",)"
                           R"("class":5,"method":"neighbours"}]})")
                  .status()
                  .message(),
              HasSubstr("stands behind 'rows'"));
  EXPECT_THAT(ParseLearned(R"({"schema_version":1,"library":[{"class":5}]})").status().message(),
              HasSubstr("needs a 'class' and a 'method'"));
}

}  // namespace
}  // namespace gpushare::models
