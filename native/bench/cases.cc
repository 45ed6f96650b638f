#include "bench/cases.h"

#include <random>

#include "core/best_fit.h"
#include "core/cpu_hints.h"
#include "core/device_hints.h"
#include "core/hint_merger.h"
#include "core/id_list.h"
#include "core/memory_hints.h"

namespace numalign::bench {
namespace {

constexpr size_t kVariants = 64;
constexpr uint64_t kGiB = uint64_t{1} << 30;

using TopologyPtr = std::shared_ptr<const Topology>;

// The compiler must not find out that nothing reads the answer.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

// Two packages; the threads of a core are half of the machine apart, as Linux numbers them.
TopologyPtr machine(int nodes, int cpus) {
  TopologySpec spec;
  int cores = cpus / 2;
  int cores_per_node = cores / nodes;
  for (int cpu = 0; cpu < cpus; cpu++) {
    int core = cpu % cores;
    int node = core / cores_per_node;
    CpuInfo info{};
    info.cpu = cpu;
    info.core = core;
    info.package = node / std::max(1, nodes / 2);
    info.die = info.package;
    info.l3 = core / 8;
    info.node = node;
    spec.cpus.push_back(info);
    spec.possible.insert(cpu);
  }
  spec.allowed = spec.possible;
  for (int node = 0; node < nodes; node++) spec.nodes.push_back({node, 64 * kGiB, {}, {}});
  return Topology::create(std::move(spec)).value();
}

// About half of the machine is free.
std::vector<CpuSet> free_sets(const Topology& topology) {
  std::mt19937 random(7);
  std::vector<CpuSet> sets(kVariants);
  for (CpuSet& set : sets) {
    topology.cpus().for_each([&](int cpu) {
      if (random() % 2 == 0) set.insert(cpu);
    });
  }
  return sets;
}

Call best_fit_calls(int nodes, int cpus, int count, BestFitOptions options) {
  TopologyPtr topology = machine(nodes, cpus);
  return [topology, count, options, sets = free_sets(*topology)](size_t i) {
    keep(best_fit(*topology, sets[i % kVariants], count, options));
  };
}

Call cpu_hints_calls(int nodes, int cpus, int count) {
  TopologyPtr topology = machine(nodes, cpus);
  return [topology, count, sets = free_sets(*topology)](size_t i) {
    keep(cpu_hints(*topology, {.available = sets[i % kVariants], .reusable = {}, .count = count}));
  };
}

// Hints of CPUs, as many lists as there are resources. `scarce`: of some nodes each list has nothing, so that
// no mask is preferred by all and every combination counts.
Call merge_calls(int nodes, int lists, bool scarce) {
  TopologyPtr topology = machine(nodes, 64 * nodes);
  std::vector<CpuSet> sets = free_sets(*topology);
  std::vector<std::vector<HintFamily>> variants(kVariants);
  for (size_t i = 0; i < kVariants; i++) {
    for (int list = 0; list < lists; list++) {
      CpuSet free = sets[(i + static_cast<size_t>(list)) % kVariants];
      if (scarce) {
        for (int cpu = 0; cpu < 64 * nodes; cpu++) {
          if (topology->spec().cpus[static_cast<size_t>(cpu)].node % lists == list) free.erase(cpu);
        }
      }
      int count = scarce ? 40 : 1 + list;
      variants[i].push_back(cpu_hints(*topology, {.available = free, .reusable = {}, .count = count}));
    }
  }
  MergeOptions options;
  options.nodes = nodes;
  return [options, variants](size_t i) { keep(merge_hints(variants[i % kVariants], options)); };
}

Call memory_hints_calls(int nodes) {
  std::vector<MemoryHintsRequest> requests(kVariants);
  std::mt19937 random(7);
  for (MemoryHintsRequest& request : requests) {
    request.nodes = nodes;
    MemoryType& type = request.types.emplace_back();
    type.request = 8 * kGiB;
    for (int node = 0; node < nodes; node++) {
      type.free.push_back(random() % 64 * kGiB);
      type.allocatable.push_back(64 * kGiB);
      request.group.emplace_back();
    }
  }
  return [requests](size_t i) { keep(memory_hints(requests[i % kVariants])); };
}

Call device_hints_calls(int nodes) {
  std::vector<DeviceHintsRequest> requests(kVariants);
  std::mt19937 random(7);
  for (DeviceHintsRequest& request : requests) {
    request.nodes = nodes;
    request.count = 1;
    for (int i = 0; i < 8; i++) {
      request.devices.push_back({NodeMask(uint64_t{1} << (i % nodes)), random() % 2 == 0, false});
    }
  }
  return [requests](size_t i) { keep(device_hints(requests[i % kVariants])); };
}

Call format_calls(int nodes, int cpus) {
  std::vector<CpuSet> sets = free_sets(*machine(nodes, cpus));
  return [sets](size_t i) { keep(format_id_list(sets[i % kVariants])); };
}

}  // namespace

std::vector<Case> cases() {
  BestFitOptions distributed;
  distributed.distribute_across_numa = true;
  const std::string fit = "numalign::best_fit(*";
  const std::string cpus = "numalign::cpu_hints(*";
  const std::string merge = "numalign::merge_hints(*";
  return {
      {"best_fit, packed, 64 of 512", fit, [] { return best_fit_calls(8, 512, 64, {}); }},
      {"best_fit, packed, 2 of 128", fit, [] { return best_fit_calls(2, 128, 2, {}); }},
      {"best_fit, distributed, 64 of 512", fit, [=] { return best_fit_calls(8, 512, 64, distributed); }},
      {"cpu_hints, 8 nodes, 512 CPUs", cpus, [] { return cpu_hints_calls(8, 512, 16); }},
      {"cpu_hints, 2 nodes, 128 CPUs", cpus, [] { return cpu_hints_calls(2, 128, 2); }},
      {"memory_hints, 8 nodes", "numalign::memory_hints(*", [] { return memory_hints_calls(8); }},
      {"device_hints, 8 nodes", "numalign::device_hints(*", [] { return device_hints_calls(8); }},
      {"merge_hints, 2 nodes, 2 lists", merge, [] { return merge_calls(2, 2, false); }},
      {"merge_hints, 8 nodes, 4 lists", merge, [] { return merge_calls(8, 4, false); }},
      {"merge_hints, 8 nodes, 4 lists, none preferred", merge, [] { return merge_calls(8, 4, true); }},
      {"format_id_list, half of 512", "*numalign::format_id_list*", [] { return format_calls(8, 512); }},
  };
}

}  // namespace numalign::bench
