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
  hints.needs.push_back({request, SmallWords(free)});
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

// CPUs on the first nodes, memory of uneven amounts on all; some nodes hold memory already.
std::vector<HintFamily> cpus_and_memory(std::mt19937& engine, int nodes, int with_cpus, int most, int types) {
  auto between = [&](uint64_t low, uint64_t high) {
    return std::uniform_int_distribution<uint64_t>(low, high)(engine);
  };
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  uint64_t size = between(1, static_cast<uint64_t>(most));
  std::vector<uint64_t> cpus(static_cast<size_t>(nodes));
  for (int node = 0; node < with_cpus; node++) cpus[static_cast<size_t>(node)] = between(0, 8);
  MemoryHintsRequest memory{nodes, {}, std::vector<NodeMask>(static_cast<size_t>(nodes)), {}, {}};
  for (int i = 0; i < types; i++) {
    MemoryType& type = memory.types.emplace_back();
    type.request = size * 6 * kGiB;
    for (int node = 0; node < nodes; node++) {
      type.allocatable.push_back(16 * kGiB);
      type.free.push_back(between(0, 16 * kGiB));
    }
  }
  for (int i = 0; i < 4; i++) {
    int node = static_cast<int>(between(0, static_cast<uint64_t>(nodes) - 1));
    memory.group[static_cast<size_t>(node)] = NodeMask(uint64_t{1} << node);
  }
  std::vector<HintFamily> families{linear(cpus, 8, std::min<uint64_t>(size * 3, 4))};
  for (int i = 0; i < types; i++) families.push_back(memory_hints(memory));
  return families;
}

TEST(HintMerger, AnswersExactlyForCpusAndMemoryOnLargeMachines) {
  std::mt19937 engine(test::seed());
  for (int i = 0; i < 50; i++) {
    for (int types : {1, 2}) {
      MergedHint few = merge(cpus_and_memory(engine, 34, 2, 2, types));
      EXPECT_TRUE(few.exact) << "2 of 34 nodes have CPUs";
      MergedHint all = merge(cpus_and_memory(engine, 64, 64, 20, types));
      EXPECT_TRUE(all.exact) << "64 nodes";
      EXPECT_FALSE(few.mask.empty() || all.mask.empty());
    }
  }
}

TEST(HintMerger, IsNotExactWithAnApproximateFamily) {
  HintFamily nic = device_hints({17, 1, {{NodeMask(0b11), true, false}}});
  ASSERT_TRUE(nic.approximate);
  for (TopologyPolicy policy : {TopologyPolicy::kBestEffort, TopologyPolicy::kSingleNumaNode}) {
    EXPECT_FALSE(merge({nic, linear(std::vector<uint64_t>(17, 4), 4, 2)}, policy).exact);
  }
}

TEST(HintMerger, TakesListedMasksBesideTheLinearPart) {
  HintFamily family = linear(std::vector<uint64_t>(20, 4), 4, 2);
  std::get<LinearHints>(family.masks).listed = {{NodeMask(0b1), false}, {NodeMask(uint64_t{3} << 18), true}};
  EXPECT_EQ(merge({family}).mask, NodeMask(0b10)) << "node 0 is listed as not preferred";
  // A list that has the pair only.
  EXPECT_EQ(merge({family, list_of(20, {preferred(uint64_t{3} << 18)})}),
            (MergedHint{false, NodeMask(uint64_t{3} << 18), true, true, true}));
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

TEST(HintFamily, IsReadFromDamagedWordsOrRefused) {
  std::mt19937 engine(test::seed());
  auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(engine); };
  for (int i = 0; i < 1000; i++) ASSERT_EQ(test::broken_words_law(between), "") << "family " << i;
}

TEST(HintFamily, RefusesWordsThatAreNoLinearHints) {
  HintFamily good = linear({3, 0, 4}, 4, 5);
  LinearHints& hints = std::get<LinearHints>(good.masks);
  hints.must = NodeMask(0b100);
  hints.needs.push_back({1, {0, 1, 1}});
  hints.listed = {{NodeMask(0b001), true}, {NodeMask(0b011), false}};
  good.approximate = true;
  std::vector<uint32_t> words = good.to_words();
  EXPECT_EQ(HintFamily::from_words(words), good);
  for (size_t length = 0; length < words.size(); length++) {
    EXPECT_FALSE(HintFamily::from_words(std::span(words).first(length))) << length;
  }
  auto with = [&](size_t at, uint32_t value) {
    std::vector<uint32_t> changed = words;
    changed[at] = value;
    return HintFamily::from_words(changed);
  };
  EXPECT_FALSE(with(0, words[0] | 1 << 8));       // a linear family has no hint without a mask
  EXPECT_FALSE(with(0, words[0] | 1 << 11));      // no such flag
  EXPECT_FALSE(with(2, 0));                       // no need
  EXPECT_FALSE(with(2, 0xffffffff));              // more needs than there are words
  EXPECT_FALSE(with(3, 3));                       // another number of listed masks
  EXPECT_FALSE(with(4, 0b1000));                  // must: a node beyond
  EXPECT_FALSE(with(6, 0b011));                   // domain: without what must be in it
  EXPECT_FALSE(with(8, 0));                       // narrowest
  EXPECT_FALSE(with(9, 65));                      // packages
  EXPECT_FALSE(with(10, 0));                      // a request for nothing
  EXPECT_FALSE(with(13, 1 << 21));                // an amount of 2^53
  EXPECT_FALSE(with(words.size() - 3, 0b001));    // a mask listed twice
  EXPECT_FALSE(with(words.size() - 2, 1 << 31));  // a node beyond
  LinearHints empty = hints;
  empty.listed.clear();
  empty.needs[0].request = 8;
  EXPECT_FALSE(HintFamily::from_words(HintFamily{3, false, false, empty}.to_words())) << "offers nothing";
}

}  // namespace
}  // namespace numalign
