// The question of a whole merge: hints, and questions whose answers are hints, merged in one call
// from JavaScript, because each call takes as long as the hints of a resource. Pure function; safe to
// call from any thread.
#pragma once

#include <vector>

#include "core/wire.h"

namespace numalign {

// Reads nodes, policy and distances; whether the choice is joint, and if so the allowed nodes and the
// rooms; then each family or question, after its kind. Writes the merged mask, whether it is any,
// preferred, admitted and exact, the counts of a joint choice, and the family of each question.
// `topology`: for questions about CPUs; null if there are none. Writes nothing of use if the reader
// fails.
void answer_merge(WireReader& wire, const Topology* topology, WireWriter answer);

}  // namespace numalign
