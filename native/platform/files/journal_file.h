// JournalFile: a file that grows by records. It stays the same file whatever its name leads to
// later. Thread-safety: reading members may be called from any thread at any time; writing members
// REQUIRE the lock of the folder, and so run on one thread at a time. The object must outlive the
// calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "platform/files/file_lock.h"
#include "platform/files/folder.h"
#include "platform/files/unique_fd.h"
#include "platform/syscall.h"

namespace numalign {

// Facts of fstat(2) about a file, which change with its bytes and its names.
struct FileStamp {
  FileVersion version;
  uint64_t links;
  int64_t changed_ns;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

class JournalFile {
 public:
  // nullopt if the file does not exist. EISDIR or ENXIO if it is not an ordinary one.
  static Result<std::optional<JournalFile>> open(const Folder& folder, const std::string& name);

  Result<FileVersion> version() const;
  // The version of the file that `name` leads to. ESTALE if that is not this one.
  Result<FileVersion> named(const Folder& folder) const;
  uint64_t inode() const { return identity_.inode; }
  const std::string& name() const { return name_; }
  Result<FileStamp> stamp() const;
  // See Folder::time_step_ns().
  std::optional<int64_t> time_step_ns() const { return time_step_ns_; }
  // All bytes from `offset` to the end of the file. EFBIG if there are more than `limit`.
  Result<std::string> read(uint64_t offset, size_t limit) const;
  // Up to `most` bytes from `offset`; fewer at the end.
  Result<std::string> read_some(uint64_t offset, size_t most) const;
  // Writes `bytes` at the end, which must be at `offset`. Makes them durable unless the folder is
  // in memory. If the write fails, the file has its old length, or more if that could not be
  // undone. If the sync (fdatasync) fails, the bytes are there, but the kernel may have dropped
  // them. ESTALE if the name leads to another file by now, or the file does not end at `offset`;
  // then nothing is written. `names`: see HeldLock::names().
  Result<Done> append(const Folder& folder, uint64_t offset, std::string_view bytes,
                      UnchangedSince names = {});
  // Appends the same to another file of the folder if that ends at `offset` too, so that an equal
  // copy stays equal. Returns true if it did.
  bool append_to_copy(const Folder& folder, const std::string& name, uint64_t offset, std::string_view bytes,
                      UnchangedSince names = {});
  // Writes all of this file to another file of the folder, not durably. EFBIG above `limit` bytes.
  Result<Done> copy_to(const Folder& folder, const std::string& name, size_t limit) const;
  // See show_generation() and shown_generation().
  void show(uint64_t generation) const { show_generation(fd_.get(), generation); }
  uint64_t shown(uint64_t least) const { return shown_generation(fd_.get(), least); }
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
  Result<Done> open_end(const Folder& folder);

  UniqueFd fd_;
  FileIdentity identity_;  // of the file
  std::optional<int64_t> time_step_ns_;
  std::string name_;
  std::string path_;
  // Open for writing since the first record. A copy that another process has replaced is opened
  // again.
  UniqueFd end_;
  UniqueFd copy_;
  uint64_t copy_inode_ = 0;
  // When the copy had its name last, and its end after a record of this process.
  UnchangedSince copy_names_;
  std::optional<uint64_t> copy_end_;
};

// What the name of a journal leads to.
struct JournalLook {
  // nullopt if there is no file.
  std::optional<FileVersion> version;
  // True if it is the version that the caller knows.
  bool is_known = false;
};

// Tells if anything has happened to a journal or its name since the last look: with one fstat, half
// the time of a look at the name. Used on one thread.
class JournalWitness {
 public:
  Result<JournalLook> look(const JournalFile& file, const Folder& folder);
  // The caller knows the version that the last look has found.
  void know() { known_ = seen_; }
  // Something changes the file.
  void forget() { known_.reset(); }
  // A version that was found otherwise: it, or that of note_own().
  FileVersion note(const FileVersion& version);
  // The version of a file that this process has given this size between `from_ns`, by the clock of file
  // times, and now. The kernel has set its time meanwhile: a look at that would take another system call.
  FileVersion note_own(const JournalFile& file, uint64_t size, int64_t from_ns);
  // True if nothing has happened since confirm(). False if that is not certain.
  bool is_untouched(const JournalFile& file);
  // Confirms, after is_untouched() returned false, that the name still leads to the known file.
  void confirm() { confirmed_ = found_; }

 private:
  struct OwnVersion {
    FileVersion version;
    int64_t from_ns;
    int64_t to_ns;
  };

  std::optional<OwnVersion> own_;
  std::optional<FileVersion> seen_;
  std::optional<FileVersion> known_;
  // Of the last call of is_untouched(), if every later change has another time.
  std::optional<FileStamp> found_;
  std::optional<FileStamp> confirmed_;
};

}  // namespace numalign
