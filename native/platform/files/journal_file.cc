#include "platform/files/journal_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace numalign {

Error JournalFile::error(const char* syscall, const char* what) const {
  return syscall_error(syscall, std::string("cannot ") + what + " " + path_);
}

Result<std::optional<JournalFile>> JournalFile::open(const Folder& folder, const std::string& name,
                                                     bool writable) {
  Result<UniqueFd> fd = writable ? folder.open_to_change(name) : folder.open_to_look(name);
  if (!fd.ok() && fd.error().errno_value == ENOENT) return std::optional<JournalFile>();
  if (!fd.ok()) return fd.error();
  return std::optional<JournalFile>(JournalFile(std::move(fd).value(), folder.path() + "/" + name));
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

Result<Done> JournalFile::append(uint64_t offset, std::string_view bytes) const {
  struct stat s;
  if (fstat(fd_.get(), &s) != 0) return error("fstat", "look at");
  if (static_cast<uint64_t>(s.st_size) != offset) {
    errno = ESTALE;
    return error("write", "append to");
  }
  if (Result<Done> written = write_at(fd_.get(), offset, bytes); !written.ok()) {
    (void)numalign::cut(fd_.get(), offset);
    errno = written.error().errno_value;
    return error("write", "append to");
  }
  return Done{};
}

Result<Done> JournalFile::sync() const {
  if (fdatasync(fd_.get()) != 0) return error("fdatasync", "sync");
  return Done{};
}

Result<Done> JournalFile::cut(uint64_t size) const {
  if (Result<Done> done = numalign::cut(fd_.get(), size); done.ok()) return done;
  return error("ftruncate", "cut");
}

}  // namespace numalign
