// The seed of the random tests: another one in each run, printed, and repeatable with NUMALIGN_TEST_SEED=n.
// With NUMALIGN_TEST_LONG=1 they go on for longer.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <string_view>

#include "support/random_machine.h"

namespace numalign::test {

inline uint32_t seed() {
  static const uint32_t value = [] {
    const char* given = std::getenv("NUMALIGN_TEST_SEED");
    uint32_t chosen =
        given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : std::random_device()();
    std::cout << "NUMALIGN_TEST_SEED=" << chosen << std::endl;
    return chosen;
  }();
  return value;
}

// How many rounds a long test does: all of them, or a fifth by default.
inline uint32_t rounds(uint32_t all) {
  const char* given = std::getenv("NUMALIGN_TEST_LONG");
  return given && std::string_view(given) == "1" ? all : all / 5;
}

// Choices of round `round`, so that one failing round can be repeated alone.
inline Between choices(uint32_t round) {
  return [engine = std::mt19937(seed() + round * 2654435761u)](int low, int high) mutable {
    return std::uniform_int_distribution<int>(low, high)(engine);
  };
}

inline std::string where(uint32_t round) {
  return "NUMALIGN_TEST_SEED=" + std::to_string(seed()) + ", round " + std::to_string(round);
}

}  // namespace numalign::test
