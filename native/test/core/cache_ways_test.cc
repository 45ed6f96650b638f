#include "core/cache_ways.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "support/seed.h"

namespace numalign {
namespace {

bool is_run(WayMask mask) { return mask != 0 && std::has_single_bit((mask >> std::countr_zero(mask)) + 1u); }

// What must hold of any answer.
void expect_lawful(const CacheWaysQuestion& question, const CacheWays& answer) {
  ASSERT_EQ(answer.masks.size(), question.requests.size());
  WayMask taken = 0;
  for (size_t i = 0; i < answer.masks.size(); i++) {
    WayMask mask = answer.masks[i];
    if (mask == 0) continue;
    EXPECT_TRUE(is_run(mask));
    EXPECT_EQ(std::popcount(mask), std::max(question.requests[i].ways, question.min_bits));
    EXPECT_EQ(mask & (taken | question.foreign | ~question.all), 0u);
    taken |= mask;
  }
  if (answer.rest == 0) {
    EXPECT_EQ(taken, 0u);
    return;
  }
  EXPECT_TRUE(is_run(answer.rest));
  EXPECT_EQ(answer.rest & taken, 0u);
  EXPECT_GE(std::popcount(answer.rest & question.base), question.min_bits);
}

// Whether any placement of all requests leaves the default group enough, by trying every one.
bool is_possible(const CacheWaysQuestion& question, size_t at, WayMask taken) {
  if (at == question.requests.size()) {
    return std::popcount(widest_run(question.base & ~taken)) >= question.min_bits;
  }
  int ways = std::max(question.requests[at].ways, question.min_bits);
  for (int first = 0; first + ways <= 32; first++) {
    WayMask mask = static_cast<WayMask>(((uint64_t{1} << ways) - 1) << first);
    if ((mask & (taken | question.foreign | ~question.all)) != 0) continue;
    if (is_possible(question, at + 1, taken | mask)) return true;
  }
  return false;
}

TEST(CacheWays, AreFoundWhereverThereAreAny) {
  for (int width = 1; width <= 6; width++) {
    WayMask all = (1u << width) - 1;
    for (WayMask foreign = 0; foreign <= all; foreign++) {
      for (WayMask base = 1; base <= all; base++) {
        if (!is_run(base)) continue;
        for (int min_bits = 1; min_bits <= 2; min_bits++) {
          for (int a = 1; a <= 3; a++) {
            for (int b = 0; b <= 3; b++) {
              CacheWaysQuestion question{all, min_bits, 0, foreign, base, 0, {{a, 0}}};
              if (b > 0) question.requests.push_back({b, 0});
              CacheWays answer = cache_ways(question);
              expect_lawful(question, answer);
              bool found = std::ranges::find(answer.masks, 0u) == answer.masks.end();
              ASSERT_EQ(found, is_possible(question, 0, 0))
                  << all << ' ' << foreign << ' ' << base << ' ' << min_bits << ' ' << a << ' ' << b;
            }
          }
        }
      }
    }
  }
}

TEST(CacheWays, AreKeptWhateverElseIsAskedFor) {
  for (uint32_t round = 0; round < test::rounds(5000); round++) {
    test::Between between = test::choices(round);
    WayMask all = (1u << between(6, 20)) - 1;
    CacheWaysQuestion question{all, between(1, 2), 0, 0, all, 0, {}};
    if (between(0, 2) == 0) question.shareable = static_cast<WayMask>(between(0, static_cast<int>(all)));
    for (int i = between(1, 4); i > 0; i--) question.requests.push_back({between(1, 5), 0});
    CacheWays before = cache_ways(question);
    expect_lawful(question, before);
    // One ends, another comes.
    size_t ended = static_cast<size_t>(between(0, static_cast<int>(question.requests.size()) - 1));
    question.base = before.rest;
    question.released = before.masks[ended];
    for (size_t i = 0; i < before.masks.size(); i++) question.requests[i].current = before.masks[i];
    question.requests.erase(question.requests.begin() + static_cast<ptrdiff_t>(ended));
    before.masks.erase(before.masks.begin() + static_cast<ptrdiff_t>(ended));
    question.requests.push_back({between(1, 5), 0});
    CacheWays after = cache_ways(question);
    expect_lawful(question, after);
    for (size_t i = 0; i < before.masks.size(); i++) {
      if (before.masks[i] == 0) continue;
      ASSERT_EQ(after.masks[i], before.masks[i]) << test::where(round);
    }
  }
}

TEST(CacheWays, GoToTheUpperEndAndLeaveTheRestWhole) {
  CacheWays answer = cache_ways({0xfffff, 1, 0, 0, 0xfffff, 0, {{4, 0}, {2, 0}}});
  EXPECT_EQ(answer.masks, (std::vector<WayMask>{0xf0000, 0x0c000}));
  EXPECT_EQ(answer.rest, 0x03fffu);
  EXPECT_EQ(answer.most, 13);
}

TEST(CacheWays, FillTheHoleThatAGrantLeaves) {
  CacheWays answer = cache_ways({0xfffff, 1, 0, 0, 0x03fff, 0xf0000, {{2, 0x0c000}, {3, 0}}});
  EXPECT_EQ(answer.masks, (std::vector<WayMask>{0x0c000, 0xe0000}));
  EXPECT_EQ(answer.rest, 0x03fffu);
}

TEST(CacheWays, GoBackToTheDefaultGroupWhereTheyAdjoinIt) {
  EXPECT_EQ(cache_ways({0xff, 1, 0, 0, 0x0f, 0x30, {{2, 0xc0}}}).rest, 0x3fu);
}

TEST(CacheWays, AreSharedWithOtherHardwareOnlyWhereThereAreNoOthers) {
  EXPECT_EQ(cache_ways({0xff, 1, 0xc0, 0, 0xff, 0, {{2, 0}}}).masks[0], 0x03u);
  EXPECT_EQ(cache_ways({0xff, 1, 0xf0, 0xf, 0xff, 0, {{2, 0}}}).masks[0], 0xc0u);
}

TEST(CacheWays, AreAsManyAsAMaskMustHave) {
  EXPECT_EQ(cache_ways({0xff, 2, 0, 0, 0xff, 0, {{1, 0}}}).masks[0], 0xc0u);
}

TEST(CacheWays, AreNoneWhereTheDefaultGroupWouldHaveTooFew) {
  CacheWays answer = cache_ways({0xff, 2, 0, 0, 0xff, 0, {{7, 0}, {6, 0}}});
  EXPECT_EQ(answer.masks, (std::vector<WayMask>{0, 0xfc}));
  EXPECT_EQ(answer.most, 0);
}

TEST(CacheWays, AreAnewWhereOthersTookThem) {
  CacheWays answer = cache_ways({0xff, 1, 0, 0x40, 0x3f, 0, {{2, 0xc0}}});
  EXPECT_EQ(answer.masks[0], 0x30u);
  EXPECT_EQ(answer.rest, 0x0fu);
}

TEST(CacheWays, HaveThirtyTwoBits) {
  CacheWays answer = cache_ways({0xffffffff, 1, 0, 0, 0xffffffff, 0, {{31, 0}}});
  EXPECT_EQ(answer.masks[0], 0xfffffffeu);
  EXPECT_EQ(answer.rest, 1u);
  EXPECT_EQ(cache_ways({0xffffffff, 1, 0, 0, 0xffffffff, 0, {}}).rest, 0xffffffffu);
}

TEST(CacheWays, OfTheWidestRunAreTheLowest) {
  EXPECT_EQ(widest_run(0b1101'1011), 0b11u);
  EXPECT_EQ(widest_run(0b1110'1011), 0b1110'0000u);
  EXPECT_EQ(widest_run(0), 0u);
}

}  // namespace
}  // namespace numalign
