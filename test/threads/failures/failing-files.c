// Preloaded into a process under test (LD_PRELOAD): from a given call on, every libc call fails that
// opens a file or changes one, as without descriptors (EMFILE) on a broken disk (EIO). The process
// opens "/failing-files/N": N calls from then on succeed, no later one; -1: all succeed again.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char CONTROL[] = "/failing-files/";
static atomic_long left = -1;

// True if this call fails.
static int fails(void) {
  long now = atomic_load(&left);
  while (now > 0 && !atomic_compare_exchange_weak(&left, &now, now - 1)) continue;
  return now == 0;
}

static int refuse(int error) {
  errno = error;
  return -1;
}

static int is_control(const char* path) {
  if (path == NULL || strncmp(path, CONTROL, sizeof CONTROL - 1) != 0) return 0;
  atomic_store(&left, atol(path + sizeof CONTROL - 1));
  return 1;
}

#define CALL(type, name, parameters) type (*real)parameters = (type(*) parameters)dlsym(RTLD_NEXT, #name)

#define OPEN(name)                                                              \
  int name(const char* path, int flags, ...) {                                  \
    va_list arguments;                                                          \
    va_start(arguments, flags);                                                 \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0; \
    va_end(arguments);                                                          \
    if (is_control(path)) return refuse(ENOENT);                                \
    if (fails()) return refuse(EMFILE);                                         \
    CALL(int, name, (const char*, int, ...));                                   \
    return real(path, flags, mode);                                             \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                            \
  int name(int folder, const char* path, int flags, ...) {                      \
    va_list arguments;                                                          \
    va_start(arguments, flags);                                                 \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0; \
    va_end(arguments);                                                          \
    if (fails()) return refuse(EMFILE);                                         \
    CALL(int, name, (int, const char*, int, ...));                              \
    return real(folder, path, flags, mode);                                     \
  }
OPENAT(openat)
OPENAT(openat64)

#define CHANGE(name, parameters, ...)   \
  int name parameters {                 \
    if (fails()) return refuse(EIO);    \
    CALL(int, name, parameters);        \
    return real(__VA_ARGS__);           \
  }
CHANGE(fsync, (int fd), fd)
CHANGE(fdatasync, (int fd), fd)
CHANGE(ftruncate, (int fd, off_t size), fd, size)
CHANGE(ftruncate64, (int fd, off64_t size), fd, size)
CHANGE(futimens, (int fd, const struct timespec times[2]), fd, times)
CHANGE(linkat, (int a, const char* from, int b, const char* to, int flags), a, from, b, to, flags)
CHANGE(renameat, (int a, const char* from, int b, const char* to), a, from, b, to)
CHANGE(renameat2, (int a, const char* from, int b, const char* to, unsigned flags), a, from, b, to, flags)
CHANGE(unlinkat, (int folder, const char* path, int flags), folder, path, flags)
CHANGE(mkdirat, (int folder, const char* path, mode_t mode), folder, path, mode)
CHANGE(rename, (const char* from, const char* to), from, to)
CHANGE(unlink, (const char* path), path)
CHANGE(rmdir, (const char* path), path)
CHANGE(mkdir, (const char* path, mode_t mode), path, mode)

DIR* opendir(const char* path) {
  if (fails()) return errno = EMFILE, NULL;
  CALL(DIR*, opendir, (const char*));
  return real(path);
}

static int is_file(int fd) {
  struct stat found;
  return fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
}

#define WRITE(name, parameters, ...)                  \
  ssize_t name parameters {                           \
    if (is_file(fd) && fails()) return refuse(EIO);   \
    CALL(ssize_t, name, parameters);                  \
    return real(__VA_ARGS__);                         \
  }
WRITE(write, (int fd, const void* bytes, size_t size), fd, bytes, size)
WRITE(pwrite, (int fd, const void* bytes, size_t size, off_t offset), fd, bytes, size, offset)
WRITE(pwrite64, (int fd, const void* bytes, size_t size, off64_t offset), fd, bytes, size, offset)
