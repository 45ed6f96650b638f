#include "platform/files/owner_names.h"

#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <utility>

#include "platform/files/owner_files.h"

namespace numalign {
namespace {

constexpr const char* kNote = "owners.note";
constexpr size_t kMostBytes = 128;
// Longer than a tick of the kernel's clock for files, even if the CPU that keeps it is held up.
constexpr int64_t kTickNs = 100'000'000;

int64_t changed_ns(const struct stat& s) {
  return int64_t{s.st_ctim.tv_sec} * 1'000'000'000 + s.st_ctim.tv_nsec;
}

// nullopt on other file systems, and if the path does not lead to the folder.
std::optional<NamesTime> time_now(const OwnerFolders& folders) {
  if (!folders.owners.in_memory()) return std::nullopt;
  const int64_t now = std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  struct stat folder, owners;
  if (stat(folders.path.c_str(), &folder) != 0) return std::nullopt;
  if (stat((folders.path + "/owners").c_str(), &owners) != 0) return std::nullopt;
  if (!folders.owners.is(owners)) return std::nullopt;
  const int64_t folder_ns = changed_ns(folder), owners_ns = changed_ns(owners);
  // A time to come is one before the clock was set back.
  const bool is_past = std::abs(now - folder_ns) > kTickNs && std::abs(now - owners_ns) > kTickNs;
  return NamesTime{folder_ns, owners.st_ino, owners_ns, is_past};
}

std::string text_of(const NamesTime& time) {
  return std::to_string(time.folder_ns) + ' ' + std::to_string(time.inode) + ' ' +
         std::to_string(time.owners_ns);
}

std::string note_of(const NamesTime& time, uint32_t sum) {
  return text_of(time) + ' ' + std::to_string(sum) + '\n';
}

std::optional<uint32_t> sum_of(const OwnerFolders& folders, const std::optional<OwnerNames::Names>& names) {
  const Result<uint32_t> sum = sum_of_files(folders.owners, names);
  return sum.ok() ? std::optional(sum.value()) : std::nullopt;
}

}  // namespace

// The sum that is noted, if no name has changed in another tick.
std::optional<OwnerNames::Noted> OwnerNames::noted(const OwnerFolders& folders,
                                                   const std::optional<NamesTime>& time) {
  if (!time) return std::nullopt;
  const Result<std::optional<std::string>> note = folders.notes.read(kNote, kMostBytes);
  if (!note.ok() || !note.value()) return std::nullopt;
  const std::string& text = *note.value();
  const size_t begin = text_of(*time).size();
  if (text.size() <= begin) return std::nullopt;
  const auto sum = static_cast<uint32_t>(std::strtoul(text.c_str() + begin, nullptr, 10));
  return text == note_of(*time, sum) ? std::optional(Noted{*time, sum}) : std::nullopt;
}

// Without a note, others look at /proc/locks.
void OwnerNames::note(const OwnerFolders& folders, const NamesTime& time, uint32_t sum) {
  (void)folders.notes.replace(kNote, note_of(time, sum));
}

std::optional<bool> OwnerNames::are_noted(const OwnerFolders& folders) {
  const std::optional<NamesTime> time = time_now(folders);
  if (!time) return false;
  if (certain_ && certain_->is_same(*time)) return true;
  certain_.reset();
  noted_ = noted(folders, time);
  return noted_ ? std::nullopt : std::optional(false);
}

bool OwnerNames::confirm(uint32_t sum) {
  const bool is_kept = noted_ && noted_->sum == sum;
  if (is_kept && noted_->time.is_past) certain_ = noted_->time;
  noted_.reset();
  return is_kept;
}

bool OwnerNames::are_kept(const OwnerFolders& folders) {
  if (const std::optional<bool> answer = are_noted(folders)) return *answer;
  const std::optional<uint32_t> sum = sum_of(folders, {});
  return sum && confirm(*sum);
}

bool OwnerNames::begin_change(const OwnerFolders& folders, Names names) {
  const std::optional<Noted> found = noted(folders, time_now(folders));
  if (!found) return false;
  // The change may not show in the time.
  if (!found->time.is_past) (void)folders.notes.remove(kNote);
  const std::optional<uint32_t> before = sum_of(folders, names);
  change_ = Change{*found, before, std::move(names)};
  return true;
}

bool OwnerNames::end_change(const OwnerFolders& folders) {
  const std::optional<Change> change = std::exchange(change_, std::nullopt);
  changed_.reset();
  if (!change || !change->before) return false;
  const std::optional<uint32_t> after = sum_of(folders, change->names);
  const std::optional<NamesTime> end = time_now(folders);
  // What another program has done meanwhile, or in the same tick, is in the files, not in the sum.
  if (after && end && end->folder_ns == change->noted.time.folder_ns)
    changed_ = Noted{*end, change->noted.sum - *change->before + *after};
  return changed_.has_value();
}

void OwnerNames::note_change(const OwnerFolders& folders) {
  if (const std::optional<Noted> changed = std::exchange(changed_, std::nullopt))
    note(folders, changed->time, changed->sum);
}

bool OwnerNames::begin_look(const OwnerFolders& folders) {
  look_.reset();
  const std::optional<NamesTime> time = time_now(folders);
  if (!time) return false;
  if (const std::optional<uint32_t> sum = sum_of(folders, {})) look_ = Noted{*time, *sum};
  return look_.has_value();
}

void OwnerNames::end_look(const OwnerFolders& folders) {
  const std::optional<Noted> look = std::exchange(look_, std::nullopt);
  if (!look) return;
  const std::optional<NamesTime> time = time_now(folders);
  if (time && time->is_same(look->time) && sum_of(folders, {}) == look->sum)
    note(folders, look->time, look->sum);
}

}  // namespace numalign
