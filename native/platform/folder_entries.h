// The names in an open folder, from getdents64(2). Avoids the four more system calls of fdopendir
// and closedir.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace numalign {

// linux/dirent.h; glibc's headers do not have it.
struct FolderEntry {
  uint64_t inode;
  int64_t next;
  unsigned short bytes;
  unsigned char type;
  char name[1];  // and more
};

// Calls `each` with the names of one system call, also `.` and `..`. Returns their size in bytes: 0
// at the end of the folder, negative with errno on failure.
template <class Each>
long read_entries(int fd, Each each) {
  alignas(FolderEntry) char buffer[16 * 1024];
  const long size = syscall(SYS_getdents64, fd, buffer, sizeof buffer);
  for (long at = 0; at < size;) {
    const auto* entry = reinterpret_cast<const FolderEntry*>(buffer + at);
    each(static_cast<const char*>(entry->name));
    at += entry->bytes;
  }
  return size;
}

}  // namespace numalign
