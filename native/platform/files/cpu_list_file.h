// CpuListFile: a kernel file with a list of CPUs, for repeated reads. It stays open and is read
// from its beginning, which takes a fifth of opening it each time; the kernel generates the list
// for each such read. Thread-safety: one thread at a time; no two objects share a descriptor or a
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

  // The list as it is now. ENOENT, EACCES: missing or hidden; the next call looks again.
  // ERR_INVALID_LIST for any other content.
  Result<CpuSet> read();

  // Reads the file. Returns true if its bytes differ from those of the last successful call.
  Result<bool> has_changed();
  // The list of the last read. REQUIRES: has_changed() has succeeded.
  const CpuSet& cpus() const { return cpus_; }

 private:
  std::string path_;
  UniqueFd fd_;
  std::string text_;
  bool is_known_ = false;
  CpuSet cpus_;
};

}  // namespace numalign
