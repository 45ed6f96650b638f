#include "core/repacking_room.h"

#include <algorithm>
#include <bit>

#include "core/hint_family.h"

namespace numalign {

RepackingRoom::RepackingRoom(const RepackingGround& ground)
    : ground_(&ground),
      counts_(2 * ground.views.size() * ground.nodes),
      bytes_(2 * ground.types * ground.nodes),
      groups_(ground.nodes) {
  for (size_t view = 0; view < ground.views.size(); view++) {
    const CpuView& each = ground.views[view];
    for (size_t node = 0; node < ground.nodes; node++) free(view, node) = each.free[node];
    first_core_.push_back(counts_.size());
    for (const CpuView::Core& core : each.cores) {
      counts_.push_back(core.free);
      if (core.free == core.cpus) whole(view, static_cast<size_t>(core.node)) += core.units;
    }
  }
  for (size_t type = 0; type < ground.types; type++) {
    for (size_t node = 0; node < ground.nodes; node++) {
      spare(type, node) = ground.memory[at(type, node)].spare;
      booked(type, node) = ground.memory[at(type, node)].booked;
    }
  }
  for (const MemoryGroup& group : ground.groups) {
    for_each_node(group.nodes.bits(), [&](int node) { groups_[static_cast<size_t>(node)] = group; });
  }
}

int RepackingRoom::units_on(size_t view, size_t node) const {
  const CpuView& each = ground_->views[view];
  int cpus = std::max(0, free(view, node));
  return each.cores.empty() ? cpus : std::min(whole(view, node), cpus / each.cpus_per_unit);
}

int RepackingRoom::cpus_in(size_t view, NodeMask nodes) const {
  int sum = 0;
  for_each_node(nodes.bits(), [&](int node) { sum += std::max(0, free(view, static_cast<size_t>(node))); });
  return sum;
}

double RepackingRoom::free_on(size_t type, size_t node) const {
  return std::clamp(bytes_[at(type, node)], 0.0, ground_->memory[at(type, node)].most);
}

double RepackingRoom::free_in(size_t type, NodeMask nodes) const {
  double sum = 0;
  for_each_node(nodes.bits(), [&](int node) { sum += free_on(type, static_cast<size_t>(node)); });
  // An allocation spread over these nodes and others takes from these at least what the others
  // cannot give.
  for (const Spread& spread : spread_) {
    if ((spread.memory & nodes).empty()) continue;
    double elsewhere = 0;
    for_each_node(spread.memory.bits() & ~nodes.bits(),
                  [&](int node) { elsewhere += free_on(type, static_cast<size_t>(node)); });
    sum -= std::max(0.0, spread.demand->bytes[type] - elsewhere);
  }
  return sum;
}

// True if existing allocations do not block these nodes.
bool RepackingRoom::is_open(NodeMask nodes) const {
  bool is_open = true;
  for_each_node(nodes.bits(), [&](int node) {
    NodeMask group = groups_[static_cast<size_t>(node)].nodes;
    is_open = is_open && (group.empty() || group == nodes);
  });
  return is_open;
}

bool RepackingRoom::has_memory(const RepackingDemand& demand, NodeMask nodes) const {
  for (size_t type = 0; type < demand.bytes.size(); type++) {
    if (demand.bytes[type] > 0 && free_in(type, nodes) < demand.bytes[type]) return false;
  }
  return true;
}

bool RepackingRoom::fits(const RepackingDemand& demand, NodeMask cpus, NodeMask memory) const {
  if (demand.units > 0) {
    int units = 0;
    for_each_node(cpus.bits(), [&](int node) { units += units_on(demand.view, static_cast<size_t>(node)); });
    if (units < demand.units) return false;
    // For views with cores, the decision finds out how many cores a spread allocation breaks.
    if (!spread_.empty() && ground_->views[demand.view].cores.empty()) {
      for (const Spread& spread : spread_) {
        if ((spread.cpus & cpus).empty()) continue;
        int elsewhere = cpus_in(demand.view, NodeMask(spread.cpus.bits() & ~cpus.bits()));
        units -= std::max(0, spread.demand->cpus_by_view[demand.view] - elsewhere);
      }
      if (units < demand.units) return false;
    }
  }
  if (demand.bytes.empty() || memory.empty()) return true;
  if (!has_memory(demand, memory)) return false;
  if (!demand.is_one_block) return memory.size() > 1 || is_open(memory);
  if (is_open(memory)) return true;
  // The memory may also be on a subset of these nodes.
  for (uint64_t some = (memory.bits() - 1) & memory.bits(); some != 0; some = (some - 1) & memory.bits()) {
    if (is_open(NodeMask(some)) && has_memory(demand, NodeMask(some))) return true;
  }
  return false;
}

void RepackingRoom::give_back(const RepackingHolding& holding, bool with_memory) {
  for (size_t i = 0; i < holding.cpus.size(); i++) counts_[i] += holding.cpus[i];
  for (const RepackingHolding::CoreShare& share : holding.shares) {
    const CpuView::Core& core = ground_->views[share.view].cores[share.core];
    int& cpus = counts_[first_core_[share.view] + share.core];
    cpus += share.cpus;
    if (cpus == core.cpus) whole(share.view, static_cast<size_t>(core.node)) += core.units;
  }
  if (!with_memory) return;
  for (const MemoryShare& share : holding.memory) {
    double rest = share.bytes;
    for_each_node(share.nodes.bits(), [&](int node) {
      double& bytes = booked(share.type, static_cast<size_t>(node));
      double part = std::min(rest, bytes);
      bytes -= part;
      spare(share.type, static_cast<size_t>(node)) += part;
      rest -= part;
      MemoryGroup& group = groups_[static_cast<size_t>(node)];
      if (group.nodes == share.nodes && --group.blocks == 0) group.nodes = NodeMask();
    });
  }
}

void RepackingRoom::take(const RepackingDemand& demand, NodeMask cpus, NodeMask memory) {
  bool has_memory = !demand.bytes.empty() && !memory.empty();
  Spread spread{&demand, cpus, has_memory ? memory : NodeMask()};
  if (cpus.size() == 1) {
    int node = std::countr_zero(cpus.bits());
    for (size_t view = 0; view < ground_->views.size(); view++) {
      free(view, static_cast<size_t>(node)) -= demand.cpus_by_view[view];
    }
    spread.cpus = NodeMask();
  }
  if (has_memory && memory.size() == 1) {
    auto node = static_cast<size_t>(std::countr_zero(memory.bits()));
    for (size_t type = 0; type < demand.bytes.size(); type++) {
      if (demand.bytes[type] == 0) continue;
      spare(type, node) -= demand.bytes[type];
      booked(type, node) += demand.bytes[type];
      if (groups_[node].nodes.empty()) groups_[node] = {memory, 0};
      groups_[node].blocks++;
    }
    spread.memory = NodeMask();
  }
  if (!spread.cpus.empty() || !spread.memory.empty()) spread_.push_back(spread);
}

}  // namespace numalign
