#include "core/wire.h"

#include <gtest/gtest.h>

#include <string>

#include "core/merge_question.h"

namespace numalign {
namespace {

// What lib/base/wire.ts would write.
struct Written {
  std::vector<uint32_t> words;
  std::vector<double> amounts;

  Written& word(uint32_t word) {
    words.push_back(word);
    return *this;
  }
  Written& list(const std::vector<uint32_t>& list) {
    words.push_back(static_cast<uint32_t>(list.size()));
    words.insert(words.end(), list.begin(), list.end());
    return *this;
  }
  Written& many(const std::vector<double>& list) {
    words.push_back(static_cast<uint32_t>(list.size()));
    amounts.insert(amounts.end(), list.begin(), list.end());
    return *this;
  }
  WireReader reader() const { return {words, amounts}; }
};

// Two nodes of 8, of which 3 and 4 are free; 5 are wanted.
Written memory() {
  return Written().word(1).many({5, 3, 4, 8, 8}).many({}).list({0, 0, 0, 0}).list({0, 0}).list({0, 0});
}

Written devices() { return Written().word(1).word(1).list({1, 0, 1, 2, 0, 3}); }

std::string failure_of(const WireReader& wire) { return wire.failure() == nullptr ? "" : wire.failure(); }

std::string memory_failure(const Written& written) {
  WireReader wire = written.reader();
  read_memory_hints(wire, 2);
  return failure_of(wire);
}

TEST(WireReader, ReadsThePartsInTurn) {
  const Written written =
      Written().word(7).word(UINT32_MAX).list({1, 2, 3}).list({5, 1}).many({1, 2}).word(1);
  WireReader wire = written.reader();
  EXPECT_EQ(wire.word(), 7u);
  EXPECT_EQ(wire.number(), -1);
  EXPECT_EQ(wire.list().size(), 3u);
  EXPECT_EQ(wire.cpus(), CpuSet({0, 2, 32}));
  EXPECT_EQ(wire.amounts()[1], 2);
  EXPECT_TRUE(wire.flag());
  EXPECT_EQ(wire.failure(), nullptr);
}

TEST(WireReader, ReadsNothingAfterItsFirstFailure) {
  const Written written = Written().word(9).list({1}).word(1).list({});
  WireReader wire = written.reader();
  EXPECT_TRUE(wire.list().empty()) << "nine words of three";
  EXPECT_EQ(failure_of(wire), "the wire has fewer words");
  EXPECT_EQ(wire.word(), 0u);
  wire.require(false, "something else");
  EXPECT_EQ(failure_of(wire), "the wire has fewer words");
}

TEST(WireReader, RefusesSetsAndMasksBeyondTheirMaximum) {
  const Written sets = Written().list(std::vector<uint32_t>(CpuSet::kMaxId / 32 + 2));
  WireReader wire = sets.reader();
  EXPECT_TRUE(wire.cpus().empty());
  EXPECT_EQ(failure_of(wire), "a set has ids above its maximum");
  const Written masks = Written().list({4, 0}).list({1, 0, 0}).word(65);
  EXPECT_EQ(masks.reader().mask(3), NodeMask(4));
  for (int nodes : {2, 3}) {
    WireReader again = masks.reader();
    again.mask(nodes);
    again.mask(nodes);
    EXPECT_NE(again.failure(), nullptr);
  }
  WireReader count({masks.words.data() + 7, 1}, {});
  EXPECT_EQ(count.node_count(), 1);
  EXPECT_EQ(failure_of(count), "hints are for 1 to 64 NUMA nodes");
}

TEST(WireReader, ReadsAndRefusesRequestsForMemory) {
  EXPECT_EQ(memory_failure(memory()), "");
  Written wrong = memory();
  wrong.amounts[0] = 0;
  EXPECT_EQ(memory_failure(wrong), "a request for memory is at least one byte");
  wrong.amounts[0] = 2.5;
  EXPECT_EQ(memory_failure(wrong), "amounts are integers from 0 to 2^53 - 1");
  wrong = memory();
  wrong.amounts[3] = wrong.amounts[4] = 4503599627370496;  // 2^52
  EXPECT_EQ(memory_failure(wrong), "the amounts of all nodes together are at most 2^53 - 1");
  wrong = memory();
  wrong.words[0] = 2;
  EXPECT_EQ(memory_failure(wrong), "at least one type, and every array as long as nodes and types need it");
}

TEST(WireReader, ReadsNoMasksAsEmptyOnes) {
  const Written written = Written().word(1).many({5, 3, 4, 8, 8}).many({}).list({}).list({}).list({});
  WireReader wire = written.reader();
  const MemoryHintsRequest request = read_memory_hints(wire, 2);
  EXPECT_EQ(failure_of(wire), "");
  EXPECT_EQ(request.group, std::vector<NodeMask>(2));
  EXPECT_TRUE(request.must.empty() && request.closed.empty());
}

TEST(WireReader, ReadsAndRefusesRequestsForDevices) {
  const Written right = devices();
  WireReader wire = right.reader();
  const DeviceHintsRequest request = read_device_hints(wire, 2);
  ASSERT_EQ(request.devices.size(), 2u);
  EXPECT_TRUE(request.only_near_devices);
  EXPECT_FALSE(request.devices[0].reusable);
  EXPECT_TRUE(request.devices[1].reusable);
  Written wrong = devices();
  wrong.words.back() = 4;
  WireReader flags = wrong.reader();
  read_device_hints(flags, 2);
  EXPECT_EQ(failure_of(flags), "a device is available (1), reusable (2), both or neither");
}

TEST(WireReader, ReadsTheOptionsOfABestFit) {
  // Of the flags all but those for most near CPUs, L3 groups, and the rest in these.
  const Written written =
      Written().list({15}).word(2).list({1}).word(3).word(2).word(0b1011011110).list({4, 7});
  WireReader wire = written.reader();
  const BestFitQuestion question = read_best_fit(wire);
  EXPECT_EQ(failure_of(wire), "");
  EXPECT_EQ(question.available, CpuSet({0, 1, 2, 3}));
  EXPECT_EQ(question.count, 2);
  const BestFitOptions& options = question.options;
  EXPECT_TRUE(options.spread && options.distribute_across_numa && options.whole_cores);
  EXPECT_TRUE(options.keep_package);
  EXPECT_FALSE(options.align_by_l3 || options.any_rest_in_l3);
  EXPECT_EQ(options.cpu_group_size, 2);
  EXPECT_EQ(question.near.near, CpuSet({0}));
  EXPECT_TRUE(question.near.leaves_rest && !question.near.only_most);
  EXPECT_TRUE(question.near.keeps_nodes);
  EXPECT_EQ(question.near.nodes, 3);
  EXPECT_TRUE(question.near.fewest_l3);
  EXPECT_EQ(options.later, (std::vector<CoreClaim>{{2, false}, {3, true}}));
  const Written wrong = Written().list({15}).word(2).list({1}).word(0).word(1).word(1 << 10).list({});
  WireReader other = wrong.reader();
  read_best_fit(other);
  EXPECT_EQ(failure_of(other), "unknown flags of a fit");
}

TEST(MergeQuestion, AnswersItsQuestionsAndMergesThemWithFamilies) {
  const HintFamily given(2, false, false, HintList{{NodeMask(2), true}});
  const std::vector<uint32_t> words = given.to_words();
  Written written = Written().word(2).word(1).list({}).word(0).word(3).word(0).list(words).word(2);
  Written parts = memory();
  written.words.insert(written.words.end(), parts.words.begin(), parts.words.end());
  written.amounts = parts.amounts;
  parts = devices();
  written.word(3);
  written.words.insert(written.words.end(), parts.words.begin(), parts.words.end());

  WireReader wire = written.reader();
  std::vector<uint32_t> answer;
  answer_merge(wire, nullptr, WireWriter(answer));
  ASSERT_EQ(failure_of(wire), "");

  parts = memory();
  WireReader alone = parts.reader();
  const HintFamily of_memory = memory_hints(read_memory_hints(alone, 2));
  parts = devices();
  WireReader other = parts.reader();
  const HintFamily of_devices = device_hints(read_device_hints(other, 2));
  const std::vector<HintFamily> families{given, of_memory, of_devices};
  const MergedHint merged = merge_hints(families, {.nodes = 2, .distances = {}});

  std::vector<uint32_t> expected;
  WireWriter writer(expected);
  writer.mask(merged.mask);
  for (bool flag : {merged.any, merged.preferred, merged.admitted, merged.exact}) writer.word(flag ? 1 : 0);
  for (int count = 0; count < 3; count++) writer.word(0);
  writer.family(of_memory);
  writer.family(of_devices);
  EXPECT_EQ(answer, expected);
}

TEST(MergeQuestion, CountsAQuestionAboutMemoryForEachOfItsTypes) {
  Written parts = memory();
  parts.words[0] = 2;
  parts.amounts.insert(parts.amounts.end(), {6, 3, 4, 8, 8});
  parts.words[1] = 10;
  for (uint32_t resources : {1, 2, 3}) {
    Written written = Written().word(2).word(1).list({}).word(0).word(resources).word(2);
    written.words.insert(written.words.end(), parts.words.begin(), parts.words.end());
    written.amounts = parts.amounts;
    WireReader wire = written.reader();
    std::vector<uint32_t> answer;
    answer_merge(wire, nullptr, WireWriter(answer));
    EXPECT_EQ(wire.failure() == nullptr, resources == 2) << resources;
  }
}

TEST(MergeQuestion, RefusesAnotherNumberOfNodesAndUnknownKinds) {
  const std::vector<uint32_t> words = HintFamily(3, true, false, HintList{}).to_words();
  for (const Written& wrong : {Written().word(2).word(1).list({}).word(0).word(1).word(0).list(words),
                               Written().word(2).word(1).list({}).word(0).word(1).word(4),
                               Written().word(2).word(1).list({}).word(0).word(1).word(1),
                               Written().word(2).word(4).list({}).word(0).word(0),
                               Written().word(2).word(1).list({10}).word(0).word(0),
                               Written().word(2).word(1).list({}).word(1).list({1, 0}).list({1}).word(0)}) {
    WireReader wire = wrong.reader();
    std::vector<uint32_t> answer;
    answer_merge(wire, nullptr, WireWriter(answer));
    EXPECT_NE(failure_of(wire), "");
    EXPECT_TRUE(answer.empty());
  }
}

}  // namespace
}  // namespace numalign
