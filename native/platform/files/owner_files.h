// All owners' files of a state at once: a call for each takes JavaScript longer than the kernel.
// docs/state-format.md describes them. Thread-safety: the functions may be called from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "platform/files/file_lock.h"
#include "platform/files/folder.h"

namespace numalign {

struct OwnerSurvey {
  // Of the files without a lock, and of all that cannot be opened, are missing or too large.
  std::vector<std::string> names;
  // See sum_of_files().
  uint32_t sum = 0;
};

// Files by their names; all in the folder without any.
using FileNames = std::optional<std::vector<std::string>>;

// Looks at those of these files that are no larger than `limit`. With a `generation` the names have locked
// files too, but those that are as their owners wrote them, as their seals show, and add nothing to a state
// of this generation: see is_settled_at().
Result<OwnerSurvey> survey_owners(const Folder& folder, size_t limit, std::optional<uint64_t> generation,
                                  const FileNames& files = {});

// What an owner adds to its file.
struct OwnerLines {
  uint64_t at;             // where they begin, in place of the last line
  std::string_view lines;  // without the last one
  std::string_view last;   // as long as the one before
  uint32_t before;         // the checksum of what stands before them
  uint64_t generation;     // for the seal
};

// Writes them, and seals the file. Returns the checksum of all lines but the last; nullopt, without a change,
// if the file is not as long as it was. If only the seal fails (fcntl), the lines are there. `last_seal`: as
// in seal().
Result<std::optional<uint32_t>> append_sealed(int fd, const OwnerLines& lines, LockRange* last_seal);

// A sum of the names and inodes of these files, which is the same in any order. A name without a file counts
// nothing.
Result<uint32_t> sum_of_files(const Folder& folder, const FileNames& files);

}  // namespace numalign
