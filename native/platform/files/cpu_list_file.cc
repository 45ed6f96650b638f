#include "platform/files/cpu_list_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "core/id_list.h"

namespace numalign {

Result<bool> CpuListFile::has_changed() {
  // Files in sysfs have at most a page.
  char bytes[4096];
  ssize_t size = fd_.valid() ? pread(fd_.get(), bytes, sizeof bytes, 0) : -1;
  if (size < 0) {
    // The first call, or the open file is gone and the path may have another by now.
    is_known_ = false;
    fd_.reset();
    // Many kernels have no such file, and a failing open takes several times as long as a stat.
    struct stat found;
    if (stat(path_.c_str(), &found) == 0) fd_.reset(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd_.valid()) return syscall_error("open", "cannot open " + path_);
    size = pread(fd_.get(), bytes, sizeof bytes, 0);
    if (size < 0) return syscall_error("read", "cannot read " + path_);
  }
  const std::string_view text(bytes, static_cast<size_t>(size));
  if (is_known_ && text == text_) return false;
  is_known_ = false;
  Result<CpuSet> cpus = parse_id_list<CpuTag>(text.ends_with('\n') ? text.substr(0, text.size() - 1) : text);
  if (!cpus.ok()) return cpus.error();
  cpus_ = std::move(cpus).value();
  text_ = text;
  is_known_ = true;
  return true;
}

Result<CpuSet> CpuListFile::read() {
  Result<bool> changed = has_changed();
  return changed.ok() ? Result<CpuSet>(cpus_) : changed.error();
}

}  // namespace numalign
