#include "platform/files/state_step.h"

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <utility>

namespace numalign {
namespace {

// A mount on a name does not change its folder, and a rename that is interrupted changes the folder's time
// before the name.
constexpr int64_t kNamesKnownNs = 100'000'000;

int64_t monotonic_ns() {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

std::optional<BegunStep> StateSteps::begin(LockQueue& queue, const KnownState& known) {
  Result<std::optional<HeldLock>> tried = queue.try_lock_unchecked();
  // A lock that is asked for by itself explains it.
  if (!tried.ok() || !tried.value()) return std::nullopt;
  std::optional<HeldLock> lock = std::move(tried).value();
  const std::optional<FileVersion> journal = look(known, *lock);
  if (!journal || journal->size >= known.size_limit) return std::nullopt;
  lock->sign();
  const uint64_t highest = std::max(lock->number(), known.journal.shown(known.generation));
  return BegunStep{std::move(*lock), *journal, highest};
}

// The version of the journal, if all names lead where they led.
std::optional<FileVersion> StateSteps::look(const KnownState& known, HeldLock& lock) {
  const Folder& folder = *known.folder;
  const int64_t now = file_time_ns();
  struct stat s;
  if (lstat(folder.path().c_str(), &s) != 0 || !folder.is(s)) return std::nullopt;
  // All are on the folder's device.
  Names names{changed_ns_of(s), {lock.inode(), known.journal.inode()}};
  for (const auto& each : known.inside) names.inodes.push_back(each->open_inode());
  if (names_ == names && monotonic_ns() - looked_ns_ < kNamesKnownNs) {
    lock.note_names(names.changed_ns);
    const Result<FileVersion> version = known.journal.version();
    return version.ok() ? std::optional(version.value()) : std::nullopt;
  }
  names_.reset();
  const int64_t looking_ns = monotonic_ns();
  const auto is_current = [](const auto& each) { return each->is_current(); };
  if (!lock.check().ok() || !std::ranges::all_of(known.inside, is_current)) return std::nullopt;
  const Result<FileVersion> version = known.journal.named(folder);
  if (!version.ok()) return std::nullopt;
  // Each change from now on has another time.
  const std::optional<int64_t> step = folder.time_step_ns();
  if (step && names.changed_ns + *step <= now) {
    lock.note_names(names.changed_ns);
    names_ = std::move(names);
    looked_ns_ = looking_ns;
  }
  return version.value();
}

}  // namespace numalign
