// JournalFile: a file to which records are appended, open for reading. It stays the same file whatever its
// name leads to later. Thread-safety: const members may be called from any thread; the object must outlive
// the calls.
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

class JournalFile {
 public:
  // Nothing where there is no such file. EISDIR or ENXIO where it is no ordinary one.
  static Result<std::optional<JournalFile>> open(const Folder& folder, const std::string& name);

  Result<FileVersion> version() const;
  // All bytes from `offset` to where the file ends now. EFBIG where these are more than `limit`.
  Result<std::string> read(uint64_t offset, size_t limit) const;
  // As many bytes from `offset` on, or fewer at the end.
  Result<std::string> read_some(uint64_t offset, size_t most) const;
  // The same file, open for writing for as long as a commit takes: nobody is kept from making its file system
  // read-only. ESTALE where the name leads to another file by now, or this one does not end at `size`.
  Result<UniqueFd> open_end(const Folder& folder, uint64_t size) const;
  // Writes `bytes` at the end, which REQUIRES to be at `offset`. Where that fails the file is as long as
  // before, or as much longer as could not be undone.
  Result<Done> append(const UniqueFd& end, uint64_t offset, std::string_view bytes) const;
  // fdatasync: what was appended outlives a power cut. After a failure the kernel may have dropped it.
  Result<Done> sync(const UniqueFd& end) const;
  // Cuts off what is behind the first `size` bytes.
  Result<Done> cut(const Folder& folder, uint64_t size) const;

 private:
  JournalFile(UniqueFd fd, std::string name, std::string path)
      : fd_(std::move(fd)), name_(std::move(name)), path_(std::move(path)) {}
  Error error(const char* syscall, const char* what) const;
  // Whatever size it has.
  Result<UniqueFd> open_to_write(const Folder& folder, struct stat& s) const;

  UniqueFd fd_;
  std::string name_;
  std::string path_;
};

// Writes the same at the end of another file of the folder, where that ends at `offset` too: a copy that is
// in step stays so.
void append_to_copy(const Folder& folder, const std::string& name, uint64_t offset, std::string_view bytes);

}  // namespace numalign
