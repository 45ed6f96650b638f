// A step on a state: takes the lock of its folder if that is free, and looks whether all is as the process
// knows it. One call: each look by itself takes JavaScript longer than the kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/result.h"
#include "platform/files/file_lock.h"
#include "platform/files/folder.h"
#include "platform/files/journal_file.h"

namespace numalign {

// What a process knows of a state.
struct KnownState {
  std::shared_ptr<const Folder> folder;
  std::vector<std::shared_ptr<const Folder>> inside;  // the folders in it that are open
  const JournalFile& journal;
  uint64_t generation;  // that the journal had
  uint64_t size_limit;  // a longer journal has more than a few new lines
};

struct BegunStep {
  HeldLock lock;
  FileVersion journal;
  // The highest generation that the file of the lock or another process shows; 0 if there is none.
  uint64_t highest;
};

// Begins the steps on one folder. Used on one thread.
class StateSteps {
 public:
  // nullopt if the lock cannot be taken at once, if a path leads to another folder by now, or if the journal
  // has another name or is longer than the limit: nothing has changed then.
  std::optional<BegunStep> begin(LockQueue& queue, const KnownState& known);

 private:
  // Where names in the folder led, and the folder's change time then, which every change of a name sets.
  struct Names {
    int64_t changed_ns;
    std::vector<uint64_t> inodes;
    friend bool operator==(const Names&, const Names&) = default;
  };

  std::optional<FileVersion> look(const KnownState& known, HeldLock& lock);

  std::optional<Names> names_;
  int64_t looked_ns_ = 0;  // when, by the clock that always advances
};

}  // namespace numalign
