#include "core/merge_question.h"

#include <algorithm>

namespace numalign {
namespace {

enum Kind : uint32_t { kFamily, kCpus, kMemory, kDevices };

MergeOptions read_options(WireReader& wire) {
  MergeOptions options;
  options.nodes = wire.node_count();
  const uint32_t policy = wire.word();
  wire.require(policy <= static_cast<uint32_t>(TopologyPolicy::kSingleNumaNode), "a policy is from 0 to 3");
  options.policy = static_cast<TopologyPolicy>(policy);
  options.distances = wire.list();
  const size_t n = static_cast<size_t>(options.nodes);
  wire.require(options.distances.empty() || options.distances.size() == n * n,
               "a distance is needed for each pair of nodes");
  return options;
}

HintFamily cpus_of(WireReader& wire, const Topology* topology, int nodes) {
  wire.require(topology != nullptr && static_cast<int>(topology->spec().nodes.size()) == nodes,
               "the topology has another number of nodes");
  if (wire.failure() != nullptr) return {};
  CpuHintsRequest request = read_cpu_hints(wire, *topology);
  return wire.failure() == nullptr ? cpu_hints(*topology, request) : HintFamily();
}

HintFamily devices_of(WireReader& wire, int nodes) {
  DeviceHintsRequest request = read_device_hints(wire, nodes);
  return wire.failure() == nullptr ? device_hints(request) : HintFamily();
}

}  // namespace

Offers read_offers(WireReader& wire, const Topology* topology, int nodes) {
  Offers offers;
  std::vector<HintFamily>& families = offers.families;
  const size_t count = wire.word();
  constexpr size_t kUsual = 16;
  families.reserve(std::min(count, kUsual));
  size_t cpus = 0, memory = 0;  // positions behind them
  while (families.size() < count && wire.failure() == nullptr) {
    const uint32_t kind = wire.word();
    size_t times = 1;
    switch (kind) {
      case kFamily:
        wire.family(families.emplace_back());
        wire.require(families.back().nodes == nodes, "a family of hints has another number of nodes");
        continue;
      case kCpus:
        families.push_back(cpus_of(wire, topology, nodes));
        cpus = families.size();
        break;
      case kMemory:
        offers.of_memory = read_memory_hints(wire, nodes);
        if (wire.failure() != nullptr) break;
        families.push_back(memory_hints(offers.of_memory));
        times = offers.of_memory.types.size();
        memory = families.size();
        break;
      case kDevices:
        families.push_back(devices_of(wire, nodes));
        break;
      default:
        wire.require(false, "unknown kind of question");
    }
    if (wire.failure() != nullptr) break;
    offers.answers.push_back(families.size() - 1);
    // Each type of memory counts as a resource, with the same hints.
    for (; times > 1; times--) families.push_back(HintFamily(families.back()));
  }
  wire.require(families.size() == count, "a question about memory is for as many resources as it has types");
  // Only now they stay where they are.
  const std::span<const HintFamily> all = families;
  if (cpus > 0) offers.cpus = all.subspan(cpus - 1, 1);
  if (memory > 0) offers.memory = all.subspan(memory - 1, offers.of_memory.types.size());
  return offers;
}

MergeRules read_rules(WireReader& wire) {
  MergeRules rules;
  JointOptions& joint = rules.joint;
  joint.merge = read_options(wire);
  rules.is_joint = wire.flag();
  if (!rules.is_joint) return rules;
  joint.within = wire.mask(joint.merge.nodes);
  joint.rooms = wire.list();
  wire.require(joint.rooms.size() == static_cast<size_t>(joint.merge.nodes),
               "a room is needed for each node");
  rules.devices = wire.list();
  wire.require(rules.devices.empty() || rules.devices.size() == joint.rooms.size(),
               "devices are needed for each node, or none");
  return rules;
}

JointChoice merge_offers(std::span<const HintFamily> families, const MergeRules& rules) {
  if (rules.is_joint) return choose_jointly(families, rules.joint);
  return {.merged = merge_hints(families, rules.joint.merge)};
}

void write(WireWriter& answer, const JointChoice& choice) {
  const MergedHint& merged = choice.merged;
  answer.mask(merged.mask);
  for (bool flag : {merged.any, merged.preferred, merged.admitted, merged.exact}) answer.word(flag ? 1 : 0);
  for (uint32_t count : {choice.sets, choice.nearest, choice.tightest}) answer.word(count);
}

void answer_merge(WireReader& wire, const Topology* topology, WireWriter answer) {
  const MergeRules rules = read_rules(wire);
  const Offers offers = read_offers(wire, topology, rules.joint.merge.nodes);
  if (wire.failure() != nullptr) return;
  write(answer, merge_offers(offers.families, rules));
  for (size_t i : offers.answers) answer.family(offers.families[i]);
}

}  // namespace numalign
