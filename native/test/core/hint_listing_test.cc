#include "core/hint_listing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/hint_laws.h"
#include "support/seed.h"

namespace numalign {
namespace {

using test::Between;
using test::offered;
using test::random_mask;

constexpr size_t kAll = size_t{1} << 20;
constexpr uint64_t kNoEnd = UINT64_MAX;

// Some needs, nodes that must be in every mask, and masks that are exceptions.
LinearHints random_linear(const Between& between, int nodes) {
  LinearHints linear;
  linear.domain = NodeMask(random_mask(between, nodes));
  linear.must = NodeMask(between(0, 2) == 0 ? random_mask(between, nodes) & linear.domain.bits() : 0);
  linear.narrowest = between(1, nodes);
  for (int i = between(1, 3); i > 0; i--) {
    Need need{static_cast<uint64_t>(between(1, 12)), {}};
    for (int node = 0; node < nodes; node++) {
      need.free.push_back(linear.domain.contains(node) ? static_cast<uint64_t>(between(0, 5)) : 0);
    }
    linear.needs.push_back(std::move(need));
  }
  for (int i = between(0, 4); i > 0; i--) {
    linear.listed.push_back({NodeMask(random_mask(between, nodes)), between(0, 1) == 1});
  }
  std::ranges::sort(linear.listed, {}, [](const ListedHint& h) { return h.mask.bits(); });
  auto twins = std::ranges::unique(linear.listed, {}, [](const ListedHint& h) { return h.mask.bits(); });
  linear.listed.erase(twins.begin(), twins.end());
  return linear;
}

// By number of nodes, then by node ids, as a list of ids is ordered.
HintList walked(const HintFamily& family) {
  HintList hints;
  for (uint64_t mask : offered(family)) hints.push_back({NodeMask(mask), family.prefers(NodeMask(mask))});
  auto ids = [](const ListedHint& hint) {
    std::vector<int> list;
    for_each_node(hint.mask.bits(), [&](int node) { list.push_back(node); });
    return list;
  };
  std::ranges::sort(hints, [&](const ListedHint& a, const ListedHint& b) {
    return a.mask.size() != b.mask.size() ? a.mask.size() < b.mask.size() : ids(a) < ids(b);
  });
  return hints;
}

TEST(HintListing, HasAllHintsOfAFamilyInOrderInBothForms) {
  std::mt19937 engine(test::seed());
  auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(engine); };
  for (int i = 0; i < 3000; i++) {
    int nodes = between(1, 8);
    LinearHints linear = random_linear(between, nodes);
    for (int enumerated : {0, kEnumeratedNodes}) {
      HintFamily family = family_of(linear, nodes, enumerated);
      HintListing listing = list_hints(family, {}, kAll, kNoEnd);
      ASSERT_EQ(listing.hints, walked(family)) << "family " << i << ", enumerated " << enumerated;
      ASSERT_TRUE(listing.is_whole);
    }
  }
}

TEST(HintListing, GoesOnAfterAnyHint) {
  std::mt19937 engine(test::seed());
  auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(engine); };
  for (int i = 0; i < 1000; i++) {
    int nodes = between(1, 8);
    HintFamily family = family_of(random_linear(between, nodes), nodes, between(0, 1) * kEnumeratedNodes);
    size_t limit = static_cast<size_t>(between(1, 9));
    HintList all;
    for (HintListing page; all.empty() || !page.is_whole;) {
      page = list_hints(family, all.empty() ? NodeMask() : all.back().mask, limit, kNoEnd);
      ASSERT_LE(page.hints.size(), limit);
      ASSERT_TRUE(page.is_whole || page.hints.size() == limit);
      std::ranges::copy(page.hints, std::back_inserter(all));
      if (page.hints.empty()) break;
    }
    ASSERT_EQ(all, walked(family)) << "family " << i;
  }
}

TEST(HintListing, HasAListAsItWasWritten) {
  HintFamily family;
  family.nodes = 4;
  family.masks = HintList{{NodeMask(0b1100), false}, {NodeMask(0b1), true}, {NodeMask(0b1100), true}};
  HintListing listing = list_hints(family, NodeMask(0b1), 1, kNoEnd);
  EXPECT_EQ(listing.hints, std::get<HintList>(family.masks));
  EXPECT_TRUE(listing.is_whole);
}

TEST(HintListing, HasTheFirstHintsOfTheLargestMachineSoon) {
  LinearHints linear;
  linear.domain = NodeMask(all_nodes(64));
  linear.narrowest = 32;
  linear.needs.push_back({32, SmallWords(64, 1)});
  HintListing listing = list_hints(family_of(linear, 64), {}, 100, kStepsToFirst);
  ASSERT_EQ(listing.hints.size(), 100u);
  EXPECT_EQ(listing.hints.front(), (ListedHint{NodeMask(all_nodes(32)), true}));
  EXPECT_FALSE(listing.is_whole);
}

TEST(HintListing, EndsWhereTheStepsAreUsedUp) {
  LinearHints linear;
  linear.domain = NodeMask(all_nodes(64));
  linear.narrowest = 1;
  linear.needs.push_back({32, SmallWords(64, 1)});
  HintListing listing = list_hints(family_of(linear, 64), {}, kAll, 1000);
  EXPECT_LT(listing.hints.size(), 1000u);
  EXPECT_FALSE(listing.is_whole);
}

TEST(HintListing, IsTheSameWithoutWhatIsPreferred) {
  std::mt19937 engine(test::seed());
  auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(engine); };
  for (int i = 0; i < 1000; i++) {
    int nodes = between(1, 8);
    HintFamily family = family_of(random_linear(between, nodes), nodes, between(0, 1) * kEnumeratedNodes);
    std::vector<NodeMask> masks;
    for (int n = between(0, 6); n > 0; n--) masks.emplace_back(random_mask(between, nodes));
    HintList expected = walked(family);
    for (ListedHint& hint : expected) hint.preferred &= std::ranges::find(masks, hint.mask) == masks.end();
    HintFamily plain = without_preferred(family, masks);
    ASSERT_EQ(list_hints(plain, {}, kAll, kNoEnd).hints, expected) << "family " << i;
    std::optional<HintFamily> again = HintFamily::from_words(plain.to_words());
    ASSERT_TRUE(again && *again == plain);
  }
}

}  // namespace
}  // namespace numalign
