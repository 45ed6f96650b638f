#include "platform/files/folder.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "platform/folder_entries.h"

namespace numalign {
namespace {

constexpr int kOpenFlags = O_CLOEXEC | O_NOFOLLOW;
constexpr int kMakeAttempts = 1000;
// For this many attempts, a folder beside counts as one that its maker is about to rename.
constexpr int kMakerAttempts = 10;
constexpr int kMakePauseUs = 2000;
constexpr int64_t kSecondNs = 1'000'000'000;

int64_t to_ns(const struct timespec& time) { return time.tv_sec * kSecondNs + time.tv_nsec; }

// renameat2(2) with RENAME_NOREPLACE, for which musl has no function.
int rename_to_free(int from_folder, const std::string& from, int to_folder, const std::string& to) {
#ifdef __GLIBC__
  return renameat2(from_folder, from.c_str(), to_folder, to.c_str(), RENAME_NOREPLACE);
#else
  return static_cast<int>(
      syscall(SYS_renameat2, from_folder, from.c_str(), to_folder, to.c_str(), RENAME_NOREPLACE));
#endif
}

// Another process is making `name` under the name `beside`. Waits a moment, or removes what was
// left behind (a slow maker makes it again). False if `name` exists. `flags`: of unlinkat.
bool wait_for_maker(int parent, const std::string& name, const std::string& beside, int flags, int attempt) {
  struct stat found;
  if (fstatat(parent, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0) return false;
  if (attempt % kMakerAttempts != 0)
    usleep(kMakePauseUs);
  else
    unlinkat(parent, beside.c_str(), flags);
  return true;
}

// Makes a folder, unless another process makes it meanwhile. Makes it beside, and renames it once
// its group and mode are right: no other user could ever enter a half-made one whose maker died.
Result<Done> make_folder(int parent, const std::string& name, const std::string& path,
                         const FolderOptions& options) {
  const std::string beside = name + ".new";
  const auto remove = [&] { unlinkat(parent, beside.c_str(), AT_REMOVEDIR); };
  const auto failure = [&](const char* syscall, const std::string& what) {
    Error error = syscall_error(syscall, what + path);
    remove();
    return error;
  };
  for (int attempt = 1;; attempt++) {
    if (mkdirat(parent, beside.c_str(), 0700) != 0) {
      if (errno != EEXIST || attempt == kMakeAttempts)
        return syscall_error("mkdir", "cannot create the folder " + path);
      if (!wait_for_maker(parent, name, beside, AT_REMOVEDIR, attempt)) return Done{};
      continue;
    }
    // Opened by its path alone: the umask may have closed it to its maker.
    UniqueFd fd(openat(parent, beside.c_str(), O_PATH | O_DIRECTORY | kOpenFlags));
    if (!fd.valid() && errno == ENOENT && attempt < kMakeAttempts) continue;
    if (!fd.valid()) return failure("open", "cannot open the folder ");
    // Set after creation, because mkdir obeys the umask and drops the set-group-id bit.
    if (options.group && fchownat(fd.get(), "", static_cast<uid_t>(-1), *options.group, AT_EMPTY_PATH) != 0)
      return failure("fchown", "cannot set group " + std::to_string(*options.group) + " for the folder ");
    const std::string opened = "/proc/self/fd/" + std::to_string(fd.get());
    if (chmod(opened.c_str(), options.mode) != 0)
      return failure("fchmod", "cannot set the mode of the folder ");
    int renamed = rename_to_free(parent, beside, parent, name);
    // Not every file system supports this. Then an empty folder is replaced, which its users
    // notice.
    if (renamed != 0 && errno == EINVAL) renamed = renameat(parent, beside.c_str(), parent, name.c_str());
    if (renamed == 0) {
      // Syncs the folder above, so that the name outlives a power cut. If that is closed to this
      // user, the name is as durable as that of any new folder.
      UniqueFd above(openat(fd.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (above.valid()) (void)fsync(above.get());
      return Done{};
    }
    if (errno == ENOENT && attempt < kMakeAttempts) continue;
    if (errno != EEXIST && errno != ENOTEMPTY) return failure("rename", "cannot create the folder ");
    // Another process was faster.
    remove();
    return Done{};
  }
}

}  // namespace

FileVersion version_of(const struct stat& s) {
  return {s.st_ino, static_cast<uint64_t>(s.st_size), to_ns(s.st_mtim)};
}

int64_t changed_ns_of(const struct stat& s) { return to_ns(s.st_ctim); }

int64_t file_time_ns() {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return to_ns(now);
}

Error Folder::error(const char* syscall, const std::string& what) const {
  return syscall_error(syscall, what + " in " + path_);
}

Result<Folder> Folder::open(const std::string& path, const FolderOptions& options) {
  return open_at(AT_FDCWD, path, path, options);
}

Result<Folder> Folder::open_child(const std::string& name, const FolderOptions& options) const {
  return open_at(fd_.get(), name, path_ + "/" + name, options);
}

Result<Folder> Folder::open_at(int parent, const std::string& name, std::string path,
                               const FolderOptions& options) {
  const auto open = [&](const std::string& which) {
    return UniqueFd(openat(parent, which.c_str(), O_RDONLY | O_DIRECTORY | kOpenFlags));
  };
  UniqueFd fd = open(name);
  if (!fd.valid() && errno == ENOENT && options.create) {
    if (Result<Done> made = make_folder(parent, name, path, options); !made.ok()) return made.error();
    fd = open(name);
  }
  if (!fd.valid()) return syscall_error("open", "cannot open the folder " + path);
  struct stat s;
  if (fstat(fd.get(), &s) != 0) return syscall_error("fstat", "cannot look at the folder " + path);
  Storage storage = storage_of(fd.get());
  return Folder(std::move(path), std::move(fd), {s.st_dev, s.st_ino}, s.st_mode & 0660, storage);
}

Folder::Storage Folder::storage_of(int fd) {
  struct statfs fs;
  if (fstatfs(fd, &fs) != 0) return Storage::kOther;
  switch (fs.f_type) {
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
      return Storage::kMemory;
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
      return Storage::kLocal;
    default:
      return Storage::kOther;
  }
}

Result<FolderOwner> Folder::owner() const {
  struct stat s;
  if (fstat(fd_.get(), &s) != 0) return error("fstat", "cannot look at the folder");
  return FolderOwner{s.st_uid, s.st_gid, s.st_mode & 07777};
}

Result<std::string> Folder::identity() const {
  if (!fd_.valid()) {
    errno = EBADF;
    return error("fstat", "cannot look at the folder");
  }
  return std::to_string(identity_.device) + ":" + std::to_string(identity_.inode);
}

// On disk, some file systems count whole seconds.
std::optional<int64_t> Folder::time_step_ns() const {
  if (!is_local()) return std::nullopt;
  return in_memory() ? 1 : kSecondNs;
}

std::optional<int64_t> Folder::changed_ns() const {
  struct stat s;
  if (fstat(fd_.get(), &s) != 0) return std::nullopt;
  return changed_ns_of(s);
}

bool Folder::is(const struct stat& s) const {
  return fd_.valid() && identity_.inode == s.st_ino && identity_.device == s.st_dev;
}

bool Folder::is_current() const {
  struct stat there;
  return lstat(path_.c_str(), &there) == 0 && is(there);
}

Result<UniqueFd> Folder::open_file(const std::string& name, bool create, bool exclusive) const {
  if (exclusive) return create_file(name);
  struct stat s;
  Result<UniqueFd> fd = open_ordinary(name, O_RDWR, &s);
  if (!fd.ok() && fd.error().errno_value == ENOENT && create) return make_file(name);
  if (!fd.ok()) return fd;
  // Only the file's owner may set the mode; others find it right already. A file with a second name
  // may be linked here from elsewhere.
  if ((s.st_mode & 0777) != file_mode_ && s.st_uid == geteuid() && s.st_nlink == 1) {
    if (fchmod(fd.value().get(), file_mode_) != 0) return error("fchmod", "cannot set the mode of " + name);
  }
  return fd;
}

Result<UniqueFd> Folder::create_file(const std::string& name) const {
  UniqueFd fd(openat(fd_.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | kOpenFlags, 0600));
  if (!fd.valid()) return error("open", "cannot create " + name);
  // The umask must not decide who can use the file.
  struct stat s;
  if (fstat(fd.get(), &s) == 0 && (s.st_mode & 0777) == file_mode_) return fd;
  if (fchmod(fd.get(), file_mode_) == 0) return fd;
  Error failure = error("fchmod", "cannot set the mode of " + name);
  (void)remove(name);
  return failure;
}

// Made beside, and renamed once its mode is right; see make_folder.
Result<UniqueFd> Folder::make_file(const std::string& name) const {
  const std::string beside = name + ".new";
  for (int attempt = 1;; attempt++) {
    const bool is_last = attempt == kMakeAttempts;
    Result<UniqueFd> made = create_file(beside);
    if (!made.ok()) {
      if (made.error().errno_value != EEXIST || is_last) return made;
      if (!wait_for_maker(fd_.get(), name, beside, 0, attempt)) return open_file(name, true, false);
      continue;
    }
    int placed = rename_to_free(fd_.get(), beside, fd_.get(), name);
    // Not every file system supports this.
    const bool is_linked = placed != 0 && errno == EINVAL;
    if (is_linked) placed = linkat(fd_.get(), beside.c_str(), fd_.get(), name.c_str(), 0);
    if (placed == 0 && !is_linked) return made;
    Error failure = error("rename", "cannot create " + name);
    if (failure.errno_value == ENOENT && !is_last) continue;
    const bool is_there = placed == 0 || failure.errno_value == EEXIST;
    (void)remove(beside);
    if (is_there) return open_file(name, true, false);
    return failure;
  }
}

Result<UniqueFd> Folder::open_again() const {
  UniqueFd fd(openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | kOpenFlags));
  if (!fd.valid()) return error("open", "cannot open the folder again");
  return fd;
}

Result<UniqueFd> Folder::open_to_look(const std::string& name, struct stat* s) const {
  return open_ordinary(name, O_RDONLY, s);
}

Result<UniqueFd> Folder::open_to_change(const std::string& name, struct stat* s) const {
  return open_ordinary(name, O_RDWR, s);
}

Result<UniqueFd> Folder::open_ordinary(const std::string& name, int flags, struct stat* s) const {
  UniqueFd fd(openat(fd_.get(), name.c_str(), flags | O_NONBLOCK | kOpenFlags));
  if (!fd.valid()) return error("open", "cannot open " + name);
  struct stat own;
  if (s == nullptr) s = &own;
  if (fstat(fd.get(), s) != 0) return error("fstat", "cannot look at " + name);
  if (S_ISREG(s->st_mode)) return fd;
  errno = S_ISDIR(s->st_mode) ? EISDIR : ENXIO;
  return error("open", "cannot open " + name);
}

Result<Folder> Folder::with_own_files() const {
  UniqueFd fd(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return error("fcntl", "cannot open the folder again");
  return Folder(path_, std::move(fd), identity_, file_mode_ & ~0022U, storage_);
}

Result<std::optional<std::string>> Folder::read(const std::string& name, size_t limit) const {
  Result<std::optional<FoundFile>> found = read_found(name, limit);
  if (!found.ok()) return found.error();
  if (!found.value()) return std::optional<std::string>();
  return std::optional<std::string>(std::move(found.value()->bytes));
}

Result<std::optional<FoundFile>> Folder::read_found(const std::string& name, size_t limit) const {
  struct stat s;
  Result<UniqueFd> opened = open_to_look(name, &s);
  if (!opened.ok() && opened.error().errno_value == ENOENT) return std::optional<FoundFile>();
  if (!opened.ok()) return opened.error();
  Result<std::string> bytes = read_open(opened.value().get(), static_cast<uint64_t>(s.st_size), name, limit);
  if (!bytes.ok()) return bytes.error();
  return std::optional<FoundFile>(
      FoundFile{std::move(bytes).value(), s.st_uid, static_cast<unsigned>(s.st_mode & 07777), s.st_nlink});
}

Result<std::string> Folder::read_open(int fd, uint64_t expected, const std::string& name,
                                      size_t limit) const {
  auto too_large = [&] {
    errno = EFBIG;
    return error("read", name + " is larger than " + std::to_string(limit) + " bytes");
  };
  if (expected > limit) return too_large();
  std::string bytes(static_cast<size_t>(expected) + 1, '\0');
  size_t size = 0;
  for (;;) {
    ssize_t n = pread(fd, bytes.data() + size, bytes.size() - size, static_cast<off_t>(size));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return error("read", "cannot read " + name);
    size += static_cast<size_t>(n);
    // An ordinary file returns fewer bytes than requested only at its end.
    if (size < bytes.size()) break;
    if (size > limit) return too_large();
    bytes.resize(bytes.size() * 2);
  }
  bytes.resize(size);
  return bytes;
}

Result<std::optional<FileVersion>> Folder::version(const std::string& name) const {
  struct stat s;
  if (fstatat(fd_.get(), name.c_str(), &s, AT_SYMLINK_NOFOLLOW) == 0) {
    return std::optional<FileVersion>(version_of(s));
  }
  if (errno == ENOENT) return std::optional<FileVersion>();
  return error("fstatat", "cannot look at " + name);
}

Result<std::vector<std::string>> Folder::list() const {
  // A separate descriptor: reading moves the position that all copies of a descriptor share.
  UniqueFd fd(openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return error("open", "cannot list the files");
  std::vector<std::string> names;
  const auto add = [&](std::string name) {
    if (name != "." && name != "..") names.push_back(std::move(name));
  };
  for (;;) {
    const long size = read_entries(fd.get(), add);
    // A removed folder has no files.
    if (size == 0 || (size < 0 && errno == ENOENT)) return names;
    if (size < 0) return error("getdents64", "cannot list the files");
  }
}

Result<Done> Folder::remove(const std::string& name) const {
  if (unlinkat(fd_.get(), name.c_str(), 0) == 0 || errno == ENOENT) return Done{};
  return error("unlinkat", "cannot remove " + name);
}

Result<Done> Folder::move(const std::string& name, const Folder& to, const std::string& new_name) const {
  if (renameat(fd_.get(), name.c_str(), to.fd_.get(), new_name.c_str()) == 0) return Done{};
  return error("rename", "cannot move " + name + " to " + to.path_);
}

Result<UniqueFd> Folder::write_new(const std::string& name, std::string_view bytes) const {
  Result<UniqueFd> file = create_file(name);
  if (!file.ok() && file.error().errno_value == EEXIST) {
    // Overwrites what a crash left behind under this name.
    if (Result<Done> removed = remove(name); !removed.ok()) return removed.error();
    file = create_file(name);
  }
  if (!file.ok()) return file;
  if (Result<Done> written = write_at(file.value().get(), 0, bytes); !written.ok()) {
    Error failure = syscall_error(written.error().syscall.c_str(), "cannot write " + name + " in " + path_,
                                  written.error().errno_value);
    (void)remove(name);
    return failure;
  }
  return file;
}

Result<Done> Folder::replace(const std::string& name, std::string_view bytes) const {
  const std::string beside = name + ".new";
  if (Result<UniqueFd> file = write_new(beside, bytes); !file.ok()) return file.error();
  if (renameat(fd_.get(), beside.c_str(), fd_.get(), name.c_str()) == 0) return Done{};
  return error("rename", "cannot replace " + name);
}

Result<FileVersion> Folder::replace_durably(const std::string& name, std::string_view bytes, uint32_t stamp,
                                            const std::function<Result<Done>()>& may_go_on) const {
  // A fixed name, because writers hold the folder's lock.
  const std::string beside = name + ".new";
  Result<UniqueFd> file = write_new(beside, bytes);
  if (!file.ok()) return file.error();
  int fd = file.value().get();
  struct timespec times[2];
  clock_gettime(CLOCK_REALTIME, &times[1]);
  times[0] = {0, UTIME_OMIT};
  times[1].tv_nsec = stamp;
  if (futimens(fd, times) != 0) return error("futimens", "cannot stamp " + beside);
  if (fsync(fd) != 0) return error("fsync", "cannot sync " + beside);
  if (may_go_on) {
    if (Result<Done> allowed = may_go_on(); !allowed.ok()) return allowed.error();
  }
  if (renameat(fd_.get(), beside.c_str(), fd_.get(), name.c_str()) != 0)
    return error("rename", "cannot replace " + name);
  if (fsync(fd_.get()) != 0) return error("fsync", "cannot sync the folder");
  struct stat s;
  if (fstat(fd, &s) != 0) return error("fstat", "cannot look at " + name);
  return version_of(s);
}

Result<Done> write_at(int fd, uint64_t offset, std::string_view bytes) {
  for (size_t done = 0; done < bytes.size();) {
    ssize_t n = pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return syscall_error("write", "cannot write");
    done += static_cast<size_t>(n);
  }
  return Done{};
}

Result<uint64_t> size_of(int fd) {
  struct stat s;
  if (fstat(fd, &s) != 0) return syscall_error("fstat", "cannot look at the file");
  return static_cast<uint64_t>(s.st_size);
}

Result<Done> cut(int fd, uint64_t size) {
  if (ftruncate(fd, static_cast<off_t>(size)) != 0) return syscall_error("ftruncate", "cannot cut the file");
  return Done{};
}

Result<Done> overwrite(int fd, std::string_view bytes) {
  if (Result<Done> written = write_at(fd, 0, bytes); !written.ok()) return written;
  // Most files keep their length, and truncating makes the file system work even if nothing
  // changes.
  struct stat s;
  if (fstat(fd, &s) == 0 && static_cast<uint64_t>(s.st_size) == bytes.size()) return Done{};
  return cut(fd, bytes.size());
}

}  // namespace numalign
