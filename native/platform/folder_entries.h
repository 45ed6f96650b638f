// The names in an open folder, as getdents64(2) answers them: without the four system calls around it that
// fdopendir and closedir make.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace numalign {

// linux/dirent.h; glibc's headers have none for the system call.
struct FolderEntry {
  uint64_t inode;
  int64_t next;
  unsigned short bytes;
  unsigned char type;
  char name[1];  // and more
};

// Calls `each` with the names that one system call answers, `.` and `..` too. How many bytes these take: 0 at
// the end of the folder, less with errno where it cannot be read.
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
