#include "platform/files/journal_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace numalign {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

int64_t to_ns(const struct timespec& time) { return time.tv_sec * kSecondNs + time.tv_nsec; }

// The clock that file systems read.
int64_t file_time_ns() {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return to_ns(now);
}

// On disk some count whole seconds.
std::optional<int64_t> time_step_of(const Folder& folder) {
  if (!folder.is_local()) return std::nullopt;
  return folder.in_memory() ? 1 : kSecondNs;
}

}  // namespace

Error JournalFile::error(const char* syscall, const char* what) const {
  return syscall_error(syscall, std::string("cannot ") + what + " " + path_);
}

Result<std::optional<JournalFile>> JournalFile::open(const Folder& folder, const std::string& name) {
  struct stat s;
  Result<UniqueFd> fd = folder.open_to_look(name, &s);
  if (!fd.ok() && fd.error().errno_value == ENOENT) return std::optional<JournalFile>();
  if (!fd.ok()) return fd.error();
  return std::optional<JournalFile>(JournalFile(std::move(fd).value(), {s.st_dev, s.st_ino},
                                                time_step_of(folder), name, folder.path() + "/" + name));
}

Result<FileVersion> JournalFile::version() const {
  struct stat s;
  if (fstat(fd_.get(), &s) != 0) return error("fstat", "look at");
  return version_of(s);
}

Result<FileStamp> JournalFile::stamp() const {
  struct stat s;
  if (fstat(fd_.get(), &s) != 0) return error("fstat", "look at");
  return FileStamp{version_of(s), static_cast<uint64_t>(s.st_nlink), to_ns(s.st_ctim)};
}

bool JournalWitness::is_untouched(const JournalFile& file) {
  found_.reset();
  if (!file.time_step_ns()) return false;
  const int64_t before = file_time_ns();
  Result<FileStamp> stamp = file.stamp();
  if (!stamp.ok()) return false;
  if (confirmed_ == stamp.value()) return true;
  confirmed_.reset();
  if (stamp.value().changed_ns + *file.time_step_ns() <= before) found_ = stamp.value();
  return false;
}

Result<std::string> JournalFile::read_some(uint64_t offset, size_t most) const {
  std::string bytes(most, '\0');
  size_t size = 0;
  while (size < most) {
    ssize_t n = pread(fd_.get(), bytes.data() + size, most - size, static_cast<off_t>(offset + size));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return error("read", "read");
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  bytes.resize(size);
  return bytes;
}

Result<std::string> JournalFile::read(uint64_t offset, size_t limit) const {
  struct stat s;
  if (fstat(fd_.get(), &s) != 0) return error("fstat", "look at");
  uint64_t size = static_cast<uint64_t>(s.st_size);
  if (size <= offset) return std::string();
  if (size - offset <= limit) return read_some(offset, size - offset);
  errno = EFBIG;
  return error("read", "read all of");
}

Result<UniqueFd> JournalFile::open_to_write(const Folder& folder, struct stat& s) const {
  Result<UniqueFd> end = folder.open_to_change(name_, &s);
  if (!end.ok() || (s.st_ino == identity_.inode && s.st_dev == identity_.device)) return end;
  errno = ESTALE;
  return error("open", "append to");
}

Result<UniqueFd> JournalFile::open_end(const Folder& folder, uint64_t size) const {
  struct stat s;
  Result<UniqueFd> end = open_to_write(folder, s);
  if (!end.ok() || static_cast<uint64_t>(s.st_size) == size) return end;
  errno = ESTALE;
  return error("open", "append to");
}

Result<Done> JournalFile::append(const UniqueFd& end, uint64_t offset, std::string_view bytes) const {
  Result<Done> written = write_at(end.get(), offset, bytes);
  if (written.ok()) return written;
  (void)numalign::cut(end.get(), offset);
  errno = written.error().errno_value;
  return error("write", "append to");
}

Result<Done> JournalFile::sync(const UniqueFd& end) const {
  if (fdatasync(end.get()) != 0) return error("fdatasync", "sync");
  return Done{};
}

Result<Done> JournalFile::cut(const Folder& folder, uint64_t size) const {
  struct stat s;
  Result<UniqueFd> end = open_to_write(folder, s);
  if (!end.ok()) return end.error();
  if (Result<Done> done = numalign::cut(end.value().get(), size); done.ok()) return done;
  return error("ftruncate", "cut");
}

void append_to_copy(const Folder& folder, const std::string& name, uint64_t offset, std::string_view bytes) {
  struct stat s;
  Result<UniqueFd> copy = folder.open_to_change(name, &s);
  if (!copy.ok() || static_cast<uint64_t>(s.st_size) != offset) return;
  if (!write_at(copy.value().get(), offset, bytes).ok()) (void)cut(copy.value().get(), offset);
}

}  // namespace numalign
