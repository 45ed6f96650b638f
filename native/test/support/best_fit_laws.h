// What holds for every answer of best_fit, on every machine.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/best_fit.h"
#include "core/id_list.h"

namespace numalign::test {

inline std::vector<BestFitOptions> all_best_fit_options() {
  std::vector<BestFitOptions> all;
  for (bool spread : {false, true}) {
    for (bool align_by_l3 : {false, true}) {
      all.push_back({spread, align_by_l3, false, 1});
      if (align_by_l3) all.push_back({spread, align_by_l3, false, 1, false, true});
      for (int group_size : {1, 2, 3, 4, 8}) all.push_back({spread, align_by_l3, true, group_size});
    }
  }
  return all;
}

inline std::string describe(const BestFitOptions& options) {
  std::string text = options.spread ? "spread" : "packed";
  if (options.align_by_l3) text += ", by L3";
  if (options.any_rest_in_l3) text += ", any rest";
  if (options.distribute_across_numa) {
    text += ", over nodes in groups of " + std::to_string(options.cpu_group_size);
  }
  return text;
}

inline std::map<int, CpuSet> cpus_by(const Topology& topology, int CpuInfo::*member) {
  std::map<int, CpuSet> elements;
  for (const CpuInfo& cpu : topology.spec().cpus) elements[cpu.*member].insert(cpu.cpu);
  return elements;
}

// How many NUMA nodes a balanced answer uses: the smallest number, from what the average node of the empty
// machine asks for, at which each can give its equal share in whole groups and together they have enough
// groups. 0 where there is none.
inline int nodes_of_a_balanced_answer(const Topology& topology, const CpuSet& usable, int count, int group) {
  if (count == 0) return 0;
  auto divide_up = [](int a, int b) { return (a + b - 1) / b; };
  std::vector<int> free;
  std::map<int, CpuSet> nodes = cpus_by(topology, &CpuInfo::node);
  for (const auto& [id, cpus] : nodes) {
    if (int n = (cpus & usable).size(); n > 0) free.push_back(n);
  }
  std::ranges::sort(free, std::greater<>());
  int groups = count / group;
  int in_average_node = divide_up(divide_up(topology.cpus().size(), group), static_cast<int>(nodes.size()));
  for (int k = divide_up(groups, in_average_node); k <= std::min(groups, static_cast<int>(free.size()));
       k++) {
    int available_groups = 0;
    for (int i = 0; i < k; i++) available_groups += free[i] / group;
    if (free[k - 1] >= groups / k * group && available_groups >= groups) return k;
  }
  return 0;
}

inline bool of_one_size(const std::map<int, CpuSet>& elements) {
  return std::ranges::all_of(elements, [&](const auto& element) {
    return element.second.size() == elements.begin()->second.size();
  });
}

// Where cores, packages or L3 groups differ in size, an answer by L3 has the fewest groups instead of the
// kubelet's: the laws of these are the exhaustive search's.
inline bool has_fewest_l3_groups(const Topology& topology, const BestFitOptions& options) {
  return options.align_by_l3 && !options.distribute_across_numa &&
         !(of_one_size(cpus_by(topology, &CpuInfo::core)) &&
           of_one_size(cpus_by(topology, &CpuInfo::package)) && of_one_size(cpus_by(topology, &CpuInfo::l3)));
}

// How many of the elements these CPUs are in.
inline int used(const std::map<int, CpuSet>& elements, const CpuSet& cpus) {
  return static_cast<int>(
      std::ranges::count_if(elements, [&](const auto& element) { return element.second.intersects(cpus); }));
}

// "" where the answer keeps every law, else the law it broke.
inline std::string broken_law(const Topology& topology, const CpuSet& available, int count,
                              const BestFitOptions& options) {
  CpuSet usable = available & topology.cpus();
  auto answer = best_fit(topology, available, count, options);
  if (count > usable.size()) {
    if (answer.ok()) return "it answered although too few CPUs are available";
    if (answer.error().code != ErrorCode::kInsufficientCpus) return "it failed with another code";
    std::string message =
        std::to_string(count) + " CPUs were asked for, " + std::to_string(usable.size()) + " are available";
    return answer.error().message == message ? "" : "it failed with the message: " + answer.error().message;
  }
  if (!answer.ok()) return "it failed although enough CPUs are available: " + answer.error().message;

  const CpuSet& taken = answer.value();
  if (taken.size() != count)
    return "it took " + std::to_string(taken.size()) + " CPUs: " + format_id_list(taken);
  if (!taken.is_subset_of(usable)) return "it took unavailable CPUs: " + format_id_list(taken - usable);
  if (best_fit(topology, available, count, options).value() != taken)
    return "it answers differently each time";
  if (best_fit(topology, usable, count, options).value() != taken)
    return "CPUs of no machine change the answer";
  if (count == 0) return "";

  std::map<int, CpuSet> cores = cpus_by(topology, &CpuInfo::core);
  std::map<int, CpuSet> nodes = cpus_by(topology, &CpuInfo::node);
  std::map<int, CpuSet> packages = cpus_by(topology, &CpuInfo::package);
  int group = options.cpu_group_size;
  bool distributed = options.distribute_across_numa && count % group == 0;

  // Whole cores in, whole cores out.
  bool all_cores_whole = true;
  int threads = cores.begin()->second.size();
  for (const auto& [id, cpus] : cores) {
    if (cpus.size() != threads || (cpus.intersects(usable) && !cpus.is_subset_of(usable)))
      all_cores_whole = false;
  }
  if (all_cores_whole && count % threads == 0 && !options.spread && (!distributed || group % threads == 0)) {
    for (const auto& [id, cpus] : cores) {
      if (cpus.intersects(taken) && !cpus.is_subset_of(taken))
        return "it broke a core: " + format_id_list(taken);
    }
  }

  if (distributed) {
    int k = nodes_of_a_balanced_answer(topology, usable, count, group);
    if (k == 0) return "";
    int used = 0;
    for (const auto& [id, cpus] : nodes) {
      int given = (cpus & taken).size();
      if (given == 0) continue;
      used++;
      if (given < count / k / group * group)
        return "a node gives less than its share: " + format_id_list(taken);
      if (given % group != 0) return "a group is split over nodes: " + format_id_list(taken);
    }
    return used == k ? "" : "it used " + std::to_string(used) + " nodes instead of " + std::to_string(k);
  }

  // Whichever of nodes and packages are larger are looked at first, and then the others.
  auto whole_one = [&](const std::map<int, CpuSet>& elements, const CpuSet& of) {
    return std::ranges::any_of(elements, [&](const auto& element) {
      return element.second.size() <= count && element.second.is_subset_of(of);
    });
  };
  const std::map<int, CpuSet>& larger = packages.size() >= nodes.size() ? nodes : packages;
  const std::map<int, CpuSet>& smaller = packages.size() >= nodes.size() ? packages : nodes;
  if (has_fewest_l3_groups(topology, options)) {
    // NUMA nodes come first where packages are not the larger ones, and then cores of one size.
    bool node_first = packages.size() >= nodes.size() && whole_one(nodes, usable);
    if (!node_first && (options.spread || !of_one_size(cores))) {
      std::map<int, CpuSet> l3_groups = cpus_by(topology, &CpuInfo::l3);
      std::vector<int> free;
      for (const auto& [id, cpus] : l3_groups) free.push_back((cpus & usable).size());
      std::ranges::sort(free, std::greater<>());
      int fewest = 0;
      for (int n = 0; n < count; fewest++) n += free[fewest];
      if (used(l3_groups, taken) != fewest) return "not the fewest L3 groups: " + format_id_list(taken);
    }
  } else if (whole_one(larger, usable)) {
    if (!whole_one(larger, taken)) return "it passed over a whole node or package: " + format_id_list(taken);
  } else if (whole_one(smaller, usable)) {
    if (!whole_one(smaller, taken)) return "it passed over a whole node or package: " + format_id_list(taken);
  } else if (options.align_by_l3 && !options.distribute_across_numa) {
    std::map<int, CpuSet> l3_groups = cpus_by(topology, &CpuInfo::l3);
    bool inside_one =
        std::ranges::any_of(l3_groups, [&](const auto& l3) { return taken.is_subset_of(l3.second); });
    if (whole_one(l3_groups, usable) && !whole_one(l3_groups, taken) && !inside_one) {
      return "it passed over a whole L3 group: " + format_id_list(taken);
    }
  }

  if (!options.spread) {
    int newly_broken = 0;
    for (const auto& [id, cpus] : cores) {
      if (cpus.is_subset_of(usable) && cpus.intersects(taken) && !cpus.is_subset_of(taken)) newly_broken++;
    }
    if (newly_broken > 1)
      return "it broke " + std::to_string(newly_broken) + " cores: " + format_id_list(taken);
  }
  return "";
}

}  // namespace numalign::test
