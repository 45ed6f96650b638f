// Merges change lines of state.json, which docs/state-format.md describes: several changes become one
// with the same effect. So pods that came and went meanwhile are never read. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace numalign {

struct MergedLines {
  // The JSON of one change, without its checksum; empty without a whole line. Beside the members of a
  // line it has `gone`: uids of pods that a line brought and a later one released. They may have been
  // on record before. `released` has those that must have been. `pods` is as PodRows has them.
  std::string change;
  std::vector<uint32_t> words;  // of the CPUs of its pods
  uint64_t generation = 0;      // after the last whole line
  size_t length = 0;            // of the whole lines
  std::string seal;             // the checksum in the last one
  bool has_tail = false;        // an unfinished line follows
};

// `generation`: the one before the first line; without it the bytes are the line of a whole state. nullopt if
// a line is damaged, does not follow the one before, or is not plain: with other members than commits change,
// or with text that must be decoded to be compared. lib/state/format/replay.ts judges those.
std::optional<MergedLines> merge_lines(std::string_view bytes, std::optional<uint64_t> generation);

}  // namespace numalign
