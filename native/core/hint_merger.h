// The merge: from the hints of every resource and a policy to one hint and a verdict. Its results are those
// of walking the cross product of all hints, as the kubelet's Topology Manager (v1.32) does, but the product
// is never walked: the best merged hint depends only on which masks are preferred by all, and on which masks
// an AND of one hint a resource can give. Pure function; safe to call from any thread.
#pragma once

#include <cstdint>
#include <span>

#include "core/hint_family.h"

namespace numalign {

enum class TopologyPolicy { kNone, kBestEffort, kRestricted, kSingleNumaNode };

struct MergeOptions {
  int nodes = 0;  // of the machine
  TopologyPolicy policy = TopologyPolicy::kBestEffort;
  // nodes x nodes; not empty: of masks with as many nodes the closer one wins (prefer-closest-numa-nodes).
  std::span<const uint32_t> distances;
  // Above this many nodes masks are searched for instead of enumerated, in at most `budget` steps of about 50
  // ns.
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

// With the policy none: any, admitted. REQUIRES: every family has options.nodes nodes, 1 to 64; distances
// empty or nodes * nodes.
MergedHint merge_hints(std::span<const HintFamily> families, const MergeOptions& options);

}  // namespace numalign
