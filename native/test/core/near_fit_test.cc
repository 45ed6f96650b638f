#include "core/near_fit.h"

#include <gtest/gtest.h>

#include "core/id_list.h"
#include "support/best_fit_laws.h"
#include "support/random_machine.h"
#include "support/seed.h"

namespace numalign {
namespace {

CpuSet cpus(std::string_view list) { return parse_id_list<CpuTag>(list).value(); }

// Two nodes: cores of two threads on the first, single threads on the second.
std::shared_ptr<const Topology> uneven() {
  TopologySpec spec;
  for (int cpu = 0; cpu < 8; cpu++) spec.cpus.push_back({cpu, cpu / 2 * 2, 0, 0, 0, 0});
  for (int cpu = 8; cpu < 12; cpu++) spec.cpus.push_back({cpu, cpu, 1, 8, 1, 1});
  spec.nodes = {{0, 0, {}, {}}, {1, 0, {}, {}}};
  return Topology::create(std::move(spec)).value();
}

std::string taken(const CpuSet& available, int count, const NearOptions& near,
                  const BestFitOptions& options) {
  const auto found = near_fit(*uneven(), available, count, near, options);
  return found.ok() ? format_id_list(found.value()) : "none";
}

TEST(NearFit, TakesNearCpusAndTheRestAnywhere) {
  EXPECT_EQ(taken(cpus("0-11"), 2, {.near = cpus("8-11")}, {}), "8-9");
  EXPECT_EQ(taken(cpus("0-11"), 6, {.near = cpus("8-11")}, {}), "0-1,8-11");
  EXPECT_EQ(taken(cpus("0-11"), 2, {}, {}), "8-9") << "the package with less free";
  EXPECT_EQ(taken(cpus("0-3"), 5, {.near = cpus("0-3")}, {}), "none");
  EXPECT_EQ(taken(cpus("0-3"), 0, {.near = cpus("0-3")}, {}), "");
}

TEST(NearFit, OfWholeCoresTakesFewerNearOnesIfTheseAddUp) {
  const BestFitOptions whole{.whole_cores = true};
  // Of three near single threads and cores of two, five CPUs are three and two, or one and four.
  EXPECT_EQ(taken(cpus("0-3,8-10"), 5, {.near = cpus("8-10")}, whole), "0-1,8-10");
  EXPECT_EQ(taken(cpus("0-3,8-10"), 4, {.near = cpus("8-10")}, whole), "0-1,8-9");
  EXPECT_EQ(taken(cpus("0-3,8-10"), 4, {.near = cpus("8-10"), .only_most = true}, whole), "none");
  EXPECT_EQ(taken(cpus("0-3"), 3, {.near = cpus("0-1")}, whole), "none") << "nowhere";
}

TEST(NearFit, OfWholeCoresMayLeaveWhatAddsUpToTheRest) {
  const BestFitOptions whole{.whole_cores = true, .later = {{1, false}}};
  const NearOptions near{.near = cpus("0-3"), .only_most = false, .leaves_rest = true};
  EXPECT_EQ(taken(cpus("0-3,8-11"), 6, near, whole), "0-3,8-9");
}

TEST(NearFit, OnAnyMachineHasAsManyNearCpusAsThereAre) {
  for (uint32_t round = 0; round < test::rounds(2000); round++) {
    test::Between between = test::choices(round);
    const auto machine =
        Topology::create(test::random_machine(between, {.max_nodes = 4, .max_cpus = 24})).value();
    const CpuSet available = test::random_available(between, *machine);
    const CpuSet near = test::random_available(between, *machine);
    const CpuSet free = available & machine->cpus();
    const int count = between(0, free.size());
    const BestFitOptions options{.spread = between(0, 1) == 1, .align_by_l3 = between(0, 1) == 1};
    const auto found = near_fit(*machine, available, count, {.near = near}, options);
    ASSERT_TRUE(found.ok()) << test::where(round);
    EXPECT_EQ(found.value().size(), count) << test::where(round);
    EXPECT_TRUE(found.value().is_subset_of(free)) << test::where(round);
    EXPECT_GE((found.value() & near).size(), std::min(count, (free & near).size())) << test::where(round);
  }
}

// One node with three L3 groups of four single threads.
std::shared_ptr<const Topology> three_l3_groups() {
  TopologySpec spec;
  for (int cpu = 0; cpu < 12; cpu++) spec.cpus.push_back({cpu, cpu, 0, 0, cpu / 4, 0});
  spec.nodes = {{0, 0, {}, {}}};
  return Topology::create(std::move(spec)).value();
}

TEST(NearFit, TakesTheFewestL3GroupsOfANode) {
  const auto taken = [](std::string_view available, int count) {
    return format_id_list(
        near_fit(*three_l3_groups(), cpus(available), count, {.fewest_l3 = true}, {}).value());
  };
  EXPECT_EQ(taken("1-11", 2), "1-2") << "the group in use";
  EXPECT_EQ(taken("1-11", 4), "4-7") << "a whole group";
  EXPECT_EQ(taken("1-11", 6), "1-2,4-7");
  EXPECT_EQ(taken("0,2-4,6,8-11", 5), "4,8-11") << "the least group that has the rest";
  EXPECT_EQ(taken("0-1,5,8", 3), "0-1,5") << "as many as it takes";
}

TEST(NearFit, InTheFewestL3GroupsHasAsManyCpusOfEachNode) {
  for (uint32_t round = 0; round < test::rounds(2000); round++) {
    test::Between between = test::choices(round);
    const auto machine =
        Topology::create(test::random_machine(between, {.max_nodes = 4, .max_cpus = 32})).value();
    const CpuSet free = test::random_available(between, *machine) & machine->cpus();
    const CpuSet near = test::random_available(between, *machine);
    const int count = between(0, free.size());
    const BestFitOptions options{.align_by_l3 = between(0, 3) == 0};
    const auto plain = near_fit(*machine, free, count, {.near = near}, options).value();
    const auto found = near_fit(*machine, free, count, {.near = near, .fewest_l3 = true}, options).value();
    EXPECT_EQ((found & near).size(), (plain & near).size()) << test::where(round);

    const auto nodes = test::cpus_by(*machine, &CpuInfo::node);
    const auto l3_groups = test::cpus_by(*machine, &CpuInfo::l3);
    const auto cores = test::cpus_by(*machine, &CpuInfo::core);
    EXPECT_LE(test::used(l3_groups, found), test::used(l3_groups, plain)) << test::where(round);
    const auto broken = [&](const CpuSet& taken) {
      return std::ranges::count_if(cores, [&](const auto& core) {
        const CpuSet& all = core.second;
        return all.is_subset_of(free) && all.intersects(taken) && !all.is_subset_of(taken);
      });
    };
    EXPECT_LE(broken(found), broken(plain)) << test::where(round);
    const bool is_simple = near.empty() && test::of_one_size(cores) && cores.begin()->second.size() == 1 &&
                           std::ranges::all_of(l3_groups, [&](const auto& group) {
                             return test::used(nodes, group.second) == 1;
                           });
    int fewest = 0;
    for (const auto& [id, all] : nodes) {
      EXPECT_EQ((found & all).size(), (plain & all).size()) << test::where(round);
      std::vector<int> rooms;
      for (const auto& [group, in_group] : l3_groups) rooms.push_back((in_group & all & free).size());
      std::ranges::sort(rooms, std::greater<>());
      for (int i = 0, left = (found & all).size(); left > 0; left -= rooms[i++]) fewest++;
    }
    if (is_simple) EXPECT_EQ(test::used(l3_groups, found), fewest) << test::where(round);
  }
}

}  // namespace
}  // namespace numalign
