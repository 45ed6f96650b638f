// OwnerNames: whether the files in owners/ are those that numalign put there. A note says so. It saves a
// look at /proc/locks, for which the kernel stops all locking of files on the machine, and first waits
// for all CPUs: often longer than all else that a first grant takes. docs/state-format.md describes the
// note. Thread-safety: none; calls of one object follow each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "platform/files/folder.h"

namespace numalign {

// The kernel sets a folder's change time whenever a name in it changes or it is renamed, and no program
// can set it back. That time is only as fine as a tick, so the inodes count too: a file system in memory
// gives none twice. The state folder's time counts because another folder may have had its name
// meanwhile, with owners of its own.
struct NamesTime {
  int64_t folder_ns;  // the change time of the state folder
  uint64_t inode;     // of owners/
  int64_t owners_ns;
  // True if another change of a name from now on gives another time.
  bool is_past;
  bool is_same(const NamesTime& other) const {
    return folder_ns == other.folder_ns && inode == other.inode && owners_ns == other.owners_ns;
  }
};

// What an OwnerNames is about: owners/ in the state folder at `path`, and a folder for the note, which must
// not change the state folder's time.
struct OwnerFolders {
  const Folder& owners;
  const Folder& notes;
  const std::string& path;
};

class OwnerNames {
 public:
  using Names = std::vector<std::string>;

  // True if no other program has added, removed or replaced a file. Needs no lock.
  bool are_kept(const OwnerFolders& folders);
  // The same in two steps, for a sum that is known. First: the answer, or nullopt if the sum tells.
  std::optional<bool> are_noted(const OwnerFolders& folders);
  // Second. `sum`: of sum_of_files(). REQUIRES: are_noted() has returned nullopt.
  bool confirm(uint32_t sum);

  // Before names are added, replaced or taken away. False if they are not kept: nothing ends the change.
  bool begin_change(const OwnerFolders& folders, Names names);
  // After it. False if another program has come between.
  bool end_change(const OwnerFolders& folders);
  // Notes what end_change() has found: the names are kept.
  void note_change(const OwnerFolders& folders);

  // Before a look at all owners. False on other file systems than in memory: nothing ends the look.
  bool begin_look(const OwnerFolders& folders);
  // After it, if each living owner has its file under its name: the names are kept from then on, unless
  // they have changed meanwhile.
  void end_look(const OwnerFolders& folders);

 private:
  struct Noted {
    NamesTime time;
    uint32_t sum;
  };
  struct Change {
    Noted noted;
    std::optional<uint32_t> before;  // the sum of its names
    Names names;
  };

  static std::optional<Noted> noted(const OwnerFolders& folders, const std::optional<NamesTime>& time);
  static void note(const OwnerFolders& folders, const NamesTime& time, uint32_t sum);

  // The time at which the names are certainly as noted.
  std::optional<NamesTime> certain_;
  std::optional<Noted> noted_;
  std::optional<Change> change_;
  std::optional<Noted> changed_;
  std::optional<Noted> look_;
};

}  // namespace numalign
