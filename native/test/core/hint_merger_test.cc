#include "core/hint_merger.h"

#include <gtest/gtest.h>

#include <random>

#include "support/merge_laws.h"
#include "support/seed.h"

namespace numalign {
namespace {

HintFamily list_of(int nodes, HintList list) { return {nodes, false, false, std::move(list)}; }

MergedHint merge(std::vector<HintFamily> families, TopologyPolicy policy = TopologyPolicy::kBestEffort) {
  return merge_hints(families, {.nodes = families[0].nodes, .policy = policy, .distances = {}});
}

ListedHint preferred(uint64_t mask) { return {NodeMask(mask), true}; }
ListedHint other(uint64_t mask) { return {NodeMask(mask), false}; }

// Nodes with these amounts free of an equal total, and a request.
HintFamily linear(std::vector<uint64_t> free, uint64_t total, uint64_t request) {
  LinearHints hints;
  int n = static_cast<int>(free.size());
  hints.domain = NodeMask(all_nodes(n));
  hints.narrowest = static_cast<int>((request + total - 1) / total);
  hints.needs.push_back({request, std::move(free)});
  return {n, false, false, hints};
}

TEST(HintMerger, IsTheWalkedProductOnSmallMachines) {
  std::mt19937 engine(test::seed());
  auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(engine); };
  for (int i = 0; i < 3000; i++) ASSERT_EQ(test::broken_merge_law(between, true), "") << "merge " << i;
}

TEST(HintMerger, SearchesWhatItEnumerates) {
  std::mt19937 engine(test::seed());
  auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(engine); };
  for (int i = 0; i < 3000; i++) ASSERT_EQ(test::broken_merge_law(between, false), "") << "merge " << i;
}

TEST(HintMerger, PrefersTheNarrowestMaskThatAllPrefer) {
  MergedHint merged =
      merge({list_of(2, {preferred(1), preferred(2), other(3)}), list_of(2, {preferred(2), other(3)})});
  EXPECT_EQ(merged, (MergedHint{false, NodeMask(2), true, true, true}));
}

TEST(HintMerger, AdmitsByPolicyWhenNothingIsPreferredByAll) {
  std::vector<HintFamily> families{list_of(2, {preferred(1), other(3)}),
                                   list_of(2, {preferred(2), other(3)})};
  EXPECT_EQ(merge(families), (MergedHint{false, NodeMask(1), false, true, true}));
  EXPECT_FALSE(merge(families, TopologyPolicy::kRestricted).admitted);
  EXPECT_EQ(merge(families, TopologyPolicy::kSingleNumaNode),
            (MergedHint{true, NodeMask(), false, false, true}));
  EXPECT_EQ(merge(families, TopologyPolicy::kNone), (MergedHint{true, NodeMask(), false, true, true}));
}

TEST(HintMerger, MergesSixteenNodesByEnumeration) {
  std::vector<uint64_t> cpus(16, 0), memory(16, 0);
  for (int node = 0; node < 16; node++) {
    cpus[node] = static_cast<uint64_t>(node % 5);
    memory[node] = static_cast<uint64_t>(16 - node);
  }
  std::vector<HintFamily> families{linear(cpus, 8, 24), linear(memory, 16, 90)};
  MergeOptions options{.nodes = 16, .distances = {}};
  MergedHint enumerated = merge_hints(families, options);
  options.enumerated = 0;
  options.budget = 100'000'000;
  EXPECT_EQ(merge_hints(families, options), enumerated);
  EXPECT_TRUE(enumerated.exact);
}

TEST(HintMerger, AnswersExactlyOnSixtyFourUnevenNodes) {
  std::mt19937 engine(test::seed());
  auto between = [&](uint64_t low, uint64_t high) {
    return std::uniform_int_distribution<uint64_t>(low, high)(engine);
  };
  for (int i = 0; i < 50; i++) {
    std::vector<uint64_t> cpus, memory;
    for (int node = 0; node < 64; node++) {
      cpus.push_back(between(0, 8));
      memory.push_back(between(0, uint64_t{16} << 30));
    }
    uint64_t nodes = between(1, 40);
    std::vector<HintFamily> families{linear(cpus, 8, nodes * 3),
                                     linear(memory, uint64_t{16} << 30, nodes * (6ull << 30))};
    MergedHint merged = merge_hints(families, {.nodes = 64, .distances = {}});
    EXPECT_TRUE(merged.exact) << "request for about " << nodes << " nodes";
    EXPECT_FALSE(merged.mask.empty());
  }
}

TEST(HintMerger, SaysWhenItsBudgetRanOut) {
  std::vector<uint64_t> cpus(64, 1);
  MergeOptions options{.nodes = 64, .distances = {}, .budget = 3};
  std::vector<HintFamily> families{linear(cpus, 1, 20), linear(std::vector<uint64_t>(64, 7), 7, 7 * 20)};
  MergedHint merged = merge_hints(families, options);
  EXPECT_FALSE(merged.exact);
  EXPECT_FALSE(merged.mask.empty());
}

TEST(HintFamily, RefusesWordsThatAreNoFamily) {
  HintFamily good = list_of(3, {preferred(1), other(7)});
  std::vector<uint32_t> words = good.to_words();
  EXPECT_EQ(HintFamily::from_words(words), good);
  EXPECT_FALSE(HintFamily::from_words({}));
  for (size_t length = 0; length < words.size(); length++) {
    EXPECT_FALSE(HintFamily::from_words(std::span(words).first(length))) << length;
  }
  auto with = [&](size_t at, uint32_t value) {
    std::vector<uint32_t> changed = words;
    changed[at] = value;
    return HintFamily::from_words(changed);
  };
  EXPECT_FALSE(with(0, 3));       // no such form
  EXPECT_FALSE(with(1, 0));       // no nodes
  EXPECT_FALSE(with(1, 65));      // too many
  EXPECT_FALSE(with(2, 3));       // another count
  EXPECT_FALSE(with(3, 0));       // an empty mask
  EXPECT_FALSE(with(3, 1 << 3));  // a node beyond
}

}  // namespace
}  // namespace numalign
