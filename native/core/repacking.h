// Repacking: which grants move, and to which NUMA nodes, so that a request has room. By counts:
// each proposal needs a decision on the CPUs themselves, and none is left out that this could
// accept. Pure function: no state; safe to call from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/repacking_room.h"

namespace numalign {

// A part of the request, such as one container.
struct RequestDemand {
  struct Place {
    NodeMask cpus;
    NodeMask memory;
  };
  RepackingDemand demand;
  // What its policy admits.
  std::vector<Place> places;
  // False: it ends before others begin, which may have what it had.
  bool stays = true;
};

// A grant that may move.
struct MovableGrant {
  struct Target {
    NodeMask nodes;
    // Its memory is on these nodes already, and stays.
    bool keeps_memory = false;
  };
  RepackingDemand demand;
  RepackingHolding holding;
  std::vector<Target> targets;
  // What a move of its memory takes, and of its CPUs.
  double bytes = 0;
  int cpus = 0;
};

struct RepackingProblem {
  RepackingGround ground;
  std::vector<RequestDemand> request;
  // In the order that decides between equals.
  std::vector<MovableGrant> grants;
};

// Indexes into the grants and the targets of this one.
struct RepackingMove {
  size_t grant;
  size_t target;
  friend bool operator==(const RepackingMove&, const RepackingMove&) = default;
};

struct RepackingOptions {
  // Exactly so many.
  size_t moves = 1;
  // Proposals that are known already.
  size_t skip = 0;
  size_t most = 1;
  // Of more than two moves: how many grants are tried in sets of these, and then how many targets.
  uint64_t budget = 0;
};

struct Repackings {
  // In the order in which the moves are made: each has room while its grant is still where it was.
  // The fewest bytes first, then the fewest CPUs, then the first grants, then the first targets.
  std::vector<std::vector<RepackingMove>> proposals;
  // There are no others.
  bool is_complete = true;
  // The budget ran out, or there are too many grants for sets of several: there may be better ones.
  bool is_bounded = false;
};

Repackings find_repackings(const RepackingProblem& problem, const RepackingOptions& options);

}  // namespace numalign
