// The merge: turns the hints of every resource and a policy into one hint and a verdict. Its
// results equal those of walking the cross product of all hints, as the kubelet's Topology Manager
// (v1.32) does, without walking it. The best merged hint depends only on the masks that all prefer,
// and on the masks that an AND of one hint per resource can give. Pure function; safe to call from
// any thread.
#pragma once

#include <cstdint>
#include <span>

#include "core/hint_family.h"

namespace numalign {

enum class TopologyPolicy { kNone, kBestEffort, kRestricted, kSingleNumaNode };

struct MergeOptions {
  int nodes = 0;  // of the machine
  TopologyPolicy policy = TopologyPolicy::kBestEffort;
  // nodes x nodes; if not empty, the closer of two masks of one size wins
  // (prefer-closest-numa-nodes).
  std::span<const uint32_t> distances;
  // Above this many nodes, masks are searched instead of enumerated, in at most `budget` steps of
  // about 50 ns.
  int enumerated = kEnumeratedNodes;
  int budget = 100'000;
};

struct MergedHint {
  bool any = false;  // no restriction on nodes; the mask is then empty
  NodeMask mask;
  bool preferred = false;
  bool admitted = false;
  bool exact = true;  // false: the budget ran out or a family is approximate; a better mask may exist

  friend bool operator==(const MergedHint&, const MergedHint&) = default;
};

// With the policy none: any, admitted. REQUIRES: every family has options.nodes nodes, 1 to 64;
// distances empty or nodes * nodes.
MergedHint merge_hints(std::span<const HintFamily> families, const MergeOptions& options);

}  // namespace numalign
