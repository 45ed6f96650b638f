// The opaque Topology handle of JavaScript: a type-tagged External that shares the immutable value.
#pragma once

#include <napi.h>

#include <memory>

#include "core/topology.h"

namespace numalign::addon {

Napi::Value wrap_topology(Napi::Env env, std::shared_ptr<const Topology> topology);
// Throws a TypeError for any other value.
const Topology& to_topology(const Napi::Value& value);

}  // namespace numalign::addon
