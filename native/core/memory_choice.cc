#include "core/memory_choice.h"

namespace numalign {
namespace {

bool has_enough(const MemoryHintsRequest& request, NodeMask nodes) {
  for (const MemoryType& type : request.types) {
    uint64_t free = 0;
    for_each_node(nodes.bits(), [&](int node) { free += type.free[node]; });
    if (free < type.request) return false;
  }
  return true;
}

// The kubelet takes a single node out of a group, and cannot read its own state afterwards.
bool breaks_group(const MemoryHintsRequest& request, NodeMask nodes) {
  if (nodes.size() != 1) return false;
  const int only = std::countr_zero(nodes.bits());
  return request.group[only].size() > 1 || request.closed.contains(only);
}

}  // namespace

MemoryChoice choose_memory(MemoryHintsRequest request, const MergedHint& hint) {
  using Outcome = MemoryChoice::Outcome;
  MemoryChoice choice{.outcome = Outcome::kChosen, .nodes = hint.any ? request.must : hint.mask};
  bool is_preferred = hint.preferred;
  // False, with the outcome, if there is none.
  const auto widen = [&] {
    request.must = choice.nodes;
    const HintFamily family = memory_hints(request);
    const auto* list = std::get_if<HintList>(&family.masks);
    const bool is_empty = list != nullptr && list->empty();
    const MergedHint best = merge_hints({&family, 1}, {.nodes = request.nodes, .distances = {}});
    choice.outcome = is_empty                          ? Outcome::kTooLittle
                     : is_preferred && !best.preferred ? Outcome::kTooWide
                                                       : Outcome::kChosen;
    if (choice.outcome != Outcome::kChosen) return false;
    choice.nodes = best.mask;
    is_preferred = best.preferred;
    return true;
  };
  if (hint.any && !widen()) return choice;
  if ((breaks_group(request, choice.nodes) || !has_enough(request, choice.nodes)) && !widen()) return choice;
  for (int node = 0; node < request.nodes; node++) {
    if (!choice.nodes.contains(node)) continue;
    const NodeMask group = request.group[node];
    if ((group.empty() || group == choice.nodes) && !request.closed.contains(node)) continue;
    choice.outcome = Outcome::kOtherGroup;
    choice.clash = node;
    break;
  }
  return choice;
}

}  // namespace numalign
