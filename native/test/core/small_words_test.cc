#include "core/small_words.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "support/seed.h"

namespace numalign {
namespace {

using Words = std::vector<uint64_t>;

Words all(const SmallWords& words) { return {words.begin(), words.end()}; }

TEST(SmallWords, AreWhatAVectorIsWhicheverWayTheyGrowAndShrink) {
  for (uint32_t round = 0; round < 200; round++) {
    SCOPED_TRACE(test::where(round));
    const test::Between between = test::choices(round);
    SmallWords words;
    Words expected;
    for (int step = 0; step < 40; step++) {
      const size_t size = static_cast<size_t>(between(0, 20));
      switch (between(0, 3)) {
        case 0:
          words = SmallWords(size, 7);
          expected.assign(size, 7);
          break;
        case 1: {
          SmallWords copy = words;
          words = SmallWords();
          words = std::move(copy);
          EXPECT_TRUE(copy.empty());  // NOLINT(bugprone-use-after-move): it says what it is then
          break;
        }
        default:
          words.resize(size);
          expected.resize(size);
      }
      if (!expected.empty()) {
        const size_t at = static_cast<size_t>(between(0, static_cast<int>(expected.size()) - 1));
        words[at] = expected[at] = static_cast<uint64_t>(step) + 1;
        EXPECT_EQ(words.back(), expected.back());
      }
      ASSERT_EQ(all(words), expected);
      EXPECT_EQ(words, SmallWords(std::span<const uint64_t>(expected)));
    }
  }
}

TEST(SmallWords, ACopyIsItsOwn) {
  for (size_t size : {size_t{3}, size_t{30}}) {
    SmallWords words(size, 1);
    SmallWords copy = words;
    copy[0] = 2;
    EXPECT_EQ(words, SmallWords(size, 1));
    EXPECT_NE(copy, words);
  }
}

TEST(SmallWords, GrowWordByWordAcrossTheLimit) {
  SmallWords words;
  std::vector<uint64_t> expected;
  for (uint64_t word = 1; word <= 20; word++) {
    words.push_back(word);
    expected.push_back(word);
    EXPECT_TRUE(std::ranges::equal(words, expected)) << word;
  }
  EXPECT_EQ(words.back(), 20u);
  EXPECT_EQ((SmallWords{1, 2, 3}), SmallWords(std::span(expected).first(3)));
}

}  // namespace
}  // namespace numalign
