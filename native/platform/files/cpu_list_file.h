// CpuListFile: a file in which the kernel shows a list of CPUs, to be read again and again. It is kept open
// and read from its beginning, which takes a fifth of opening it each time; the kernel writes the list
// again for each such read. Thread-safety: one thread at a time; no two objects share a descriptor or a
// position.
#pragma once

#include <string>

#include "core/id_set.h"
#include "platform/files/unique_fd.h"
#include "platform/syscall.h"

namespace numalign {

class CpuListFile {
 public:
  // Opens nothing yet.
  explicit CpuListFile(std::string path) : path_(std::move(path)) {}

  // The list as it is at this moment. ENOENT, EACCES: there is none, or it is hidden, and the next call looks
  // again; ERR_INVALID_LIST for what is none.
  Result<CpuSet> read();

  // Reads, and answers whether the file has other bytes than at the last call that succeeded.
  Result<bool> has_changed();
  // As it was read last. REQUIRES: has_changed() has succeeded.
  const CpuSet& cpus() const { return cpus_; }

 private:
  std::string path_;
  UniqueFd fd_;
  std::string text_;
  bool is_known_ = false;
  CpuSet cpus_;
};

}  // namespace numalign
