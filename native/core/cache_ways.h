// Cache ways: the ways of one cache that each grant has for itself, as masks for resctrl (Cache
// Allocation Technology). Pure function: no state; safe to call from any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace numalign {

// One bit per way, as in resctrl. Bit 0 is the lowest way.
using WayMask = uint32_t;

struct WayRequest {
  int ways = 0;         // the needed ways; a grant gets at least CacheWaysQuestion::min_bits
  WayMask current = 0;  // its present ways; 0: none
};

struct CacheWaysQuestion {
  WayMask all = 0;        // every way of the cache (cbm_mask)
  int min_bits = 1;       // the fewest ways that a mask may have (min_cbm_bits)
  WayMask shareable = 0;  // ways that other hardware uses too (shareable_bits)
  WayMask foreign = 0;    // ways of groups that numalign did not make
  WayMask base = 0;       // the present ways of the default group
  WayMask released = 0;   // ways of ended grants, which go back to the default group
  std::vector<WayRequest> requests;
};

struct CacheWays {
  std::vector<WayMask> masks;  // by request; 0: there is no room for it
  WayMask rest = 0;            // what the default group can have; 0: nothing of `base` is usable
  int most = 0;                // the most ways that another request could have
};

// Masks are contiguous and disjoint, and have no way of `foreign`. A request keeps its ways if they
// are as wide as needed; only others are placed, in their order. One without room leaves room for
// those behind it. Ways of `shareable` are used only if there are no others. `rest` is contiguous,
// has at least `min_bits` ways of `base`, and is as wide as possible. REQUIRES: 1 <= min_bits <=
// 32.
CacheWays cache_ways(const CacheWaysQuestion& question);

// The widest contiguous run of ways in a mask, the lowest of several; 0 for 0.
WayMask widest_run(WayMask mask);

}  // namespace numalign
