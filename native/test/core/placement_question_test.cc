#include "core/placement_question.h"

#include <gtest/gtest.h>

#include <string>

#include "core/id_list.h"

namespace numalign {
namespace {

using Outcome = MemoryChoice::Outcome;

// Nodes with 8 each, of which these are free.
MemoryHintsRequest memory(uint64_t request, SmallWords free) {
  MemoryHintsRequest asked;
  asked.nodes = static_cast<int>(free.size());
  asked.group.resize(free.size());
  asked.types.push_back({request, free, SmallWords(free.size(), 8)});
  return asked;
}

MergedHint near(uint64_t mask, bool preferred) { return {.mask = NodeMask(mask), .preferred = preferred}; }

TEST(MemoryChoice, IsTheHintsNodesIfTheyHaveEnough) {
  EXPECT_EQ(choose_memory(memory(4, {4, 8}), near(1, true)), (MemoryChoice{.nodes = NodeMask(1)}));
}

TEST(MemoryChoice, WidensTheHintUnlessThatLosesThePreference) {
  EXPECT_EQ(choose_memory(memory(6, {4, 8}), near(1, false)).nodes, NodeMask(3));
  EXPECT_EQ(choose_memory(memory(6, {4, 8}), near(1, true)).outcome, Outcome::kTooWide);
  const MemoryChoice none = choose_memory(memory(13, {4, 8}), near(1, false));
  EXPECT_EQ(none.outcome, Outcome::kTooLittle);
  EXPECT_EQ(none.nodes, NodeMask(1)) << "the nodes that any set had to include";
}

TEST(MemoryChoice, WithoutAHintIsTheNarrowestSet) {
  EXPECT_EQ(choose_memory(memory(6, {4, 8}), {.any = true}).nodes, NodeMask(2));
  EXPECT_EQ(choose_memory(memory(13, {4, 8}), {.any = true}).outcome, Outcome::kTooLittle);
}

TEST(MemoryChoice, KeepsGroupsTogether) {
  MemoryHintsRequest shared = memory(4, {8, 8, 8});
  shared.group[0] = shared.group[1] = NodeMask(3);
  EXPECT_EQ(choose_memory(shared, near(1, false)).nodes, NodeMask(3)) << "a node is not taken out";
  const MemoryChoice clash = choose_memory(shared, near(6, false));
  EXPECT_EQ(clash.outcome, Outcome::kOtherGroup);
  EXPECT_EQ(clash.clash, 1);
}

TEST(MemoryChoice, LeavesAGroupThatLacksANode) {
  MemoryHintsRequest lacking = memory(4, {8, 8});
  lacking.group[0] = lacking.closed = NodeMask(1);
  EXPECT_EQ(choose_memory(lacking, near(1, false)).outcome, Outcome::kTooLittle);
  EXPECT_EQ(choose_memory(lacking, near(3, false)).outcome, Outcome::kOtherGroup);
}

// A socket for two nodes of two CPUs each.
std::shared_ptr<const Topology> machine() {
  TopologySpec spec;
  for (int cpu = 0; cpu < 8; cpu++)
    spec.cpus.push_back({cpu, cpu, cpu / 4, cpu / 4 * 4, cpu / 2, cpu / 2 * 3});
  for (int node = 0; node < 4; node++) spec.nodes.push_back({node * 3, 0, {}, {}});
  return Topology::create(std::move(spec)).value();
}

TEST(PlacementQuestion, NodesHaveTheirCpusOrThoseOfTheirSockets) {
  EXPECT_EQ(format_id_list(cpus_of_nodes(*machine(), NodeMask(5), false)), "0-1,4-5");
  EXPECT_EQ(format_id_list(cpus_of_nodes(*machine(), NodeMask(4), true)), "4-7");
  EXPECT_TRUE(cpus_of_nodes(*machine(), NodeMask(), true).empty());
}

TEST(PlacementQuestion, NarrowsCpusToTheFewestNodesAndMemoryToAll) {
  Offers offers;
  const auto of = [](std::initializer_list<uint64_t> masks) {
    HintList list;
    for (uint64_t mask : masks) list.push_back({NodeMask(mask), true});
    return HintFamily(4, false, false, list);
  };
  offers.of_memory = memory(10, {8, 8, 8, 8});
  offers.families = {of({2, 3}), memory_hints(offers.of_memory)};
  offers.cpus = std::span(offers.families).first(1);
  offers.memory = std::span(offers.families).subspan(1);
  const std::vector<uint32_t> rooms{1, 1, 1, 1};
  MergeRules rules{.is_joint = true,
                   .joint = {.merge = {.nodes = 4, .distances = {}}, .within = {}, .rooms = rooms}};
  const NarrowedHint narrowed = narrow(offers, rules, near(3, true), false);
  EXPECT_EQ(narrowed.cpus.mask, NodeMask(2));
  EXPECT_EQ(narrowed.memory.mask, NodeMask(3));
  EXPECT_EQ(narrow(offers, rules, near(3, true), true).cpus.mask, NodeMask(3)) << "by socket";
  EXPECT_EQ(narrow(offers, rules, near(2, true), false).memory.mask, NodeMask(2)) << "one node";
}

TEST(PlacementQuestion, NarrowsToTheNodesBesideTheMostDevices) {
  const HintList any_node{{NodeMask(1), true}, {NodeMask(2), true}, {NodeMask(4), true}};
  const std::vector<HintFamily> families{HintFamily(3, false, false, any_node)};
  Offers offers;
  offers.cpus = families;
  const std::vector<uint32_t> rooms{1, 9, 9}, devices{1, 2, 2};
  MergeRules rules{.is_joint = true,
                   .joint = {.merge = {.nodes = 3, .distances = {}}, .within = {}, .rooms = rooms}};
  EXPECT_EQ(narrow(offers, rules, near(7, true), false).cpus.mask, NodeMask(1)) << "the least room";
  rules.devices = devices;
  EXPECT_EQ(narrow(offers, rules, near(7, true), false).cpus.mask, NodeMask(2)) << "then the lowest";
}

TEST(PlacementQuestion, AnswersWithWhatIsTakenNearAHint) {
  // Two of all CPUs near the second node, without a merge.
  const std::vector<uint32_t> words{4, 1,   0, 0, 0,  // nodes, policy, no distances, not joint, no offers
                                    0, 0,   0, 2, 2, 0, 1,  // not merged or listed, the hint
                                    0, 0,   1,              // not by socket, not narrowed, CPUs
                                    1, 255, 2, 0,           // available, count, near
                                    0, 1,   0, 0, 0};  // nodes, group size, no flags, no claims; no memory
  WireReader wire(words, {});
  std::vector<uint32_t> answer;
  answer_placement(wire, machine().get(), WireWriter(answer));
  ASSERT_EQ(wire.failure(), nullptr) << wire.failure();
  EXPECT_EQ(answer, (std::vector<uint32_t>{2, 0, 1, 1, 0b1100}));
  WireReader alone(words, {});
  answer_placement(alone, nullptr, WireWriter(answer));
  EXPECT_NE(alone.failure(), nullptr) << "CPUs without a topology";
}

TEST(PlacementQuestion, ListsTheHintsIfItIsAsked) {
  // A device on each of four nodes, of which one is wanted, and nothing is taken.
  for (const uint32_t lists : {0, 1}) {
    const std::vector<uint32_t> words{
        4, 1,     0, 0,  1,  // nodes, policy, no distances, not joint, one resource
        3, 1,     1, 12, 1, 0, 1, 2, 0, 1, 4, 0, 1, 8, 0, 1,  // devices
        1, lists, 0, 0,  0, 0};
    WireReader wire(words, {});
    std::vector<uint32_t> answer;
    answer_placement(wire, nullptr, WireWriter(answer));
    ASSERT_EQ(wire.failure(), nullptr) << wire.failure();
    const size_t list = lists == 0 ? 0 : 1 + answer[9];
    // The merged hint before, the nodes behind it.
    EXPECT_EQ(answer.size(), 9 + list + 2);
    EXPECT_EQ(answer[0], 1u);
    EXPECT_EQ(answer[answer.size() - 2], 1u);
  }
}

}  // namespace
}  // namespace numalign
