// Plain pods: records of pods in state.json whose members all have their shapes, without members that
// few pods have. lib/state/format/pod-record.ts decodes them without checking the shapes again. Pure.
#pragma once

#include <string_view>

namespace numalign {

// `pod`: the JSON of a value. Texts that only some values of are known, as those of `kind`, and lists of
// CPUs are not read. Members of what is kept as it is (pod, owner, enforcement, memory blocks and
// devices) must come in the order in which numalign writes them.
bool is_plain_pod(std::string_view pod);

}  // namespace numalign
