#include "benchmarks/kernels/compute/md5_reference.h"

#include <cmath>

namespace gpushare::kernels {
namespace {

constexpr uint32_t kSteps = 64;
constexpr uint32_t kShifts[4][4] = {
    {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

// floor(2^32 abs(sin(i + 1))), as RFC 1321 defines them.
std::array<uint32_t, kSteps> SineTable() {
  std::array<uint32_t, kSteps> table = {};
  for (uint32_t i = 0; i < kSteps; ++i) {
    table[i] = static_cast<uint32_t>(std::floor(std::abs(std::sin(i + 1.0)) * 4294967296.0));
  }
  return table;
}

uint32_t Mix(uint32_t round, uint32_t x, uint32_t y, uint32_t z) {
  switch (round) {
    case 0:
      return (x & y) | (~x & z);
    case 1:
      return (x & z) | (y & ~z);
    case 2:
      return x ^ y ^ z;
    default:
      return y ^ (x | ~z);
  }
}

uint32_t WordOf(uint32_t round, uint32_t i) {
  constexpr uint32_t kFactor[4] = {1, 5, 3, 7};
  constexpr uint32_t kOffset[4] = {0, 1, 5, 0};
  return (kFactor[round] * i + kOffset[round]) % 16;
}

}  // namespace

std::array<uint32_t, 4> Md5Of16Bytes(const std::array<uint32_t, 4>& message) {
  static const std::array<uint32_t, kSteps> kSines = SineTable();
  uint32_t words[16] = {message[0], message[1], message[2], message[3], 0x80};
  words[14] = 128;  // length in bits
  const std::array<uint32_t, 4> start = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476};
  uint32_t a = start[0];
  uint32_t b = start[1];
  uint32_t c = start[2];
  uint32_t d = start[3];
  for (uint32_t i = 0; i < kSteps; ++i) {
    const uint32_t round = i / 16;
    const uint32_t sum = a + Mix(round, b, c, d) + words[WordOf(round, i)] + kSines[i];
    const uint32_t shift = kShifts[round][i % 4];
    a = d;
    d = c;
    c = b;
    b += (sum << shift) | (sum >> (32 - shift));
  }
  return {start[0] + a, start[1] + b, start[2] + c, start[3] + d};
}

}  // namespace gpushare::kernels
