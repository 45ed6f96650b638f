// The lines of an owner's file, which docs/state-format.md describes. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace numalign {

// True if what an owner wrote is of a state before this generation, or of this one and claims nothing. False
// if its lines do not show it.
bool is_settled_at(std::string_view file, uint64_t generation);

}  // namespace numalign
