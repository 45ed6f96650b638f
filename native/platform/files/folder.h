// Folder: an open directory that reaches every file in it without following a link and without a
// race on the path. Thread-safety: const members may be called from any thread; the object must
// outlive the calls.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "platform/files/unique_fd.h"
#include "platform/syscall.h"

struct stat;

namespace numalign {

struct FolderOptions {
  bool create = false;
  // If this call creates the folder, gives it to this group and sets its permissions to `mode`.
  std::optional<unsigned> group;
  unsigned mode = 0700;
};

// Tells versions of a file apart: every durable replacement is a new inode, and appending makes it
// longer.
struct FileVersion {
  uint64_t inode;
  uint64_t size;
  int64_t modified_ns;
  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};

FileVersion version_of(const struct stat& s);
// When the file's bytes, names or metadata changed last. No program can set it.
int64_t changed_ns_of(const struct stat& s);
// The clock of such times.
int64_t file_time_ns();

// The bytes of a file, and the facts of fstat(2) about its inode.
struct FoundFile {
  std::string bytes;
  unsigned user;
  unsigned mode;  // permission bits
  uint64_t links;
};

// Unique among files and folders while this one is open.
struct FileIdentity {
  uint64_t device;
  uint64_t inode;
};

struct FolderOwner {
  unsigned user;
  unsigned group;
  unsigned mode;  // permission bits
};

class Folder {
 public:
  // ELOOP or ENOTDIR if the last part of `path` is a link or not a folder.
  static Result<Folder> open(const std::string& path, const FolderOptions& options);
  // This folder, in which only the owner of a new file can write it, so that a file's content is
  // its owner's word.
  Result<Folder> with_own_files() const;
  // This folder without a descriptor: every use of the descriptor fails with EBADF.
  Folder closed() const { return Folder(path_, UniqueFd(), identity_, file_mode_, storage_); }
  // A folder inside this one.
  Result<Folder> open_child(const std::string& name, const FolderOptions& options) const;

  const std::string& path() const { return path_; }
  // True if its file system is in memory (tmpfs), where writes and syncs wait for no device.
  bool in_memory() const { return storage_ == Storage::kMemory; }
  // True if only this kernel uses its file system (tmpfs, ext4, xfs, btrfs), so that inotify(7) and
  // file times show every change.
  bool is_local() const { return storage_ != Storage::kOther; }
  Result<FolderOwner> owner() const;
  // Device and inode: unique while this folder is open.
  Result<std::string> identity() const;
  // The inode; 0 once the folder is closed.
  uint64_t open_inode() const { return fd_.valid() ? identity_.inode : 0; }
  // How long times of changes here stay the same. A later change may have the same time as one within this
  // step before it. nullopt if times do not show all changes.
  std::optional<int64_t> time_step_ns() const;
  // See changed_ns_of(): each change of a name in the folder, and of its own name. nullopt if that cannot be
  // told.
  std::optional<int64_t> changed_ns() const;
  // True if this is the folder that stat(2) has looked at.
  bool is(const struct stat& s) const;
  // True while `path` still leads here; false once the folder was removed or replaced.
  bool is_current() const;

  // The whole ordinary file; nullopt if it does not exist. EFBIG above `limit` bytes.
  Result<std::optional<std::string>> read(const std::string& name, size_t limit) const;
  // The same, with the owner of the very inode that was read.
  Result<std::optional<FoundFile>> read_found(const std::string& name, size_t limit) const;
  // The same of an open file here. `expected`: its size as far as known.
  Result<std::string> read_open(int fd, uint64_t expected, const std::string& name, size_t limit) const;
  Result<std::optional<FileVersion>> version(const std::string& name) const;
  Result<std::vector<std::string>> list() const;
  Result<Done> remove(const std::string& name) const;
  // Moves `name` (a link itself, not its target) into another folder of the same file system.
  Result<Done> move(const std::string& name, const Folder& to, const std::string& new_name) const;
  // An open file description of its own of this folder, for locks.
  Result<UniqueFd> open_again() const;
  // Opens an ordinary file for reading and writing, close-on-exec. With `exclusive` the file must be
  // new; else it is created if it does not exist. EISDIR or ENXIO for anything else.
  Result<UniqueFd> open_file(const std::string& name, bool create, bool exclusive) const;
  // The same, read-only, for an existing file. Closing it causes no IN_CLOSE_WRITE in the folder.
  // `s`, if given, gets the result of fstat(2).
  Result<UniqueFd> open_to_look(const std::string& name, struct stat* s = nullptr) const;
  // The same, for reading and writing.
  Result<UniqueFd> open_to_change(const std::string& name, struct stat* s = nullptr) const;

  // Replaces `name` by `bytes`, so that readers see the whole old file or the whole new one.
  // Promises nothing about a crash of the machine: for files that mean nothing after it.
  Result<Done> replace(const std::string& name, std::string_view bytes) const;

  // Replaces `name` by `bytes` so that a crash at any moment leaves the whole old file or the whole
  // new one: writes beside, fsyncs, renames, fsyncs the folder. A failure before the rename leaves
  // the old file intact. `stamp` (0 to 999,999,999) becomes the nanoseconds of the file's
  // modification time: kernels count time in steps of milliseconds and file systems reuse inodes,
  // so that two versions could look the same without it. `may_go_on`, if given, is called after the
  // sync of the new file, before any visible change. Returns the version of the new file.
  Result<FileVersion> replace_durably(const std::string& name, std::string_view bytes, uint32_t stamp,
                                      const std::function<Result<Done>()>& may_go_on = {}) const;

 private:
  enum class Storage { kMemory, kLocal, kOther };
  static Storage storage_of(int fd);
  Folder(std::string path, UniqueFd fd, const FileIdentity& identity, unsigned file_mode, Storage storage)
      : path_(std::move(path)),
        fd_(std::move(fd)),
        identity_(identity),
        file_mode_(file_mode),
        storage_(storage) {}
  static Result<Folder> open_at(int parent, const std::string& name, std::string path,
                                const FolderOptions& options);
  Error error(const char* syscall, const std::string& what) const;
  Result<UniqueFd> open_ordinary(const std::string& name, int flags, struct stat* s) const;
  // Makes a file with the mode of files here. If its maker dies meanwhile, the group cannot use it.
  Result<UniqueFd> create_file(const std::string& name) const;
  // The same, but no process ever sees it half-made. Opens the file if another process made it
  // meanwhile.
  Result<UniqueFd> make_file(const std::string& name) const;
  // Makes a file with these bytes. A failure leaves nothing behind.
  Result<UniqueFd> write_new(const std::string& name, std::string_view bytes) const;

  std::string path_;
  UniqueFd fd_;
  FileIdentity identity_;
  unsigned file_mode_;  // for new files, from the folder's own mode
  Storage storage_;
};

// Writes all of `bytes` into an open file at `offset`.
Result<Done> write_at(int fd, uint64_t offset, std::string_view bytes);
Result<uint64_t> size_of(int fd);
// Cuts off what is behind the first `size` bytes.
Result<Done> cut(int fd, uint64_t size);
// Writes all of `bytes` at the start of an open file, and cuts off the rest.
Result<Done> overwrite(int fd, std::string_view bytes);

}  // namespace numalign
