#include "core/fingerprint.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace numalign {
namespace {

TEST(Fingerprint, DiffersWhereOneBitDoes) {
  for (size_t size : {1u, 7u, 8u, 31u, 32u, 33u, 63u, 64u, 100u}) {
    const std::string text(size, 'x');
    std::set<uint64_t> seen{fingerprint(text)};
    for (size_t i = 0; i < size * 8; i++) {
      std::string changed = text;
      changed[i / 8] = static_cast<char>(changed[i / 8] ^ (1 << (i % 8)));
      EXPECT_TRUE(seen.insert(fingerprint(changed)).second) << size << " bytes, bit " << i;
    }
  }
}

TEST(Fingerprint, DiffersWhereZerosAreMissing) {
  std::set<uint64_t> seen;
  for (size_t size = 0; size < 200; size++)
    EXPECT_TRUE(seen.insert(fingerprint(std::string(size, 0))).second);
}

TEST(Fingerprint, DiffersWhereWordsAreExchanged) {
  std::string text;
  for (int i = 0; i < 128; i++) text += static_cast<char>(i);
  std::set<uint64_t> seen{fingerprint(text)};
  for (size_t i = 0; i < text.size(); i += 8)
    for (size_t j = i + 8; j < text.size(); j += 8) {
      std::string changed = text;
      changed.replace(i, 8, text, j, 8).replace(j, 8, text, i, 8);
      EXPECT_TRUE(seen.insert(fingerprint(changed)).second) << i << " and " << j;
    }
}

}  // namespace
}  // namespace numalign
