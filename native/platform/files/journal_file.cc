#include "platform/files/journal_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace numalign {

Error JournalFile::error(const char* syscall, const char* what) const {
  return syscall_error(syscall, std::string("cannot ") + what + " " + path_);
}

Result<std::optional<JournalFile>> JournalFile::open(const Folder& folder, const std::string& name) {
  Result<UniqueFd> fd = folder.open_to_look(name);
  if (!fd.ok() && fd.error().errno_value == ENOENT) return std::optional<JournalFile>();
  if (!fd.ok()) return fd.error();
  return std::optional<JournalFile>(JournalFile(std::move(fd).value(), name, folder.path() + "/" + name));
}

Result<FileVersion> JournalFile::version() const {
  struct stat s;
  if (fstat(fd_.get(), &s) != 0) return error("fstat", "look at");
  return version_of(s);
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
  struct stat here;
  Result<UniqueFd> end = folder.open_to_change(name_);
  if (!end.ok()) return end;
  if (fstat(end.value().get(), &s) != 0 || fstat(fd_.get(), &here) != 0) return error("fstat", "look at");
  if (s.st_ino == here.st_ino && s.st_dev == here.st_dev) return end;
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
  Result<UniqueFd> copy = folder.open_to_change(name);
  if (!copy.ok() || fstat(copy.value().get(), &s) != 0 || static_cast<uint64_t>(s.st_size) != offset) return;
  if (!write_at(copy.value().get(), offset, bytes).ok()) (void)cut(copy.value().get(), offset);
}

}  // namespace numalign
