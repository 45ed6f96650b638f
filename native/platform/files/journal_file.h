// JournalFile: a file to which records are appended. It stays the same file whatever its name leads to later.
// Thread-safety: what reads may be called from any thread at any time; what writes REQUIRES the lock of the
// folder, and so comes from one thread at a time. The object must outlive the calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "platform/files/folder.h"
#include "platform/files/unique_fd.h"
#include "platform/syscall.h"

namespace numalign {

// What fstat(2) says of a file that is another with every change of its bytes, and of its names.
struct FileStamp {
  FileVersion version;
  uint64_t links;
  int64_t changed_ns;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

class JournalFile {
 public:
  // Nothing where there is no such file. EISDIR or ENXIO where it is no ordinary one.
  static Result<std::optional<JournalFile>> open(const Folder& folder, const std::string& name);

  Result<FileVersion> version() const;
  Result<FileStamp> stamp() const;
  // How long after a change its time is still the present one to the file system: a later change may have the
  // same. Nothing where the times do not show all changes.
  std::optional<int64_t> time_step_ns() const { return time_step_ns_; }
  // All bytes from `offset` to where the file ends now. EFBIG where these are more than `limit`.
  Result<std::string> read(uint64_t offset, size_t limit) const;
  // As many bytes from `offset` on, or fewer at the end.
  Result<std::string> read_some(uint64_t offset, size_t most) const;
  // Writes `bytes` at the end, which must be at `offset`, and has them outlive a power cut where the folder
  // is not in memory. Where to write fails, the file is as long as before, or as much longer as could not be
  // undone. Where to sync fails (fdatasync), they are there, and the kernel may have dropped them. ESTALE
  // where the name leads to another file by now, or this one does not end there: nothing is written.
  Result<Done> append(const Folder& folder, uint64_t offset, std::string_view bytes);
  // Writes the same at the end of another file of the folder, where that ends at `offset` too: a copy that is
  // in step stays so. Answers whether it is.
  bool append_to_copy(const Folder& folder, const std::string& name, uint64_t offset, std::string_view bytes);
  // Writes another file of the folder with all that this one has, not durably. EFBIG where that is more than
  // `limit` bytes.
  Result<Done> copy_to(const Folder& folder, const std::string& name, size_t limit) const;
  // Cuts off what is behind the first `size` bytes.
  Result<Done> cut(const Folder& folder, uint64_t size);

 private:
  JournalFile(UniqueFd fd, const FileIdentity& identity, std::optional<int64_t> time_step_ns,
              std::string name, std::string path)
      : fd_(std::move(fd)),
        identity_(identity),
        time_step_ns_(time_step_ns),
        name_(std::move(name)),
        path_(std::move(path)) {}
  Error error(const char* syscall, const char* what) const;
  // The file that has the name in `folder`, where it is this one.
  Result<FileVersion> named(const Folder& folder) const;
  Result<Done> open_end(const Folder& folder);

  UniqueFd fd_;
  FileIdentity identity_;  // of the file
  std::optional<int64_t> time_step_ns_;
  std::string name_;
  std::string path_;
  // Open for writing since the first record. A copy that another process has replaced is opened again.
  UniqueFd end_;
  UniqueFd copy_;
  uint64_t copy_inode_ = 0;
};

// Tells whether anything has happened to a journal or its name since both were looked at: by one fstat, where
// to look at the name takes twice as long. Used on one thread.
class JournalWitness {
 public:
  // Whether nothing has happened since confirm(). False where that is not certain.
  bool is_untouched(const JournalFile& file);
  // Since is_untouched() was false, the name was seen to lead to the file, as it is known.
  void confirm() { confirmed_ = found_; }

 private:
  // By the last call of is_untouched(), where every later change has another time.
  std::optional<FileStamp> found_;
  std::optional<FileStamp> confirmed_;
};

}  // namespace numalign
