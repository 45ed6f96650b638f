// The opaque Topology handle of JavaScript: a type-tagged External that shares the immutable value.
#pragma once

#include <napi.h>

#include <memory>
#include <span>
#include <vector>

#include "core/core_sizes.h"
#include "core/topology.h"

namespace numalign::addon {

Napi::Value wrap_topology(Napi::Env env, std::shared_ptr<const Topology> topology);
// Throws a TypeError for any other value.
const Topology& to_topology(const Napi::Value& value);

// Reads count << 1 | returns of each claim.
std::vector<CoreClaim> to_core_claims(std::span<const uint32_t> words);

}  // namespace numalign::addon
