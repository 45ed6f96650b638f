#include "platform/files/state_step.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace numalign {

Result<std::optional<BegunStep>> StateSteps::begin(LockQueue& queue, const KnownState& known) {
  Result<std::optional<HeldLock>> tried = queue.try_lock_unchecked();
  if (!tried.ok()) return tried.error();
  std::optional<HeldLock> lock = std::move(tried).value();
  if (!lock) return std::optional<BegunStep>();
  const std::optional<FileVersion> journal = look(known, *lock);
  if (!journal || journal->size >= known.size_limit) return std::optional<BegunStep>();
  lock->sign();
  const uint64_t highest = std::max(lock->number(), known.journal.shown(known.generation));
  return std::optional(BegunStep{std::move(*lock), *journal, highest});
}

// The version of the journal, if all names lead where they led.
std::optional<FileVersion> StateSteps::look(const KnownState& known, HeldLock& lock) {
  const Folder& folder = *known.folder;
  const int64_t now = file_time_ns();
  struct stat s;
  if (lstat(folder.path().c_str(), &s) != 0 || !folder.is(s)) return std::nullopt;
  Names names{changed_ns_of(s), {lock.inode(), known.journal.inode()}};
  for (const auto& each : known.inside) names.inodes.push_back(each->open_inode());
  if (names_ == names) {
    lock.note_names(names.changed_ns);
    const Result<FileVersion> version = known.journal.version();
    return version.ok() ? std::optional(version.value()) : std::nullopt;
  }
  names_.reset();
  const auto is_current = [](const auto& each) { return each->is_current(); };
  if (!lock.check().ok() || !std::ranges::all_of(known.inside, is_current)) return std::nullopt;
  const Result<FileVersion> version = known.journal.named(folder);
  if (!version.ok()) return std::nullopt;
  // Each change from now on has another time.
  const std::optional<int64_t> step = folder.time_step_ns();
  if (step && names.changed_ns + *step <= now) {
    lock.note_names(names.changed_ns);
    names_ = std::move(names);
  }
  return version.value();
}

}  // namespace numalign
