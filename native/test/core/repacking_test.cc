#include "core/repacking.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/seed.h"

namespace numalign {
namespace {

using Moves = std::vector<RepackingMove>;

NodeMask only(size_t node) { return NodeMask(uint64_t{1} << node); }

// A machine that counts CPUs, and memory where it has some.
RepackingProblem machine(std::vector<int> free, std::vector<double> left = {}) {
  RepackingProblem problem;
  problem.ground.nodes = free.size();
  problem.ground.views.push_back({std::move(free), {}, 1});
  problem.ground.types = left.empty() ? 0 : 1;
  for (double bytes : left) problem.ground.memory.push_back({bytes, 0});
  return problem;
}

RepackingDemand demand(int cpus, double bytes = 0) {
  return {0, cpus, {cpus}, bytes > 0 ? std::vector{bytes} : std::vector<double>{}, true};
}

// On any one node.
void ask(RepackingProblem& problem, int cpus, double bytes = 0) {
  RequestDemand& asked = problem.request.emplace_back();
  asked.demand = demand(cpus, bytes);
  for (size_t node = 0; node < problem.ground.nodes; node++) asked.places.push_back({only(node), only(node)});
}

// A grant on one node that may go to each other one.
void hold(RepackingProblem& problem, size_t node, int cpus, double bytes = 0) {
  RepackingGround& ground = problem.ground;
  MovableGrant& grant = problem.grants.emplace_back();
  grant.demand = demand(cpus, bytes);
  grant.bytes = bytes;
  grant.cpus = cpus;
  grant.holding.cpus.assign(ground.nodes, 0);
  grant.holding.cpus[node] = cpus;
  for (size_t other = 0; other < ground.nodes; other++) {
    if (other != node) grant.targets.push_back({only(other), bytes == 0});
  }
  if (bytes == 0) return;
  grant.holding.memory.push_back({only(node), 0, bytes});
  ground.memory[node].booked += bytes;
  auto group = std::ranges::find(ground.groups, only(node), &MemoryGroup::nodes);
  if (group == ground.groups.end()) group = ground.groups.insert(group, {only(node), 0});
  group->blocks++;
}

Repackings find(const RepackingProblem& problem, size_t moves, size_t most = 100) {
  return find_repackings(problem, {moves, 0, most, 1'000'000});
}

TEST(Repacking, MovesTheGrantThatIsInTheWay) {
  RepackingProblem problem = machine({2, 2});
  hold(problem, 0, 2);
  ask(problem, 4);
  EXPECT_EQ(find(problem, 1).proposals, (std::vector<Moves>{{{0, 0}}}));
}

TEST(Repacking, NeedsRoomForAGrantBesideItself) {
  // Node 1 has 2 free as well, of 3 that the grant has.
  RepackingProblem problem = machine({2, 2});
  hold(problem, 0, 3);
  ask(problem, 4);
  EXPECT_TRUE(find(problem, 1).proposals.empty());
}

TEST(Repacking, TakesTheFewestBytesThenTheFewestCpus) {
  RepackingProblem problem = machine({0, 0, 6}, {0, 0, 100});
  hold(problem, 0, 3, 20);
  hold(problem, 1, 4, 10);
  hold(problem, 1, 3, 10);
  ask(problem, 3);
  std::vector<Moves> found = find(problem, 1).proposals;
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front(), (Moves{{2, 1}}));
  EXPECT_EQ(found.back(), (Moves{{0, 1}}));
}

TEST(Repacking, MovesOneOutOfTheWayOfTheOther) {
  // The big one fits on node 1 once the small one has left it for node 2.
  RepackingProblem problem = machine({2, 1, 1});
  hold(problem, 0, 2);
  hold(problem, 1, 1);
  ask(problem, 4);
  EXPECT_TRUE(find(problem, 1).proposals.empty());
  EXPECT_EQ(find(problem, 2).proposals, (std::vector<Moves>{{{1, 1}, {0, 0}}}));
}

TEST(Repacking, LeavesGrantsWhereTheyAreThatHaveNoTarget) {
  RepackingProblem problem = machine({2, 2});
  hold(problem, 0, 2);
  problem.grants[0].targets.clear();
  ask(problem, 4);
  EXPECT_TRUE(find(problem, 1).proposals.empty());
}

TEST(Repacking, CountsMemoryAndCpusOfOneNode) {
  // Node 0 lacks CPUs, node 1 memory.
  RepackingProblem problem = machine({1, 4, 2}, {10, 4, 8});
  hold(problem, 0, 2, 6);
  hold(problem, 1, 1, 6);
  ask(problem, 3, 10);
  EXPECT_EQ(find(problem, 1).proposals, (std::vector<Moves>{{{1, 0}}, {{1, 1}}, {{0, 1}}}));
}

TEST(Repacking, KeepsTheMemoryOfAGroupTogether) {
  // Nodes 0 and 1 are allocated together, and with node 1 alone the request cannot have any of it.
  RepackingProblem problem = machine({4, 4, 4}, {6, 6, 20});
  problem.ground.groups = {{NodeMask(0b11), 1}};
  problem.ground.memory[0].booked = 4;
  MovableGrant& grant = problem.grants.emplace_back();
  grant.demand = demand(1, 4);
  grant.holding = {{1, 0, 0}, {}, {{NodeMask(0b11), 0, 4}}};
  grant.targets = {{only(2), false}};
  RequestDemand& asked = problem.request.emplace_back();
  asked.demand = demand(2, 6);
  asked.places = {{only(1), only(1)}};
  EXPECT_EQ(find(problem, 1).proposals, (std::vector<Moves>{{{0, 0}}}));
  problem.ground.groups[0].blocks = 2;
  EXPECT_TRUE(find(problem, 1).proposals.empty());
}

TEST(Repacking, CompletesCores) {
  // Two cores of two CPUs on node 0, of each one is free.
  RepackingProblem problem = machine({2, 1});
  problem.ground.views.push_back({{2, 1}, {{0, 2, 1, 2}, {0, 2, 1, 2}}, 1});
  hold(problem, 0, 1);
  problem.grants[0].demand.cpus_by_view = {1, 1};
  problem.grants[0].holding = {{1, 0, 1, 0}, {{1, 1, 1}}, {}};
  ask(problem, 2);
  problem.request[0].demand.view = 1;
  problem.request[0].demand.cpus_by_view = {2, 2};
  EXPECT_EQ(find(problem, 1).proposals, (std::vector<Moves>{{{0, 0}}}));
  problem.grants[0].targets = {{only(0), true}};
  EXPECT_EQ(find(problem, 1).proposals, (std::vector<Moves>{{{0, 0}}})) << "within the node";
}

TEST(Repacking, PlacesEachPartOfARequest) {
  RepackingProblem problem = machine({2, 2, 1});
  hold(problem, 0, 1);
  ask(problem, 2);
  ask(problem, 3);
  EXPECT_EQ(find(problem, 1).proposals, (std::vector<Moves>{{{0, 1}}}));
  problem.request[0].stays = false;
  EXPECT_EQ(find(problem, 1).proposals, (std::vector<Moves>{{{0, 0}}, {{0, 1}}}))
      << "the first has ended before the second begins";
}

TEST(Repacking, ListsProposalsInParts) {
  RepackingProblem problem = machine({1, 4, 4});
  for (int i = 0; i < 3; i++) hold(problem, 0, 1);
  ask(problem, 5);
  problem.request[0].places = {{only(1), only(1)}, {only(2), only(2)}};
  problem.ground.views[0].free = {4, 4, 4};
  hold(problem, 1, 1);
  Repackings all = find(problem, 1);
  EXPECT_TRUE(all.is_complete);
  ASSERT_EQ(all.proposals.size(), 2u);
  Repackings first = find_repackings(problem, {1, 0, 1, 0});
  Repackings second = find_repackings(problem, {1, 1, 1, 0});
  EXPECT_FALSE(first.is_complete);
  EXPECT_TRUE(second.is_complete);
  EXPECT_EQ(first.proposals[0], all.proposals[0]);
  EXPECT_EQ(second.proposals[0], all.proposals[1]);
}

TEST(Repacking, SaysWhereTheBudgetOfMoreThanTwoMovesEnds) {
  RepackingProblem problem = machine({0, 3});
  for (int i = 0; i < 3; i++) hold(problem, 0, 1);
  ask(problem, 3);
  problem.request[0].places = {{only(0), only(0)}};
  EXPECT_EQ(find(problem, 3).proposals.size(), 6u) << "in each order";
  EXPECT_FALSE(find(problem, 3).is_bounded);
  Repackings hurried = find_repackings(problem, {3, 0, 1, 2});
  EXPECT_TRUE(hurried.is_bounded);
  EXPECT_TRUE(hurried.proposals.empty());
}

TEST(Repacking, LooksAtTheCheapestOfManyGrantsWhereSeveralMove) {
  RepackingProblem problem = machine({0, 300});
  for (int i = 0; i < 300; i++) hold(problem, 0, i < 298 ? 2 : 1);
  ask(problem, 2);
  problem.request[0].places = {{only(0), only(0)}};
  Repackings one = find(problem, 1, 1'000);
  EXPECT_FALSE(one.is_bounded);
  EXPECT_EQ(one.proposals.size(), 298u);
  Repackings two = find(problem, 2, 1);
  EXPECT_TRUE(two.is_bounded);
  EXPECT_EQ(two.proposals[0], (Moves{{298, 0}, {299, 0}}));
}

// All sequences of moves, on machines of single nodes, one after the other.
void walk(const RepackingProblem& problem, std::vector<int> free, Moves& moves, size_t count,
          std::vector<Moves>& found) {
  if (moves.size() == count) {
    if (std::ranges::max(free) >= problem.request[0].demand.units) found.push_back(moves);
    return;
  }
  for (size_t i = 0; i < problem.grants.size(); i++) {
    if (std::ranges::find(moves, i, &RepackingMove::grant) != moves.end()) continue;
    const MovableGrant& grant = problem.grants[i];
    for (size_t t = 0; t < grant.targets.size(); t++) {
      auto node = static_cast<size_t>(std::countr_zero(grant.targets[t].nodes.bits()));
      if (free[node] < grant.cpus) continue;
      std::vector<int> next = free;
      next[node] -= grant.cpus;
      for (size_t n = 0; n < next.size(); n++) next[n] += grant.holding.cpus[n];
      moves.push_back({i, t});
      walk(problem, next, moves, count, found);
      moves.pop_back();
    }
  }
}

TEST(Repacking, AreAllThatThereAre) {
  for (uint32_t round = 0; round < test::rounds(2'000); round++) {
    test::Between between = test::choices(round);
    auto nodes = static_cast<size_t>(between(2, 4));
    std::vector<int> free(nodes);
    for (int& each : free) each = between(0, 3);
    RepackingProblem problem = machine(free);
    for (int i = between(1, 5); i > 0; i--) {
      hold(problem, static_cast<size_t>(between(0, static_cast<int>(nodes) - 1)), between(1, 4));
    }
    ask(problem, std::ranges::max(free) + between(1, 3));
    for (size_t count : {1, 2, 3}) {
      std::vector<Moves> all;
      Moves moves;
      walk(problem, free, moves, count, all);
      std::vector<Moves> found = find(problem, count, 1'000'000).proposals;
      auto cost = [&](const Moves& each) {
        int sum = 0;
        for (const RepackingMove& move : each) sum += problem.grants[move.grant].cpus;
        return sum;
      };
      ASSERT_TRUE(std::ranges::is_sorted(found, {}, cost)) << test::where(round);
      auto order = [](const Moves& a, const Moves& b) {
        return std::ranges::lexicographical_compare(
            a, b, {}, [](const RepackingMove& move) { return 100 * move.grant + move.target; },
            [](const RepackingMove& move) { return 100 * move.grant + move.target; });
      };
      std::ranges::sort(all, order);
      std::ranges::sort(found, order);
      ASSERT_EQ(found, all) << test::where(round) << ", moves " << count;
    }
  }
}

}  // namespace
}  // namespace numalign
