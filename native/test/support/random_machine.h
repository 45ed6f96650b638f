// Machines that no vendor sells, made of small choices: hybrid cores, missing threads, uneven sockets, holes
// in every numbering, several L3 groups, several nodes per socket, several sockets per node, nodes and
// sockets that cross, nodes without CPUs. The choices come from a seeded engine in tests and from the
// fuzzer's bytes in native/fuzz.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "core/topology.h"

namespace numalign::test {

// Any integer from `low` to `high`, both included.
using Between = std::function<int(int low, int high)>;

inline bool chance(const Between& between, int percent) { return between(1, 100) <= percent; }

template <class T>
void shuffle(const Between& between, std::vector<T>& values) {
  for (size_t i = values.size(); i > 1; i--) {
    std::swap(values[i - 1], values[between(0, static_cast<int>(i) - 1)]);
  }
}

struct MachineLimits {
  int max_nodes = 8;
  int max_cpus = 160;
};

// Which package and which node a group of cores belongs to, as positions.
using Cells = std::vector<std::pair<int, int>>;

inline Cells random_cells(const Between& between, int max_nodes) {
  Cells cells;
  int packages = between(1, std::min(4, max_nodes));
  switch (between(0, 2)) {
    case 0: {  // nodes inside packages
      int each = between(1, max_nodes / packages);
      for (int node = 0; node < packages * each; node++) cells.emplace_back(node / each, node);
      return cells;
    }
    case 1: {  // packages inside nodes
      int nodes = between(1, max_nodes);
      int each = between(1, 3);
      for (int package = 0; package < nodes * each; package++) cells.emplace_back(package, package / each);
      return cells;
    }
    default: {  // neither
      int nodes = between(1, max_nodes);
      int count = std::max(packages, nodes) + between(0, packages);
      for (int i = 0; i < count; i++) cells.emplace_back(between(0, packages - 1), between(0, nodes - 1));
      return cells;
    }
  }
}

// Always a description that Topology::create accepts.
inline TopologySpec random_machine(const Between& between, MachineLimits limits = {}) {
  Cells cells = random_cells(between, limits.max_nodes);
  bool regular = chance(between, 50);
  bool l3_per_package = chance(between, 25);
  int usual_l3s = between(1, 3);
  int usual_cores = between(1, 4);
  int usual_threads = between(1, 4);
  auto amount = [&](int usual, int most) { return regular ? usual : between(1, most); };

  struct Thread {
    int core, thread;
    CpuInfo cpu;
  };
  std::vector<Thread> threads;
  int cores = 0;
  int l3 = static_cast<int>(cells.size());  // lower ids are for L3 groups as large as a package
  for (auto [package, node] : cells) {
    int l3s = amount(usual_l3s, 3);
    for (int i = 0; i < l3s; i++, l3++) {
      int cores_in_l3 = amount(usual_cores, 4);
      for (int j = 0; j < cores_in_l3; j++, cores++) {
        int threads_in_core = amount(usual_threads, 4);
        for (int t = 0; t < threads_in_core && static_cast<int>(threads.size()) < limits.max_cpus; t++) {
          if (!regular && !threads.empty() && chance(between, 15)) continue;  // offline
          threads.push_back({cores, t, {0, 0, package, 0, l3_per_package ? package : l3, node}});
        }
      }
    }
  }

  // CPU ids: thread after thread of a core, or first all first threads, or anyhow.
  int numbering = between(0, 2);
  if (numbering == 1) std::ranges::stable_sort(threads, {}, &Thread::thread);
  if (numbering == 2) shuffle(between, threads);
  bool holes = chance(between, 30);
  int id = 0;
  for (Thread& thread : threads) {
    if (holes) id += between(0, 70);
    thread.cpu.cpu = id++;
  }
  int shift = chance(between, 5) ? CpuSet::kMaxId - threads.back().cpu.cpu : 0;

  int package_step = between(1, 3);
  int node_step = chance(between, 25) ? 8 : 1;
  TopologySpec spec;
  std::map<int, int> first_of_core, first_of_package;
  for (Thread& thread : threads) {
    CpuInfo cpu = thread.cpu;
    cpu.cpu += shift;
    cpu.core = first_of_core.try_emplace(thread.core, cpu.cpu).first->second;
    cpu.die = first_of_package.try_emplace(cpu.package, cpu.cpu).first->second;
    cpu.package *= package_step;
    cpu.node *= node_step;
    spec.cpus.push_back(cpu);
    spec.possible.insert(cpu.cpu);
    spec.allowed.insert(cpu.cpu);
  }

  int nodes = 0;
  for (auto [package, node] : cells) nodes = std::max(nodes, node + 1);
  if (chance(between, 20)) nodes++;  // memory only
  bool distances = chance(between, 50);
  for (int i = 0; i < nodes; i++) {
    NodeInfo node{i * node_step, uint64_t{1} << 30, {}, {}};
    for (int j = 0; distances && j < nodes; j++) node.distances.push_back(i == j ? 10 : 20);
    spec.nodes.push_back(node);
  }
  return spec;
}

// Free CPUs: each with the same chance, or core by core; now and then also one that the machine does not
// have.
inline CpuSet random_available(const Between& between, const Topology& topology) {
  CpuSet available;
  int percent = chance(between, 25) ? 100 : between(0, 100);
  if (chance(between, 50)) {
    for (const CpuInfo& cpu : topology.spec().cpus) {
      if (chance(between, percent)) available.insert(cpu.cpu);
    }
  } else {
    std::map<int, bool> free;
    for (const CpuInfo& cpu : topology.spec().cpus) {
      if (free.try_emplace(cpu.core, chance(between, percent)).first->second) available.insert(cpu.cpu);
    }
  }
  if (chance(between, 20)) available.insert(between(0, CpuSet::kMaxId));
  return available;
}

}  // namespace numalign::test
