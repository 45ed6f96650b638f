#include "core/placement_question.h"

#include <algorithm>

namespace numalign {
namespace {

MergedHint read_hint(WireReader& wire, int nodes) {
  MergedHint hint{.admitted = true};
  hint.any = wire.flag();
  hint.mask = wire.mask(nodes);
  hint.preferred = wire.flag();
  return hint;
}

bool contains(NodeMask all, NodeMask some) { return (all & some) == some; }

}  // namespace

NarrowedHint narrow(const Offers& offers, const MergeRules& rules, const MergedHint& hint, bool by_socket) {
  if (hint.any || hint.mask.size() <= 1) return {hint, hint};
  JointOptions joint = rules.joint;
  joint.merge.policy = TopologyPolicy::kBestEffort;
  // The nodes of the devices are chosen already.
  joint.devices = rules.devices;
  // The best nodes among those of `near`.
  const auto best = [&](const MergedHint& near, std::span<const HintFamily> families) {
    joint.within = near.mask;
    const MergedHint merged = choose_jointly(families, joint).merged;
    return merged.admitted && !merged.any && contains(near.mask, merged.mask) ? merged : near;
  };
  const bool has_both = !offers.cpus.empty() && !offers.memory.empty();
  MergedHint near = hint;
  if (!by_socket && has_both) {
    std::vector<HintFamily> both(offers.cpus.begin(), offers.cpus.end());
    both.insert(both.end(), offers.memory.begin(), offers.memory.end());
    near = best(hint, both);
  }
  NarrowedHint narrowed{by_socket || offers.cpus.empty() ? near : best(near, offers.cpus), near};
  if (offers.memory.empty()) return narrowed;
  MemoryHintsRequest shared = offers.of_memory;
  shared.must = near.mask;
  const std::vector<HintFamily> families(shared.types.size(), memory_hints(shared));
  joint.within = near.mask;
  const MergedHint all = choose_jointly(families, joint).merged;
  if (!all.admitted || all.any || all.mask != near.mask) narrowed.memory = best(near, offers.memory);
  return narrowed;
}

CpuSet cpus_of_nodes(const Topology& topology, NodeMask nodes, bool by_socket) {
  SmallWords near(topology.words());
  const auto add = [&](const Level& level, int element) {
    for (const Level::WordMask& m : level.masks(element)) near[m.word] |= m.mask;
  };
  const std::vector<NodeInfo>& all = topology.spec().nodes;
  for (int element = 0; element < topology.nodes().count(); element++) {
    const auto found = std::ranges::lower_bound(all, topology.nodes().id(element), {},
                                                [](const NodeInfo& n) { return n.node; });
    if (!nodes.contains(static_cast<int>(found - all.begin()))) continue;
    add(topology.nodes(), element);
    if (!by_socket) continue;
    for (int package : topology.packages_of_node()[element]) add(topology.packages(), package);
  }
  return CpuSet::from_words(std::move(near));
}

void answer_placement(WireReader& wire, const Topology* topology, WireWriter answer) {
  const MergeRules rules = read_rules(wire);
  const int nodes = rules.joint.merge.nodes;
  const Offers offers = read_offers(wire, topology, nodes);
  const bool is_merged = wire.flag();
  const bool lists = wire.flag();
  JointChoice choice;
  if (!is_merged) choice.merged = read_hint(wire, nodes);
  const bool by_socket = wire.flag();
  const bool is_narrowed = wire.flag();
  wire.require(!is_narrowed || rules.is_joint, "only a joint choice is narrowed");
  const bool takes_cpus = wire.flag();
  BestFitQuestion fit;
  if (takes_cpus) {
    wire.require(topology != nullptr, "CPUs are taken on a topology");
    fit = read_best_fit(wire);
  }
  const bool takes_memory = wire.flag();
  wire.require(!takes_memory || !offers.memory.empty(), "memory is taken without a question");
  if (wire.failure() != nullptr) return;

  if (is_merged) {
    choice = merge_offers(offers.families, rules);
    write(answer, choice);
    if (lists)
      for (size_t i : offers.answers) answer.family(offers.families[i]);
    if (!choice.merged.admitted) return;
  }
  const MergedHint& hint = choice.merged;
  const NarrowedHint near = is_narrowed ? narrow(offers, rules, hint, by_socket) : NarrowedHint{hint, hint};
  answer.mask(near.cpus.mask);
  if (takes_cpus) {
    if (!near.cpus.any) {
      fit.near.near = cpus_of_nodes(*topology, near.cpus.mask, by_socket);
      fit.near.nodes = near.cpus.mask.size();
    }
    const Result<CpuSet> cpus = near_fit(*topology, fit.available, fit.count, fit.near, fit.options);
    answer.word(cpus.ok() ? 1 : 0);
    if (cpus.ok()) answer.cpus(cpus.value());
  }
  if (takes_memory) {
    const MemoryChoice memory = choose_memory(offers.of_memory, near.memory);
    answer.word(static_cast<uint32_t>(memory.outcome));
    answer.mask(memory.nodes);
    answer.word(static_cast<uint32_t>(memory.clash));
  }
}

}  // namespace numalign
