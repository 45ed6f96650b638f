#include "core/best_fit.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <ctime>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/id_list.h"
#include "support/best_fit_laws.h"
#include "support/random_machine.h"
#include "support/seed.h"

namespace numalign {
namespace {

using TopologyPtr = std::shared_ptr<const Topology>;

struct Shape {
  int packages = 1;
  int nodes_per_package = 1;
  int l3s_per_node = 1;
  int cores_per_l3 = 1;
  int threads = 1;
};

// A regular machine; the threads of a core have adjacent ids.
TopologyPtr regular_machine(Shape shape) {
  TopologySpec spec;
  int threads_per_l3 = shape.cores_per_l3 * shape.threads;
  int threads_per_node = threads_per_l3 * shape.l3s_per_node;
  int threads_per_package = threads_per_node * shape.nodes_per_package;
  for (int cpu = 0; cpu < threads_per_package * shape.packages; cpu++) {
    int package = cpu / threads_per_package;
    spec.cpus.push_back({cpu, cpu / shape.threads * shape.threads, package, package * threads_per_package,
                         cpu / threads_per_l3, cpu / threads_per_node});
  }
  for (int node = 0; node < shape.packages * shape.nodes_per_package; node++)
    spec.nodes.push_back({node, 0, {}, {}});
  return Topology::create(std::move(spec)).value();
}

// Any machine: rows of {cpu, core, package, l3, node}.
TopologyPtr machine(std::vector<std::array<int, 5>> rows) {
  TopologySpec spec;
  std::set<int> nodes;
  for (auto [cpu, core, package, l3, node] : rows) {
    spec.cpus.push_back({cpu, core, package, package, l3, node});
    nodes.insert(node);
  }
  for (int node : nodes) spec.nodes.push_back({node, 0, {}, {}});
  return Topology::create(std::move(spec)).value();
}

CpuSet cpus(std::string_view list) { return parse_id_list<CpuTag>(list).value(); }

std::string take(const TopologyPtr& topology, std::string_view available, int count,
                 BestFitOptions options = {}) {
  auto answer = best_fit(*topology, cpus(available), count, options);
  return answer.ok() ? format_id_list(answer.value()) : answer.error().message;
}

constexpr BestFitOptions kByL3 = {.align_by_l3 = true};
constexpr BestFitOptions kSpread = {.spread = true};

BestFitOptions distributed(int group_size = 1) {
  return {.distribute_across_numa = true, .cpu_group_size = group_size};
}

TEST(BestFit, TakesAWholeNumaNodeBeforeBreakingAnother) {
  TopologyPtr topology = regular_machine({.packages = 2, .cores_per_l3 = 2, .threads = 2});
  EXPECT_EQ(take(topology, "0-7", 4), "0-3");
  EXPECT_EQ(take(topology, "1-7", 4), "4-7");
  EXPECT_EQ(take(topology, "0-7", 5), "0-4");
}

TEST(BestFit, TakesAWholeSocketWhereSocketsHoldSeveralNodes) {
  TopologyPtr topology = regular_machine({.packages = 2, .nodes_per_package = 2, .cores_per_l3 = 2});
  EXPECT_EQ(take(topology, "0-7", 4), "0-3");
  EXPECT_EQ(take(topology, "0,2-7", 4), "4-7");
  EXPECT_EQ(take(topology, "0,2-7", 2), "2-3");
}

TEST(BestFit, DrainsTheNodeWithTheFewestFreeCpusFirst) {
  TopologyPtr topology = regular_machine({.packages = 2, .cores_per_l3 = 4});
  EXPECT_EQ(take(topology, "0-3,6-7", 1), "6");
  EXPECT_EQ(take(topology, "0-2,5-7", 1), "0");
}

TEST(BestFit, TakesAWholeCoreBeforeBreakingAnother) {
  TopologyPtr topology = regular_machine({.cores_per_l3 = 4, .threads = 2});
  EXPECT_EQ(take(topology, "1,3-5,7", 2), "4-5");
}

TEST(BestFit, FillsBrokenCoresBeforeBreakingAWholeOne) {
  TopologyPtr topology = regular_machine({.cores_per_l3 = 4, .threads = 2});
  EXPECT_EQ(take(topology, "0-3,5-7", 1), "5");
  EXPECT_EQ(take(topology, "0-3,5,7", 3), "0-1,5");
}

TEST(BestFit, ComparesAHybridCoreWithItsOwnSize) {
  TopologyPtr topology = machine({{0, 0, 0, 0, 0}, {1, 0, 0, 0, 0}, {2, 2, 0, 0, 0}, {3, 3, 0, 0, 0}});
  EXPECT_EQ(take(topology, "1-3", 2), "2-3");
  EXPECT_EQ(take(topology, "0-3", 2), "2-3");
}

TEST(BestFit, TakesAWholeL3GroupWhereAsked) {
  TopologyPtr topology = regular_machine({.l3s_per_node = 3, .cores_per_l3 = 4});
  EXPECT_EQ(take(topology, "2-11", 4), "2-5");
  EXPECT_EQ(take(topology, "2-11", 4, kByL3), "4-7");
}

TEST(BestFit, KeepsASmallRequestInOneL3GroupWhereAsked) {
  TopologyPtr topology = regular_machine({.l3s_per_node = 3, .cores_per_l3 = 4});
  EXPECT_EQ(take(topology, "3-11", 2), "3-4");
  EXPECT_EQ(take(topology, "3-11", 2, kByL3), "4-5");
}

// One package and one node; L3 groups of so many cores, each with so many threads.
TopologyPtr uneven_l3s(const std::vector<std::vector<int>>& groups) {
  std::vector<std::array<int, 5>> rows;
  int cpu = 0;
  for (size_t l3 = 0; l3 < groups.size(); l3++) {
    for (int threads : groups[l3]) {
      int core = cpu;
      while (cpu < core + threads) rows.push_back({cpu++, core, 0, static_cast<int>(l3), 0});
    }
  }
  return machine(rows);
}

TEST(BestFit, KeepsARequestInTheSmallestL3GroupThatHoldsIt) {
  TopologyPtr one_and_five = uneven_l3s({{1}, {1, 1, 1, 1, 1}});
  EXPECT_EQ(take(one_and_five, "0-5", 2, kByL3), "1-2");
  EXPECT_EQ(take(one_and_five, "0-5", 1, kByL3), "0");
  TopologyPtr two_and_six = uneven_l3s({{2, 2}, {2, 2, 2, 2, 2, 2}});
  EXPECT_EQ(take(two_and_six, "0-15", 4, kByL3), "0-3");
  EXPECT_EQ(take(two_and_six, "0-15", 6, kByL3), "4-9");
  EXPECT_EQ(take(two_and_six, "0-15", 5, kByL3), "4-8");
}

constexpr BestFitOptions kAnyRestByL3 = {.align_by_l3 = true, .any_rest_in_l3 = true};

TEST(BestFit, KeepsAnOddRestInOneL3GroupAsOfV134) {
  TopologyPtr topology = uneven_l3s({{2, 2, 2}, {2, 2, 2}});
  EXPECT_EQ(take(topology, "2-11", 5, kByL3), "2-6");
  EXPECT_EQ(take(topology, "2-11", 5, kAnyRestByL3), "6-10");
  EXPECT_EQ(take(topology, "2-11", 4, kAnyRestByL3), "2-5");
  // Cores that are used in part, if they are just what is asked for.
  EXPECT_EQ(take(topology, "0-2,4-11", 3, kAnyRestByL3), "0-2");
  // With two CPUs more than asked for none is left out, nor of an even number.
  EXPECT_EQ(take(uneven_l3s({{4, 4}, {4, 4}}), "1,3-15", 6, kAnyRestByL3), "1,3-7");
  EXPECT_EQ(take(uneven_l3s({{1, 1, 1}, {1, 1, 1}}), "0-5", 2, kAnyRestByL3), "0-1");
}

TEST(BestFit, SplitsNoCoreForASingleCpuWhereAnotherIsUsedInPart) {
  TopologyPtr topology = uneven_l3s({{2, 2, 2}, {2, 2, 2}});
  EXPECT_EQ(take(topology, "0-11", 1, kAnyRestByL3), "0");
  EXPECT_EQ(take(topology, "0-2,4-11", 1, kAnyRestByL3), "2");
  EXPECT_EQ(take(topology, "0-4,6-11", 3, kAnyRestByL3), "0-1,4");
  // A single CPU needs no L3 group of its own, a part of more stays in its group.
  EXPECT_EQ(take(topology, "0-3,6-10", 1, kAnyRestByL3), "10");
  EXPECT_EQ(take(topology, "0-3,6-10", 3, kAnyRestByL3), "0-2");
  EXPECT_EQ(take(topology, "0-10", 7, kAnyRestByL3), "0-5,10");
}

TEST(BestFit, TakesWholeCoresInOneL3GroupWhereOneHasThem) {
  TopologyPtr topology = uneven_l3s({{2, 1}, {2, 2}, {2, 2, 2}});
  BestFitOptions options = {.align_by_l3 = true, .whole_cores = true};
  EXPECT_EQ(take(topology, "0-12", 3, options), "0-2");
  EXPECT_EQ(take(topology, "0-12", 4, options), "3-6");
  EXPECT_EQ(take(topology, "0-12", 6, options), "7-12");
  EXPECT_EQ(take(topology, "0-12", 8, options), "3-10");
  EXPECT_EQ(take(topology, "0,3-12", 3, options), "free cores do not add up to the 3 CPUs asked for");
}

TEST(BestFit, LeavesWholeCoresForLaterContainersIfItCan) {
  TopologyPtr topology = uneven_l3s({{5, 1, 1, 8, 6}});
  BestFitOptions options = {.whole_cores = true};
  EXPECT_EQ(take(topology, "0-20", 6, options), "0-5");
  options.later = {{5, false}, {2, false}};
  EXPECT_EQ(take(topology, "0-20", 6, options), "15-20");
  options.later = {{14, true}, {6, false}};
  EXPECT_EQ(take(topology, "0-20", 6, options), "0-5");
  // CPUs elsewhere count if those here are too few.
  options.later = {{13, false}};
  EXPECT_EQ(take(topology, "0-6,15-20", 6, options), "0-5");
  options.elsewhere = cpus("7-14");
  EXPECT_EQ(take(topology, "0-6,15-20", 6, options), "15-20");
}

TEST(BestFit, SpreadsOverTheCoresOfAPackageByCpuId) {
  // Second threads follow all first threads.
  TopologyPtr topology = machine(
      {{0, 0, 0, 0, 0}, {1, 1, 0, 0, 0}, {2, 2, 0, 0, 0}, {3, 0, 0, 0, 0}, {4, 1, 0, 0, 0}, {5, 2, 0, 0, 0}});
  EXPECT_EQ(take(topology, "0-5", 2), "0,3");
  EXPECT_EQ(take(topology, "0-5", 2, kSpread), "0-1");
  EXPECT_EQ(take(topology, "0-5", 4, kSpread), "0-3");
}

TEST(BestFit, DistributesInEqualSharesOverTheFewestNodes) {
  TopologyPtr topology = regular_machine({.packages = 4, .cores_per_l3 = 8});
  EXPECT_EQ(take(topology, "0-31", 8, distributed()), "0-7");
  EXPECT_EQ(take(topology, "0-31", 12, distributed()), "0-5,8-13");
  EXPECT_EQ(take(topology, "0-31", 18, distributed()), "0-5,8-13,16-21");
  EXPECT_EQ(take(topology, "0-31", 13, distributed()), "0-6,8-13");
}

TEST(BestFit, DistributesOverAsManyNodesAsAHintHas) {
  TopologyPtr topology = regular_machine({.packages = 4, .cores_per_l3 = 8});
  BestFitOptions options = distributed();
  options.least_nodes = 4;
  EXPECT_EQ(take(topology, "0-31", 12, options), "0-2,8-10,16-18,24-26");
  EXPECT_EQ(take(topology, "0-23", 12, options), "0-5,8-13") << "so many nodes have no CPUs";
  EXPECT_EQ(take(topology, "0-31", 2, options), "0-1") << "less than a CPU for each";
}

TEST(BestFit, DistributesOnThePackageThatHoldsTheRequest) {
  // Of two packages with two nodes each: nodes 0 and 2, and 1 and 3.
  std::vector<std::array<int, 5>> interleaved;
  for (int cpu = 0; cpu < 16; cpu++) interleaved.push_back({cpu, cpu, cpu % 2, cpu % 4, cpu % 4});
  TopologyPtr topology = machine(interleaved);
  BestFitOptions options = distributed();
  EXPECT_EQ(take(topology, "1-15", 6, options), "1-2,5-6,9-10");
  options.keep_package = true;
  EXPECT_EQ(take(topology, "1-15", 6, options), "1,3,5,7,9,11");
  EXPECT_EQ(take(topology, "1-3,5,7,9", 5, options), "1,3,5,7,9") << "node 1 has three, node 3 two";
  EXPECT_EQ(take(topology, "1-15", 10, options), take(topology, "1-15", 10, distributed()));
  // Four nodes a package; the fourth node of each has less.
  TopologyPtr large = regular_machine({.packages = 2, .nodes_per_package = 4, .cores_per_l3 = 32});
  EXPECT_EQ(take(large, "0-125,128-253", 120, options), "0-29,32-61,64-93,96-125");
}

TEST(BestFit, DistributesSoThatWhatIsLeftIsEven) {
  TopologyPtr topology = regular_machine({.packages = 3, .cores_per_l3 = 8});
  EXPECT_EQ(take(topology, "0-3,8-23", 10, distributed()), "8-12,16-20");
}

TEST(BestFit, DistributesWholeCoresWhereGroupsAreCores) {
  TopologyPtr topology = regular_machine({.packages = 2, .cores_per_l3 = 4, .threads = 2});
  EXPECT_EQ(take(topology, "0-15", 10, distributed(1)), "0-4,8-12");
  EXPECT_EQ(take(topology, "0-15", 10, distributed(2)), "0-5,8-11");
}

TEST(BestFit, PacksARequestThatIsNoMultipleOfTheGroup) {
  TopologyPtr topology = regular_machine({.packages = 2, .cores_per_l3 = 4, .threads = 2});
  EXPECT_EQ(take(topology, "0-15", 9, distributed(2)), "0-8");
}

TEST(BestFit, PacksARequestThatCannotBeBalanced) {
  TopologyPtr topology = regular_machine({.packages = 2, .cores_per_l3 = 2, .threads = 2});
  // Two CPUs of one core are nowhere free, and single CPUs cannot be handed out in groups of two.
  EXPECT_EQ(take(topology, "0,4", 2, distributed(2)), "0,4");
}

TEST(BestFit, TakesFromTheNodesThatItScored) {
  TopologyPtr topology = regular_machine({.packages = 2, .nodes_per_package = 4, .cores_per_l3 = 12});
  EXPECT_EQ(take(topology, "0-95", 48, distributed()), "0-47");
}

TEST(BestFit, EndsWhereTheRestFitsOnlyInPartsOfGroups) {
  TopologyPtr topology = regular_machine({.packages = 3, .cores_per_l3 = 4, .threads = 2});
  for (int count = 0; count <= 15; count++) {
    for (int group_size : {2, 3, 4, 8}) {
      EXPECT_EQ(
          test::broken_law(*topology, cpus("0-2,5,7-9,11,13,16-18,20-22"), count, distributed(group_size)),
          "");
    }
  }
}

TEST(BestFit, DistributesOverNodesThatCrossPackages) {
  // Two packages, three nodes; node 0 has a CPU in each package.
  TopologyPtr topology = machine({{0, 0, 0, 0, 0}, {1, 1, 1, 1, 0}, {2, 2, 0, 0, 1}, {3, 3, 1, 1, 2}});
  for (int count = 0; count <= 5; count++) {
    for (const BestFitOptions& options : test::all_best_fit_options()) {
      EXPECT_EQ(test::broken_law(*topology, cpus("0-3"), count, options), "")
          << count << " " << test::describe(options);
    }
  }
}

TEST(BestFit, TakesNothingForNothing) {
  TopologyPtr topology = regular_machine({.cores_per_l3 = 4});
  for (const BestFitOptions& options : test::all_best_fit_options()) {
    EXPECT_EQ(take(topology, "0-3", 0, options), "");
    EXPECT_EQ(take(topology, "", 0, options), "");
  }
}

TEST(BestFit, FailsWhereFewerCpusAreAvailableThanAskedFor) {
  TopologyPtr topology = regular_machine({.cores_per_l3 = 4});
  EXPECT_EQ(take(topology, "0-2", 4), "4 CPUs were asked for, 3 are available");
  EXPECT_EQ(best_fit(*topology, cpus("0-2"), 4, {}).error().code, ErrorCode::kInsufficientCpus);
  EXPECT_EQ(take(topology, "0-2,50", 4), "4 CPUs were asked for, 3 are available");
  EXPECT_EQ(take(topology, "", 1, distributed(8)), "1 CPUs were asked for, 0 are available");
  EXPECT_EQ(take(topology, "0-3", std::numeric_limits<int>::max(), distributed(8)),
            "2147483647 CPUs were asked for, 4 are available");
}

TEST(BestFit, PassesOverCpusThatTheMachineDoesNotHave) {
  TopologyPtr topology = regular_machine({.cores_per_l3 = 4});
  EXPECT_EQ(take(topology, "2-3,60-70,65535", 2), "2-3");
}

TEST(BestFit, WorksWithTheGreatestIdsOfTheKernel) {
  TopologyPtr topology =
      machine({{16382, 16382, 0, 0, 0}, {16383, 16382, 0, 0, 0}, {65535, 65535, 1, 1, 1023}});
  EXPECT_EQ(take(topology, "16382-16383,65535", 1), "65535");
  EXPECT_EQ(take(topology, "16382-16383,65535", 2), "16382,65535");
  EXPECT_EQ(take(topology, "16382-16383", 2), "16382-16383");
  EXPECT_EQ(take(topology, "16382-16383,65535", 3, distributed()), "16382-16383,65535");
}

TEST(BestFit, AnswersTheSameInWhateverOrderTheMachineIsDescribed) {
  for (uint32_t round = 0; round < 100; round++) {
    SCOPED_TRACE(test::where(round));
    test::Between between = test::choices(round);
    TopologySpec spec = test::random_machine(between);
    for (NodeInfo& node : spec.nodes) node.distances.clear();
    TopologySpec shuffled = spec;
    test::shuffle(between, shuffled.cpus);
    test::shuffle(between, shuffled.nodes);
    TopologyPtr a = Topology::create(spec).value();
    TopologyPtr b = Topology::create(shuffled).value();
    CpuSet available = test::random_available(between, *a);
    int count = between(0, (available & a->cpus()).size());
    for (const BestFitOptions& options : test::all_best_fit_options()) {
      ASSERT_EQ(best_fit(*a, available, count, options).value(),
                best_fit(*b, available, count, options).value())
          << test::describe(options);
    }
  }
}

TEST(BestFit, KeepsItsLawsOnEveryMachine) {
  for (uint32_t round = 0; round < test::rounds(500); round++) {
    SCOPED_TRACE(test::where(round));
    test::Between between = test::choices(round);
    auto topology = Topology::create(test::random_machine(between)).value();
    CpuSet available = test::random_available(between, *topology);
    int free = (available & topology->cpus()).size();
    for (int count : {0, 1, between(0, free), between(0, free), free, free + 1}) {
      for (const BestFitOptions& options : test::all_best_fit_options()) {
        ASSERT_EQ(test::broken_law(*topology, available, count, options), "")
            << count << " of " << format_id_list(available) << " " << test::describe(options);
      }
    }
  }
}

TEST(BestFit, AnswersForEveryCountUpToWhatIsFree) {
  for (uint32_t round = 0; round < test::rounds(40); round++) {
    SCOPED_TRACE(test::where(round));
    test::Between between = test::choices(round);
    auto topology = Topology::create(test::random_machine(between, {.max_nodes = 6, .max_cpus = 48})).value();
    CpuSet available = test::random_available(between, *topology);
    int free = (available & topology->cpus()).size();
    for (int count = 0; count <= free + 2; count++) {
      for (const BestFitOptions& options : test::all_best_fit_options()) {
        ASSERT_EQ(test::broken_law(*topology, available, count, options), "")
            << count << " of " << format_id_list(available) << " " << test::describe(options);
      }
    }
  }
}

TEST(BestFit, KeepsItsLawsOnUpToSixtyFourNodes) {
  for (uint32_t round = 0; round < test::rounds(60); round++) {
    SCOPED_TRACE(test::where(round));
    test::Between between = test::choices(round);
    auto topology =
        Topology::create(test::random_machine(between, {.max_nodes = between(9, 64), .max_cpus = 400}))
            .value();
    CpuSet available = test::random_available(between, *topology);
    int free = (available & topology->cpus()).size();
    for (int count : {between(0, free), free}) {
      for (const BestFitOptions& options : test::all_best_fit_options()) {
        ASSERT_EQ(test::broken_law(*topology, available, count, options), "")
            << count << " of " << format_id_list(available) << " " << test::describe(options);
      }
    }
  }
}

// The fewest L3 groups of all answers that there are; where cores are of one size, of those with the most
// whole cores, which a container is given first.
int fewest_l3_groups(const Topology& topology, const CpuSet& usable, int count, bool by_core) {
  std::vector<CpuSet> cores;
  for (const auto& [id, core] : test::cpus_by(topology, &CpuInfo::core)) cores.push_back(core);
  std::map<int, CpuSet> l3_groups = test::cpus_by(topology, &CpuInfo::l3);
  std::vector<int> all;
  usable.for_each([&](int cpu) { all.push_back(cpu); });
  std::pair<long, int> best = {0, std::numeric_limits<int>::max()};
  for (unsigned subset = 0; subset < 1u << all.size(); subset++) {
    if (std::popcount(subset) != count) continue;
    CpuSet answer;
    for (size_t bit = 0; bit < all.size(); bit++) {
      if (subset >> bit & 1) answer.insert(all[bit]);
    }
    auto whole = std::ranges::count_if(cores, [&](const CpuSet& core) { return core.is_subset_of(answer); });
    best = std::min(best, {by_core ? -whole : 0, test::used(l3_groups, answer)});
  }
  return best.second;
}

TEST(BestFit, TakesTheFewestL3GroupsThatAnExhaustiveSearchFindsWhereElementsAreUneven) {
  int searched = 0;
  for (uint32_t round = 0; round < test::rounds(4000); round++) {
    SCOPED_TRACE(test::where(round));
    test::Between between = test::choices(round);
    auto topology = Topology::create(test::random_machine(between, {.max_nodes = 3, .max_cpus = 11})).value();
    CpuSet usable = test::random_available(between, *topology) & topology->cpus();
    int count = between(0, usable.size());
    std::map<int, CpuSet> nodes = test::cpus_by(*topology, &CpuInfo::node);
    bool node_first = topology->packages().count() >= topology->nodes().count() &&
                      std::ranges::any_of(nodes, [&](const auto& node) {
                        return node.second.size() <= count && node.second.is_subset_of(usable);
                      });
    for (bool spread : {false, true}) {
      BestFitOptions options = {.spread = spread, .align_by_l3 = true, .any_rest_in_l3 = round % 2 == 1};
      if (count == 0 || node_first || !test::has_fewest_l3_groups(*topology, options)) continue;
      CpuSet taken = best_fit(*topology, usable, count, options).value();
      ASSERT_EQ(test::used(test::cpus_by(*topology, &CpuInfo::l3), taken),
                fewest_l3_groups(*topology, usable, count, !spread && topology->cores().uniform_size() > 0))
          << format_id_list(taken) << " of " << format_id_list(usable) << " " << test::describe(options);
      searched++;
    }
  }
  EXPECT_GT(searched, 50);
}

TEST(BestFit, NeedsOnlyABoundedTimeOnTheLargestMachines) {
  Shape eight = {.packages = 2, .nodes_per_package = 4, .l3s_per_node = 4, .cores_per_l3 = 8, .threads = 2};
  Shape sixty_four = {
      .packages = 16, .nodes_per_package = 4, .l3s_per_node = 4, .cores_per_l3 = 8, .threads = 2};
  for (const Shape& shape : {eight, sixty_four}) {
    TopologyPtr topology = regular_machine(shape);
    test::Between between = test::choices(0);
    SCOPED_TRACE(test::where(0));
    CpuSet half;
    topology->cpus().for_each([&](int cpu) {
      if (test::chance(between, 50)) half.insert(cpu);
    });
    for (const BestFitOptions& options : test::all_best_fit_options()) {
      for (int count : {half.size() / 24 * 24, half.size() / 2 / 24 * 24 + 8}) {
        std::clock_t start = std::clock();  // CPU time
        ASSERT_EQ(best_fit(*topology, half, count, options).value().size(), count);
        // Milliseconds are usual; this is for the slowest sanitizer.
        ASSERT_LT(std::clock() - start, 5 * CLOCKS_PER_SEC) << test::describe(options);
      }
    }
  }
}

// The rule of packing, in plain sets. Of NUMA nodes and packages the kind with fewer elements is the larger
// one.
// 1. larger elements that are wholly free and not larger than what is still needed;
// 2. the same with the smaller kind; 3. the same with cores; 4. single CPUs, core by core.
// Elements are looked at one inside the other, in each those with the fewest free CPUs first, then by id; the
// order is computed again for each step.
class PlainPacking {
 public:
  PlainPacking(const Topology& topology, const CpuSet& available, int count) : needed_(count) {
    for (const CpuInfo& cpu : topology.spec().cpus) {
      nodes_[cpu.node].insert(cpu.cpu);
      packages_[cpu.package].insert(cpu.cpu);
      cores_[cpu.core].insert(cpu.cpu);
      if (available.contains(cpu.cpu)) free_.insert(cpu.cpu);
    }
  }

  CpuSet taken() {
    auto of_larger = [&] { return inside({everything()}, nodes_are_larger() ? nodes_ : packages_); };
    auto of_smaller = [&] { return inside(of_larger(), nodes_are_larger() ? packages_ : nodes_); };
    auto of_cores = [&] { return inside(of_smaller(), cores_); };
    take_whole(of_larger());
    take_whole(of_smaller());
    take_whole(of_cores());
    for (const std::set<int>& core : of_cores()) {
      for (int cpu : core) {
        if (needed_ > 0 && free_.contains(cpu)) take({cpu});
      }
    }
    return taken_;
  }

  // The CPUs of each NUMA node in which some are free, in the order in which nodes are drained.
  std::vector<std::set<int>> nodes() const {
    std::vector<std::set<int>> order;
    std::vector<std::set<int>> outer = {everything()};
    if (!nodes_are_larger()) outer = inside(outer, packages_);
    for (const std::set<int>& node : inside(outer, nodes_)) {
      if (std::ranges::find(order, node) == order.end()) order.push_back(node);
    }
    return order;
  }

 private:
  using Elements = std::map<int, std::set<int>>;

  bool nodes_are_larger() const { return nodes_.size() <= packages_.size(); }

  std::set<int> everything() const {
    std::set<int> all;
    for (const auto& [id, members] : cores_) all.insert(members.begin(), members.end());
    return all;
  }

  int free_in(const std::set<int>& members) const {
    return static_cast<int>(std::ranges::count_if(members, [&](int cpu) { return free_.contains(cpu); }));
  }

  std::vector<std::set<int>> inside(const std::vector<std::set<int>>& outer, const Elements& inner) const {
    std::vector<std::set<int>> order;
    for (const std::set<int>& surrounding : outer) {
      std::vector<std::pair<int, int>> sorted;
      for (const auto& [id, members] : inner) {
        bool shares = std::ranges::any_of(
            members, [&](int cpu) { return surrounding.contains(cpu) && free_.contains(cpu); });
        if (shares) sorted.emplace_back(free_in(members), id);
      }
      std::ranges::sort(sorted);
      for (auto [n, id] : sorted) order.push_back(inner.at(id));
    }
    return order;
  }

  void take_whole(const std::vector<std::set<int>>& order) {
    for (const std::set<int>& members : order) {
      int size = static_cast<int>(members.size());
      if (size <= needed_ && free_in(members) == size) take(members);
    }
  }

  void take(const std::set<int>& members) {
    for (int cpu : members) {
      taken_.insert(cpu);
      free_.erase(cpu);
      needed_--;
    }
  }

  Elements nodes_, packages_, cores_;
  std::set<int> free_;
  CpuSet taken_;
  int needed_;
};

TEST(BestFit, PacksByTheRuleWhateverIsFreeOnTinyMachines) {
  std::vector<TopologyPtr> machines = {
      regular_machine({.packages = 2, .cores_per_l3 = 2, .threads = 2}),
      regular_machine({.packages = 2, .nodes_per_package = 2, .cores_per_l3 = 1, .threads = 2}),
      regular_machine({.l3s_per_node = 2, .cores_per_l3 = 2, .threads = 2}),
      // two packages in one node, one of one core; second threads last
      machine({{0, 0, 0, 0, 0},
               {1, 1, 0, 0, 0},
               {2, 2, 1, 1, 0},
               {3, 0, 0, 0, 0},
               {4, 1, 0, 0, 0},
               {5, 2, 1, 1, 0}}),
      // hybrid: cores of two threads and of one
      machine({{0, 0, 0, 0, 0},
               {1, 0, 0, 0, 0},
               {2, 2, 0, 0, 0},
               {3, 2, 0, 0, 0},
               {4, 4, 0, 0, 0},
               {5, 5, 0, 0, 0},
               {6, 6, 0, 0, 0},
               {7, 7, 0, 0, 0}}),
      // uneven packages, holes, nodes 0 and 8
      machine({{1, 1, 0, 0, 0},
               {3, 1, 0, 0, 0},
               {4, 4, 0, 0, 0},
               {64, 64, 3, 3, 8},
               {65, 64, 3, 3, 8},
               {130, 130, 3, 3, 8},
               {131, 131, 3, 3, 8}}),
      // nodes that cross packages, more nodes than packages
      machine({{0, 0, 0, 0, 0},
               {1, 0, 0, 0, 0},
               {2, 2, 1, 1, 0},
               {3, 3, 0, 0, 1},
               {4, 4, 1, 1, 2},
               {5, 4, 1, 1, 2}}),
      // packages that cross nodes, more packages than nodes
      machine({{0, 0, 0, 0, 0},
               {1, 0, 0, 0, 0},
               {2, 2, 0, 1, 1},
               {3, 3, 1, 2, 1},
               {4, 4, 2, 3, 0},
               {5, 4, 2, 3, 0}}),
  };
  for (size_t i = 0; i < machines.size(); i++) {
    const Topology& topology = *machines[i];
    std::vector<int> all;
    topology.cpus().for_each([&](int cpu) { all.push_back(cpu); });
    for (unsigned subset = 0; subset < 1u << all.size(); subset++) {
      CpuSet available;
      for (size_t bit = 0; bit < all.size(); bit++) {
        if (subset >> bit & 1) available.insert(all[bit]);
      }
      for (int count = 0; count <= available.size(); count++) {
        ASSERT_EQ(best_fit(topology, available, count, {}).value(),
                  PlainPacking(topology, available, count).taken())
            << "machine " << i << ", " << count << " of " << format_id_list(available);
      }
    }
  }
}

TEST(BestFit, PacksByTheRuleOnRandomMachines) {
  for (uint32_t round = 0; round < 1000; round++) {
    SCOPED_TRACE(test::where(round));
    test::Between between = test::choices(round);
    auto topology = Topology::create(test::random_machine(between, {.max_nodes = 6, .max_cpus = 64})).value();
    CpuSet available = test::random_available(between, *topology) & topology->cpus();
    int count = between(0, available.size());
    ASSERT_EQ(best_fit(*topology, available, count, {}).value(),
              PlainPacking(*topology, available, count).taken())
        << count << " of " << format_id_list(available);
  }
}

double deviation(const std::vector<int>& values) {
  double mean = 0, sum = 0;
  for (int value : values) mean += value / static_cast<double>(values.size());
  for (int value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

// The smallest deviation of what is left free when each of k nodes gives its share and any of those that
// still have a group give the rest, a group from each in turn. `free` is in drain order, which is also the
// order of the turns.
double most_even(const std::vector<int>& free, int k, int count, int group) {
  double best = std::numeric_limits<double>::max();
  int share = count / k / group * group;
  for (unsigned nodes = 0; nodes < 1u << free.size(); nodes++) {
    if (std::popcount(nodes) != k) continue;
    std::vector<int> after_share = free;
    bool enough = true;
    unsigned with_a_group = 0;
    for (size_t i = 0; i < free.size(); i++) {
      if ((nodes >> i & 1) == 0) continue;
      after_share[i] -= share;
      if (after_share[i] < 0) enough = false;
      if (after_share[i] >= group) with_a_group |= 1u << i;
    }
    if (!enough) continue;
    for (unsigned givers = with_a_group;; givers = (givers - 1) & with_a_group) {
      std::vector<int> left = after_share;
      int rest = count - share * k;
      for (bool gave = true; rest > 0 && gave;) {
        gave = false;
        for (size_t i = 0; i < free.size(); i++) {
          if ((givers >> i & 1) == 0 || left[i] < group || rest == 0) continue;
          left[i] -= group;
          rest -= group;
          gave = true;
        }
      }
      if (rest == 0) best = std::min(best, deviation(left));
      if (givers == 0) break;
    }
  }
  return best;
}

TEST(BestFit, LeavesTheNodesAsEvenAsCanBeWhenDistributing) {
  int balanced = 0;
  for (uint32_t round = 0; round < 1500; round++) {
    SCOPED_TRACE(test::where(round));
    test::Between between = test::choices(round);
    // Up to eight nodes every combination is tried.
    auto topology =
        Topology::create(test::random_machine(between, {.max_nodes = between(1, 6), .max_cpus = 96})).value();
    CpuSet available = test::random_available(between, *topology) & topology->cpus();
    std::vector<int> free, left;
    for (int group : {1, 2, 4}) {
      int count = between(0, available.size() / group) * group;
      int k = test::nodes_of_a_balanced_answer(*topology, available, count, group);
      if (count == 0 || k == 0) continue;
      CpuSet taken = best_fit(*topology, available, count, distributed(group)).value();
      free.clear();
      left.clear();
      for (const std::set<int>& node : PlainPacking(*topology, available, count).nodes()) {
        auto count_in = [&](const CpuSet& set) {
          return static_cast<int>(std::ranges::count_if(node, [&](int cpu) { return set.contains(cpu); }));
        };
        free.push_back(count_in(available));
        left.push_back(count_in(available - taken));
      }
      // The score is rounded to thousandths.
      ASSERT_NEAR(deviation(left), most_even(free, k, count, group), 0.002)
          << count << " of " << format_id_list(available) << " " << test::describe(distributed(group));
      balanced++;
    }
  }
  EXPECT_GT(balanced, 100);
}

// Every amount that free cores can add up to comes in whole cores, and no other.
TEST(BestFit, AddsUpWholeCoresOfAnySizesIfThatIsPossible) {
  std::mt19937 engine(test::seed());
  auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(engine); };
  for (uint32_t round = 0; round < test::rounds(300); round++) {
    TopologyPtr topology = Topology::create(test::random_machine(between)).value();
    CpuSet available = test::random_available(between, *topology);
    const Level& cores = topology->cores();
    std::vector<uint64_t> free(topology->words());
    for (size_t w = 0; w < std::min(free.size(), available.words().size()); w++)
      free[w] = available.words()[w];
    std::set<int> sums{0};
    for (int core = 0; core < cores.count(); core++) {
      if (cores.free_in(core, free) != cores.size(core)) continue;
      std::set<int> more = sums;
      for (int sum : sums) more.insert(sum + cores.size(core));
      sums = std::move(more);
    }
    for (int count = 0; count <= available.size(); count++) {
      BestFitOptions options;
      options.whole_cores = true;
      Result<CpuSet> taken = best_fit(*topology, available, count, options);
      ASSERT_EQ(taken.ok(), sums.contains(count)) << count << " CPUs";
      if (!taken.ok()) continue;
      CpuSet got = std::move(taken).value();
      ASSERT_EQ(got.size(), count);
      ASSERT_TRUE(got.is_subset_of(available));
      got.for_each([&](int cpu) {
        for (int core = 0; core < cores.count(); core++) {
          for (const Level::WordMask& m : cores.masks(core)) {
            bool has = static_cast<int>(m.word) == cpu / 64 && (m.mask >> (cpu % 64) & 1) != 0;
            if (has) {
              ASSERT_EQ(got.words()[m.word] & m.mask, m.mask) << "a part of a core";
            }
          }
        }
      });
    }
  }
}

}  // namespace
}  // namespace numalign
