#include "platform/files/journal_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace numalign {

Error JournalFile::error(const char* syscall, const char* what) const {
  return syscall_error(syscall, std::string("cannot ") + what + " " + path_);
}

Result<std::optional<JournalFile>> JournalFile::open(const Folder& folder, const std::string& name) {
  struct stat s;
  Result<UniqueFd> fd = folder.open_to_look(name, &s);
  if (!fd.ok() && fd.error().errno_value == ENOENT) return std::optional<JournalFile>();
  if (!fd.ok()) return fd.error();
  return std::optional<JournalFile>(JournalFile(std::move(fd).value(), {s.st_dev, s.st_ino},
                                                folder.time_step_ns(), name, folder.path() + "/" + name));
}

Result<FileVersion> JournalFile::version() const {
  struct stat s;
  if (fstat(fd_.get(), &s) != 0) return error("fstat", "look at");
  return version_of(s);
}

Result<FileStamp> JournalFile::stamp() const {
  struct stat s;
  if (fstat(fd_.get(), &s) != 0) return error("fstat", "look at");
  return FileStamp{version_of(s), static_cast<uint64_t>(s.st_nlink), changed_ns_of(s)};
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

Result<JournalLook> JournalWitness::look(const JournalFile& file, const Folder& folder) {
  // Just after a change, only a look at the name is certain.
  if (known_ && is_untouched(file)) return JournalLook{known_, true};
  const Result<std::optional<FileVersion>> version = folder.version(file.name());
  if (!version.ok()) return version.error();
  const bool was_known = known_.has_value();
  seen_ = version.value() ? std::optional(note(*version.value())) : std::nullopt;
  if (!seen_) known_.reset();
  if (was_known && known_) confirm();
  return JournalLook{seen_, known_.has_value()};
}

FileVersion JournalWitness::note(const FileVersion& version) {
  const bool is_own = own_ && own_->version.inode == version.inode && own_->version.size == version.size &&
                      own_->from_ns <= version.modified_ns && version.modified_ns <= own_->to_ns;
  const FileVersion noted = is_own ? own_->version : version;
  if (known_ != noted) known_.reset();
  return noted;
}

FileVersion JournalWitness::note_own(const JournalFile& file, uint64_t size, int64_t from_ns) {
  struct timespec now;
  // For files that were looked at, newer kernels do not take the coarse clock.
  clock_gettime(CLOCK_REALTIME, &now);
  const int64_t to_ns = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  own_ = OwnVersion{{file.inode(), size, to_ns}, from_ns, to_ns};
  known_.reset();
  return own_->version;
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

Result<FileVersion> JournalFile::named(const Folder& folder) const {
  Result<std::optional<FileVersion>> found = folder.version(name_);
  if (!found.ok()) return found.error();
  errno = ESTALE;
  if (found.value() && found.value()->inode == identity_.inode) return *found.value();
  return error("open", "append to");
}

Result<Done> JournalFile::open_end(const Folder& folder) {
  if (end_.valid()) return Done{};
  struct stat s;
  Result<UniqueFd> end = folder.open_to_change(name_, &s);
  if (!end.ok()) return end.error();
  errno = ESTALE;
  if (s.st_ino != identity_.inode || s.st_dev != identity_.device) return error("open", "append to");
  end_ = std::move(end).value();
  return Done{};
}

Result<Done> JournalFile::append(const Folder& folder, uint64_t offset, std::string_view bytes,
                                 UnchangedSince names) {
  if (Result<Done> opened = open_end(folder); !opened.ok()) return opened;
  Result<FileVersion> now = names ? version() : named(folder);
  if (!now.ok()) return now.error();
  errno = ESTALE;
  if (now.value().size != offset) return error("open", "append to");
  if (Result<Done> written = write_at(end_.get(), offset, bytes); !written.ok()) {
    (void)numalign::cut(end_.get(), offset);
    errno = written.error().errno_value;
    return error("write", "append to");
  }
  if (!folder.in_memory() && fdatasync(end_.get()) != 0) return error("fdatasync", "sync");
  return Done{};
}

bool JournalFile::append_to_copy(const Folder& folder, const std::string& name, uint64_t offset,
                                 std::string_view bytes, UnchangedSince names) {
  // Who has committed between has also made the file longer.
  const bool is_as_left = names && copy_names_ == names && copy_end_ == offset;
  copy_end_.reset();
  if (is_as_left) {
    // Its bytes may have been cut all the same.
    const Result<uint64_t> size = size_of(copy_.get());
    if (!size.ok() || size.value() != offset) return false;
  } else {
    Result<std::optional<FileVersion>> found = folder.version(name);
    if (!found.ok() || !found.value() || found.value()->size != offset) return false;
    if (!copy_.valid() || copy_inode_ != found.value()->inode) {
      struct stat s;
      Result<UniqueFd> copy = folder.open_to_change(name, &s);
      if (!copy.ok() || static_cast<uint64_t>(s.st_size) != offset) return false;
      copy_ = std::move(copy).value();
      copy_inode_ = s.st_ino;
    }
    copy_names_ = names;
  }
  if (write_at(copy_.get(), offset, bytes).ok()) {
    copy_end_ = offset + bytes.size();
    return true;
  }
  (void)numalign::cut(copy_.get(), offset);
  return false;
}

Result<Done> JournalFile::copy_to(const Folder& folder, const std::string& name, size_t limit) const {
  Result<std::string> bytes = read(0, limit);
  if (!bytes.ok()) return bytes.error();
  return folder.replace(name, bytes.value());
}

Result<Done> JournalFile::cut(const Folder& folder, uint64_t size) {
  if (Result<Done> opened = open_end(folder); !opened.ok()) return opened;
  if (Result<FileVersion> now = named(folder); !now.ok()) return now.error();
  if (Result<Done> done = numalign::cut(end_.get(), size); done.ok()) return done;
  return error("ftruncate", "cut");
}

}  // namespace numalign
