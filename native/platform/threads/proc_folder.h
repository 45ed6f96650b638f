// ProcFolder: reads files below /proc (or another folder) into one reused buffer. Not thread-safe.
#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <optional>
#include <string_view>
#include <vector>

#include "platform/files/unique_fd.h"

namespace numalign {

class ProcFolder {
 public:
  explicit ProcFolder(const char* path) : fd_(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

  int fd() const { return fd_.get(); }

  // A whole file of any length. Valid until the next read; nullopt if it cannot be read.
  std::optional<std::string_view> read(const char* name) { return read(fd(), name, false); }

  // A file in the folder `folder` that the kernel writes in one piece, like all files about one
  // task.
  std::optional<std::string_view> read_piece(int folder, const char* name) {
    return read(folder, name, true);
  }

 private:
  std::optional<std::string_view> read(int folder, const char* name, bool is_one_piece) {
    UniqueFd file(openat(folder, name, O_RDONLY | O_CLOEXEC));
    if (!file.valid()) return {};
    size_t size = 0;
    for (;;) {
      ssize_t n = ::read(file.get(), buffer_.data() + size, buffer_.size() - size);
      if (n < 0) return {};
      size += static_cast<size_t>(n);
      // Longer files come piece by piece: only an empty read is their end.
      if (n == 0 || (is_one_piece && size < buffer_.size())) return std::string_view(buffer_.data(), size);
      if (size == buffer_.size()) buffer_.resize(2 * buffer_.size());
    }
  }

  UniqueFd fd_;
  std::vector<char> buffer_ = std::vector<char>(16 * 1024);
};

}  // namespace numalign
