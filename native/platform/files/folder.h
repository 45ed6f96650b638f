// Folder: an open directory, so that every file in it is reached without following a link and without a race
// on the path. Thread-safety: const members may be called from any thread; the object must outlive the calls.
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
  // Given to the folder, and its permissions set to `mode`, where this call creates it.
  std::optional<unsigned> group;
  unsigned mode = 0700;
};

// Tells two versions of a file apart: every durable replacement is a new inode, and what is appended makes it
// longer.
struct FileVersion {
  uint64_t inode;
  uint64_t size;
  int64_t modified_ns;
  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};

FileVersion version_of(const struct stat& s);

// The bytes of a file, and what fstat(2) says of the inode that has them.
struct FoundFile {
  std::string bytes;
  unsigned user;
  unsigned mode;  // permission bits
  uint64_t links;
};

// No other file or folder has the same while this one is open.
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
  // ELOOP or ENOTDIR where the last part of `path` is a link or no folder.
  static Result<Folder> open(const std::string& path, const FolderOptions& options);
  // This folder; new files in it are writable by nobody but their owner, so that what is in a file
  // is its owner's word.
  Result<Folder> with_own_files() const;
  // This folder without a descriptor: what needs one fails with EBADF.
  Folder closed() const { return Folder(path_, UniqueFd(), identity_, file_mode_, storage_); }
  // A folder inside this one.
  Result<Folder> open_child(const std::string& name, const FolderOptions& options) const;

  const std::string& path() const { return path_; }
  // Whether its file system is one of memory (tmpfs), where to write and to sync waits for no device.
  bool in_memory() const { return storage_ == Storage::kMemory; }
  // Whether its file system is known to be this kernel's alone (tmpfs, ext4, xfs, btrfs), so that inotify(7)
  // and the times of its files show everything that happens to them.
  bool is_local() const { return storage_ != Storage::kOther; }
  Result<FolderOwner> owner() const;
  // A text that no other folder has while this one is open: device and inode.
  Result<std::string> identity() const;
  // Whether `path` still leads here: false once the folder was removed or replaced.
  bool is_current() const;

  // The whole file, or nothing where it does not exist. EFBIG above `limit` bytes.
  Result<std::optional<std::string>> read(const std::string& name, size_t limit) const;
  // The same with the owner of the very inode that was read.
  Result<std::optional<FoundFile>> read_found(const std::string& name, size_t limit) const;
  Result<std::optional<FileVersion>> version(const std::string& name) const;
  Result<std::vector<std::string>> list() const;
  Result<Done> remove(const std::string& name) const;
  // Moves whatever `name` is (a link itself, not where it leads) into another folder of the same file system.
  Result<Done> move(const std::string& name, const Folder& to, const std::string& new_name) const;
  // Opens an existing file for reading.
  Result<UniqueFd> open_to_read(const std::string& name) const;
  // Opens for reading and writing, close-on-exec. With `exclusive` the file must be new; else it is created
  // where it does not exist.
  Result<UniqueFd> open_file(const std::string& name, bool create, bool exclusive) const;
  // Opens an ordinary file to look at it. Its closing is no IN_CLOSE_WRITE for those who watch the folder.
  // EISDIR or ENXIO where it is none. `s`, if any, becomes what fstat(2) says of it.
  Result<UniqueFd> open_to_look(const std::string& name, struct stat* s = nullptr) const;
  // The same, for reading and writing.
  Result<UniqueFd> open_to_change(const std::string& name, struct stat* s = nullptr) const;

  // Replaces `name` by `bytes` so that readers see the old file or the new one, whole. What a crash of the
  // machine leaves is not said: for files that mean nothing after it.
  Result<Done> replace(const std::string& name, std::string_view bytes) const;

  // Replaces `name` by `bytes` so that a crash at any moment leaves the old file or the new one, whole:
  // writes beside, fsyncs, renames, fsyncs the folder. On failure before the rename the old file is intact.
  // `stamp` (0 to 999,999,999) becomes the nanoseconds of the file's modification time: kernels count time in
  // steps of milliseconds and file systems use inodes again, so that without it two versions could look the
  // same. `may_go_on`, if any, is asked once the new file is synced, before anything that others see is
  // changed. Answers the version of the new file.
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
  // A new file with the mode of files here. Where its maker dies meanwhile, the group cannot use it.
  Result<UniqueFd> create_file(const std::string& name) const;
  // The same, of which nobody ever finds less; what somebody else has made meanwhile is opened.
  Result<UniqueFd> make_file(const std::string& name) const;
  // A new file with these bytes; nothing is left of it where that fails.
  Result<UniqueFd> write_new(const std::string& name, std::string_view bytes) const;

  std::string path_;
  UniqueFd fd_;
  FileIdentity identity_;
  unsigned file_mode_;  // for new files: what the folder's own mode allows
  Storage storage_;
};

// Writes all of `bytes` into an open file, from `offset` on.
Result<Done> write_at(int fd, uint64_t offset, std::string_view bytes);
Result<uint64_t> size_of(int fd);
// Cuts off what is behind the first `size` bytes.
Result<Done> cut(int fd, uint64_t size);
// Writes all of `bytes` at the start of an open file and cuts off what was behind.
Result<Done> overwrite(int fd, std::string_view bytes);

}  // namespace numalign
