// The elimination against a dense solve, a closed form and chains that it must refuse.

#include "src/models/markov/stationary.h"

#include <Eigen/Dense>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace gpushare::models::markov {
namespace {

// Rows that sum to one; about half of the entries are zero, those towards state 0 are not.
std::vector<double> RandomChain(size_t states, std::mt19937_64& random) {
  std::uniform_real_distribution<double> unit(0, 1);
  std::vector<double> chain(states * states);
  for (size_t from = 0; from < states; ++from) {
    double sum = 0;
    for (size_t to = 0; to < states; ++to) {
      double& entry = chain[from * states + to];
      entry = to == 0 || unit(random) < 0.5 ? unit(random) : 0;
      sum += entry;
    }
    for (size_t to = 0; to < states; ++to) chain[from * states + to] /= sum;
  }
  return chain;
}

// pi (P - I) = 0 with the last equation replaced by sum(pi) = 1.
Eigen::VectorXd DenseSolve(const std::vector<double>& chain, size_t states) {
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto size = static_cast<Eigen::Index>(states);
  const Eigen::Map<const Rows> transitions(chain.data(), size, size);
  Eigen::MatrixXd system = transitions.transpose() - Eigen::MatrixXd::Identity(size, size);
  system.row(size - 1).setOnes();
  return system.fullPivLu().solve(Eigen::VectorXd::Unit(size, size - 1));
}

TEST(MarkovStationaryTest, EliminationAgreesWithADenseSolve) {
  std::mt19937_64 random(15);
  for (const size_t states : {size_t{1}, size_t{2}, size_t{3}, size_t{9}, size_t{25}}) {
    for (int repeat = 0; repeat < 8; ++repeat) {
      std::vector<double> chain = RandomChain(states, random);
      const Eigen::VectorXd expected = DenseSolve(chain, states);
      std::vector<double> steady(states);
      ASSERT_TRUE(SolveStationary(chain, steady));
      double sum = 0;
      for (size_t i = 0; i < states; ++i) {
        EXPECT_NEAR(steady[i], expected[static_cast<Eigen::Index>(i)], 1e-12) << states;
        sum += steady[i];
      }
      EXPECT_NEAR(sum, 1, 1e-12);
    }
  }
}

TEST(MarkovStationaryTest, TinyProbabilitiesKeepTheirRelativeAccuracy) {
  for (const double rare : {1e-3, 1e-30, 1e-200}) {
    std::array<double, 4> chain = {1 - rare, rare, 0.25, 0.75};
    std::array<double, 2> steady = {};
    ASSERT_TRUE(SolveStationary(chain, steady));
    EXPECT_NEAR(steady[1] / (rare / (rare + 0.25)), 1, 1e-14) << rare;
  }
}

TEST(MarkovStationaryTest, AStateThatIsNeverLeftIsRefused) {
  std::array<double, 4> chain = {0.5, 0.5, 0, 1};
  std::array<double, 2> steady = {};
  EXPECT_FALSE(SolveStationary(chain, steady));
  std::array<double, 9> unreached = {1, 0, 0, 0, 1, 0, 0.5, 0, 0.5};
  std::array<double, 3> three = {};
  EXPECT_FALSE(SolveStationary(unreached, three)) << "0 / 0 on the way";
}

TEST(MarkovStationaryTest, ANumberThatIsNoneIsRefused) {
  std::array<double, 4> chain = {0.5, std::numeric_limits<double>::quiet_NaN(), 0.5, 0.5};
  std::array<double, 2> steady = {};
  EXPECT_FALSE(SolveStationary(chain, steady));
  std::array<double, 3> wrong_size = {};
  EXPECT_FALSE(SolveStationary(wrong_size, steady));
}

}  // namespace
}  // namespace gpushare::models::markov
