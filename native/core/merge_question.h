// The question of a whole merge: hints, and questions whose answers are hints, merged in one call
// from JavaScript, because each call takes as long as the hints of a resource. Pure function; safe to
// call from any thread.
#pragma once

#include <vector>

#include "core/joint_choice.h"
#include "core/wire.h"

namespace numalign {

// Families to merge.
struct Offers {
  std::vector<HintFamily> families;
  std::vector<size_t> answers;  // those that answer questions
  // The questions about CPUs and memory: their families, and the amounts of memory. Memory has as many
  // families as types.
  std::span<const HintFamily> cpus{};
  std::span<const HintFamily> memory{};
  MemoryHintsRequest of_memory;
};

// Reads the number of families, and each family or question after its kind.
Offers read_offers(WireReader& wire, const Topology* topology, int nodes);

// How offers are merged: jointly, or as the kubelet does.
struct MergeRules {
  bool is_joint = false;
  JointOptions joint;
  std::span<const uint32_t> devices = {};  // by node, for what goes near the chosen nodes
};

MergeRules read_rules(WireReader& wire);
JointChoice merge_offers(std::span<const HintFamily> families, const MergeRules& rules);
void write(WireWriter& answer, const JointChoice& choice);

// Reads nodes, policy and distances; whether the choice is joint, and if so the allowed nodes and the
// rooms and devices (or none); then each family or question, after its kind. Writes the merged mask, whether
// it is any, preferred, admitted and exact, the counts of a joint choice, and the family of each question.
// `topology`: for questions about CPUs; null if there are none. Writes nothing of use if the reader
// fails.
void answer_merge(WireReader& wire, const Topology* topology, WireWriter answer);

}  // namespace numalign
