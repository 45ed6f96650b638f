#include "support/hint_laws.h"

#include <gtest/gtest.h>

#include <random>

#include "support/seed.h"

namespace numalign {
namespace {

TEST(HintLaws, HoldForRandomRequests) {
  std::mt19937 engine(test::seed());
  auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(engine); };
  for (int i = 0; i < 3000; i++) ASSERT_EQ(test::broken_hint_law(between), "") << "request " << i;
}

}  // namespace
}  // namespace numalign
