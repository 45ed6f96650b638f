// Preloaded into a process under test (LD_PRELOAD): intercepts every libc call that changes the
// state folder or locks a file in it. It can end the process just before, in the middle of, or just
// after such a call, and log them all. Compiled by shim.mjs.
//
//   NUMALIGN_SHIM_FOLDER   the state folder, absolute and without links; all else is ignored
//   NUMALIGN_SHIM_FAIL     N:WHEN or N:WHEN:KIND   dies at the N-th step (of that kind), WHEN being
//                          before, during (a write: half of it) or after
//   NUMALIGN_SHIM_RANDOM   SEED:RATE   dies at one step in RATE
//   NUMALIGN_SHIM_ERRORS   SEED:RATE or SEED:RATE:PATH   one step in RATE (on paths that begin so)
//                          fails with an error that the kernel may give there
//   NUMALIGN_SHIM_LOG      a file to append to: each kind of step when it first occurs, and the
//                          step at which the process died
//   NUMALIGN_SHIM_TRACE    a file to append to: every step that succeeded, with its bytes
//   NUMALIGN_SHIM_NO_SYNC  if set, nothing is synced: for a process whose files need not last
//   NUMALIGN_SHIM_BOOT_ID  a file that replaces /proc/sys/kernel/random/boot_id
//
// A kind is a call and the file it is about, such as "rename state.json"; a file in a folder below is
// "owners/*". Of what is written there it names the step of a move, such as "write state.json begin".
// Both files hold one JSON object a line.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_FD 4096
#define MAX_KINDS 256

typedef enum { BEFORE, DURING, AFTER } When;
static const char* const WHEN_NAMES[] = {"before", "during", "after"};

static pid_t self;
static char folder[4096];
static size_t folder_length;
static const char* boot_id_file;
static const char* calm_file;
static int is_unsynced;
static int log_fd = -1, trace_fd = -1;

static struct {
  unsigned long nth;
  When when;
  char kind[256];
} fail;
static uint64_t random_state;
static unsigned long random_rate;
static uint64_t error_state;
static unsigned long error_rate;
static char error_path[256];

// What is known of the folder's open files. A path is relative to the folder, "." the folder itself.
static char* _Atomic paths[MAX_FD];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long steps;
static char kinds[MAX_KINDS][256];
static unsigned long met[MAX_KINDS];

#define REAL(name) real_##name
#define LOAD(name) REAL(name) = dlsym(RTLD_NEXT, #name)
static int (*REAL(openat))(int, const char*, int, ...);
static int (*REAL(open))(const char*, int, ...);
static int (*REAL(fcntl))(int, int, ...);
static ssize_t (*REAL(pwrite))(int, const void*, size_t, off_t);
static ssize_t (*REAL(write))(int, const void*, size_t);
static int (*REAL(fsync))(int);
static int (*REAL(fdatasync))(int);
static int (*REAL(ftruncate))(int, off_t);
static int (*REAL(futimens))(int, const struct timespec[2]);
static int (*REAL(fchmod))(int, mode_t);
static int (*REAL(linkat))(int, const char*, int, const char*, int);
static int (*REAL(renameat))(int, const char*, int, const char*);
static int (*REAL(renameat2))(int, const char*, int, const char*, unsigned);
static int (*REAL(unlinkat))(int, const char*, int);
static int (*REAL(mkdirat))(int, const char*, mode_t);
static int (*REAL(close))(int);
static int (*REAL(closedir))(DIR*);

static int open_extra(const char* variable) {
  const char* path = getenv(variable);
  if (path == NULL) return -1;
  int fd = REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  // Out of the way of the numbers that the program counts on.
  int high = fd < 0 ? -1 : REAL(fcntl)(fd, F_DUPFD_CLOEXEC, MAX_FD);
  if (high >= 0) REAL(close)(fd);
  return high >= 0 ? high : fd;
}

__attribute__((constructor)) static void start(void) {
  LOAD(openat), LOAD(open), LOAD(fcntl), LOAD(pwrite), LOAD(write), LOAD(fsync), LOAD(fdatasync),
      LOAD(ftruncate);
  LOAD(futimens), LOAD(fchmod), LOAD(linkat), LOAD(renameat), LOAD(renameat2), LOAD(unlinkat), LOAD(mkdirat),
      LOAD(close), LOAD(closedir);
  self = getpid();
  const char* path = getenv("NUMALIGN_SHIM_FOLDER");
  if (path != NULL) folder_length = (size_t)snprintf(folder, sizeof folder, "%s", path);
  boot_id_file = getenv("NUMALIGN_SHIM_BOOT_ID");
  calm_file = getenv("NUMALIGN_SHIM_CALM");
  is_unsynced = getenv("NUMALIGN_SHIM_NO_SYNC") != NULL;
  char when[16];
  const char* text = getenv("NUMALIGN_SHIM_FAIL");
  if (text != NULL && sscanf(text, "%lu:%15[a-z]:%255[^\n]", &fail.nth, when, fail.kind) >= 2) {
    fail.when = strcmp(when, "before") == 0 ? BEFORE : strcmp(when, "during") == 0 ? DURING : AFTER;
  }
  text = getenv("NUMALIGN_SHIM_RANDOM");
  if (text != NULL) sscanf(text, "%lu:%lu", &random_state, &random_rate);
  text = getenv("NUMALIGN_SHIM_ERRORS");
  if (text != NULL) sscanf(text, "%lu:%lu:%255[^\n]", &error_state, &error_rate, error_path);
  log_fd = open_extra("NUMALIGN_SHIM_LOG");
  trace_fd = open_extra("NUMALIGN_SHIM_TRACE");
}

static uint64_t random_number(uint64_t* state) {  // splitmix64
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// ---- which file

static const char* below(const char* absolute) {
  if (folder_length == 0 || strncmp(absolute, folder, folder_length) != 0) return NULL;
  if (absolute[folder_length] == '\0') return ".";
  return absolute[folder_length] == '/' ? absolute + folder_length + 1 : NULL;
}

static const char* path_of(int fd) { return fd >= 0 && fd < MAX_FD ? paths[fd] : NULL; }

// The name relative to the folder, in `buffer`; false if the file is not in the folder.
static int resolve(int dir, const char* name, char* buffer, size_t size) {
  if (folder_length == 0 || getpid() != self || name == NULL) return 0;
  const char* base = "";
  if (name[0] == '/' || dir == AT_FDCWD) {
    name = below(name);
  } else {
    base = path_of(dir);
    if (base == NULL) return 0;
    if (strcmp(base, ".") == 0) base = "";
    if (strcmp(name, ".") == 0) name = base[0] == '\0' ? "." : "";
  }
  if (name == NULL) return 0;
  if (strcmp(name, "..") == 0) {
    const char* last = strrchr(base, '/');
    if (base[0] == '\0') return 0;
    return last == NULL ? (size_t)snprintf(buffer, size, ".") < size
                        : (size_t)snprintf(buffer, size, "%.*s", (int)(last - base), base) < size;
  }
  const char* slash = base[0] != '\0' && name[0] != '\0' ? "/" : "";
  return (size_t)snprintf(buffer, size, "%s%s%s", base, slash, name) < size;
}

static void remember(int fd, const char* path) {
  if (fd < 0 || fd >= MAX_FD) return;
  char* old = atomic_exchange(&paths[fd], path == NULL ? NULL : strdup(path));
  free(old);
}

// Copied: another thread may close the descriptor meanwhile.
static int ours(int fd, char* buffer, size_t size) {
  if (getpid() != self) return 0;
  pthread_mutex_lock(&mutex);
  const char* path = path_of(fd);
  if (path != NULL) snprintf(buffer, size, "%s", path);
  pthread_mutex_unlock(&mutex);
  return path != NULL;
}

// ---- steps

static void die(const char* kind, When when) {
  char line[512];
  int n =
      snprintf(line, sizeof line, "{\"pid\":%d,\"time\":%lld,\"step\":%lu,\"died\":\"%s\",\"when\":\"%s\"}\n",
               self, (long long)now(), steps, kind, WHEN_NAMES[when]);
  if (log_fd >= 0 && REAL(write)(log_fd, line, (size_t)n) < 0) errno = 0;
  for (;;) {
    kill(self, SIGKILL);
    // The first process of a pid namespace cannot kill itself.
    syscall(SYS_exit_group, 137);
  }
}

typedef struct {
  char kind[256];
  int dies;   // -1, or a When
  int error;  // 0, or what it fails with
} Step;

// The kernel's possible answers to a call. A full disk refuses calls that write.
static int error_of(const char* op) {
  static const int disk[] = {EIO, ENOSPC, EDQUOT};
  static const int files[] = {EMFILE, ENFILE, ENOSPC, EIO, EINTR};
  static const int locks[] = {ENOLCK, EINTR};
  uint64_t n = random_number(&error_state);
  if (strcmp(op, "open") == 0) return files[n % 5];
  if (strcmp(op, "lock") == 0) return locks[n % 2];
  if (strcmp(op, "write") == 0 && n % 4 == 0) return EINTR;
  if (strcmp(op, "unlink") == 0 || strcmp(op, "chmod") == 0 || strcmp(op, "stamp") == 0) return EIO;
  return disk[n / 4 % 3];
}

static int is_calm(void) { return calm_file != NULL && access(calm_file, F_OK) == 0; }

// Counts a step and decides its fate. If it is traced, the mutex is held until end_step, so that
// the order of the lines is that of the calls.
static Step begin_named_step(const char* op, const char* path, const char* name) {
  Step step = {.dies = -1};
  const char* slash = strchr(path, '/');
  int length = slash == NULL ? (int)strlen(path) : (int)(slash - path);
  snprintf(step.kind, sizeof step.kind, "%s %.*s%s%s", op, length, path, slash == NULL ? "" : "/*", name);
  pthread_mutex_lock(&mutex);
  steps++;
  unsigned long count = 0;
  for (int i = 0; i < MAX_KINDS; i++) {
    if (kinds[i][0] == '\0') {
      memcpy(kinds[i], step.kind, sizeof step.kind);
      if (log_fd >= 0) {
        char line[512];
        int n = snprintf(line, sizeof line, "{\"met\":\"%s\"}\n", step.kind);
        if (REAL(write)(log_fd, line, (size_t)n) < 0) errno = 0;
      }
    }
    if (strcmp(kinds[i], step.kind) == 0) {
      count = ++met[i];
      break;
    }
  }
  if (fail.nth > 0) {
    int matches =
        fail.kind[0] == '\0' ? fail.nth == steps : strcmp(fail.kind, step.kind) == 0 && fail.nth == count;
    if (matches) step.dies = (int)fail.when;
  }
  if (random_rate > 0 && random_number(&random_state) % random_rate == 0)
    step.dies = (int)(random_number(&random_state) % 3);
  // A close cannot be undone.
  int may_fail =
      error_rate > 0 && strcmp(op, "close") != 0 && strncmp(path, error_path, strlen(error_path)) == 0;
  if (may_fail && random_number(&error_state) % error_rate == 0 && !is_calm()) step.error = error_of(op);
  if (step.dies == BEFORE) die(step.kind, BEFORE);
  if (trace_fd < 0) pthread_mutex_unlock(&mutex);
  return step;
}

// The result of the step's call; a step that is to fail makes no call.
#define UNLESS_REFUSED(step, call) ((step).error != 0 ? (errno = (step).error, -1) : (call))

static Step begin_step(const char* op, const char* path) { return begin_named_step(op, path, ""); }

static void end_step(const Step* step) {
  int error = errno;
  if (trace_fd >= 0) pthread_mutex_unlock(&mutex);
  if (step->dies >= 0) die(step->kind, (When)step->dies);
  errno = error;
}

// A line of the trace. `more`: further members, beginning with a comma. REQUIRES: between begin_step and
// end_step.
__attribute__((format(printf, 4, 5))) static void trace(const char* op, const char* path, int fd,
                                                        const char* more, ...) {
  if (trace_fd < 0) return;
  int error = errno;
  char extra[8192], line[16384];
  va_list arguments;
  va_start(arguments, more);
  vsnprintf(extra, sizeof extra, more, arguments);
  va_end(arguments);
  int n = snprintf(line, sizeof line, "{\"pid\":%d,\"op\":\"%s\",\"path\":\"%s\",\"fd\":%d%s}\n", self, op,
                   path, fd, extra);
  if (REAL(write)(trace_fd, line, (size_t)n) != n) abort();
  errno = error;
}

static void trace_bytes(const char* path, int fd, const void* bytes, size_t size, long long offset) {
  if (trace_fd < 0) return;
  int error = errno;
  char* line = malloc(2 * size + 8192);
  if (line == NULL) abort();
  int n = sprintf(line, "{\"pid\":%d,\"op\":\"write\",\"path\":\"%s\",\"fd\":%d,\"offset\":%lld,\"bytes\":\"",
                  self, path, fd, offset);
  for (size_t i = 0; i < size; i++) n += sprintf(line + n, "%02x", ((const unsigned char*)bytes)[i]);
  n += sprintf(line + n, "\"}\n");
  if (REAL(write)(trace_fd, line, (size_t)n) != n) abort();
  free(line);
  errno = error;
}

// ---- the calls

static int open_step(int dir, const char* name, int flags, mode_t mode) {
  char path[4096];
  if (!resolve(dir, name, path, sizeof path)) {
    if (boot_id_file != NULL && strcmp(name, "/proc/sys/kernel/random/boot_id") == 0) name = boot_id_file;
    int fd = REAL(openat)(dir, name, flags, mode);
    // The shim does not see every close.
    if (folder_length > 0 && getpid() == self) {
      pthread_mutex_lock(&mutex);
      if (path_of(fd) != NULL) remember(fd, NULL);
      pthread_mutex_unlock(&mutex);
    }
    return fd;
  }
  // Reading changes nothing: a process that dies here dies after its last change.
  if ((flags & O_ACCMODE) == O_RDONLY && (flags & (O_CREAT | O_TRUNC)) == 0) {
    int fd = REAL(openat)(dir, name, flags, mode);
    pthread_mutex_lock(&mutex);
    if (fd >= 0) remember(fd, path);
    pthread_mutex_unlock(&mutex);
    return fd;
  }
  Step step = begin_step("open", path);
  int fd = UNLESS_REFUSED(step, REAL(openat)(dir, name, flags, mode));
  if (trace_fd < 0) pthread_mutex_lock(&mutex);
  if (fd >= 0) remember(fd, path);
  if (trace_fd < 0) pthread_mutex_unlock(&mutex);
  if (fd >= 0)
    trace("open", path, fd, ",\"create\":%s,\"truncate\":%s", flags & O_CREAT ? "true" : "false",
          flags & O_TRUNC ? "true" : "false");
  end_step(&step);
  return fd;
}

static mode_t mode_argument(int flags, va_list arguments) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#define OPENAT(name)                                    \
  int name(int dir, const char* path, int flags, ...) { \
    va_list arguments;                                  \
    va_start(arguments, flags);                         \
    mode_t mode = mode_argument(flags, arguments);      \
    va_end(arguments);                                  \
    return open_step(dir, path, flags, mode);           \
  }
#define OPEN(name)                                 \
  int name(const char* path, int flags, ...) {     \
    va_list arguments;                             \
    va_start(arguments, flags);                    \
    mode_t mode = mode_argument(flags, arguments); \
    va_end(arguments);                             \
    return open_step(AT_FDCWD, path, flags, mode); \
  }
OPENAT(openat)
OPENAT(openat64)
OPEN(open)
OPEN(open64)

// The step of a move that these bytes record, after a blank; "" if there is none.
static const char* move_step(const char* path, const void* bytes, size_t size) {
#define SAYS(text) (memmem(bytes, size, text, sizeof text - 1) != NULL)
  if (strcmp(path, "state.json") != 0 && strncmp(path, "owners/", 7) != 0) return "";
  if (SAYS("\"move\":{\"for\":")) {
    if (SAYS("\"refusal\":\"")) return " refuse";
    return SAYS("\"target\":null,\"refusal\":") ? " begin" : " announce";
  }
  if (!SAYS("\"name\":\".room\"")) return "";
  return SAYS("\"moves\":[\"") ? " finish" : " keep";
#undef SAYS
}

static ssize_t pwrite_step(int fd, const void* bytes, size_t size, off_t offset) {
  char path[4096];
  if (!ours(fd, path, sizeof path)) return REAL(pwrite)(fd, bytes, size, offset);
  Step step = begin_named_step("write", path, move_step(path, bytes, size));
  if (step.dies == DURING) size = (size + 1) / 2;
  ssize_t n = UNLESS_REFUSED(step, REAL(pwrite)(fd, bytes, size, offset));
  if (n > 0) trace_bytes(path, fd, bytes, (size_t)n, (long long)offset);
  end_step(&step);
  return n;
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return pwrite_step(fd, bytes, size, offset);
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off_t offset) {
  return pwrite_step(fd, bytes, size, offset);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  char path[4096];
  if (!ours(fd, path, sizeof path)) return REAL(write)(fd, bytes, size);
  Step step = begin_named_step("write", path, move_step(path, bytes, size));
  if (step.dies == DURING) size = (size + 1) / 2;
  long long offset = (long long)lseek(fd, 0, SEEK_CUR);
  ssize_t n = UNLESS_REFUSED(step, REAL(write)(fd, bytes, size));
  if (n > 0) trace_bytes(path, fd, bytes, (size_t)n, offset);
  end_step(&step);
  return n;
}

// A call on a descriptor: counted, and traced if it succeeds.
#define ON_FD(op, fd, call, ...)                       \
  do {                                                 \
    char path[4096];                                   \
    if (!ours(fd, path, sizeof path)) return call;     \
    Step step = begin_step(op, path);                  \
    int result = UNLESS_REFUSED(step, call);           \
    if (result == 0) trace(op, path, fd, __VA_ARGS__); \
    end_step(&step);                                   \
    return result;                                     \
  } while (0)

int fsync(int fd) {
  if (is_unsynced) return 0;
  ON_FD("fsync", fd, REAL(fsync)(fd), "%s", "");
}
int fdatasync(int fd) {
  if (is_unsynced) return 0;
  ON_FD("fsync", fd, REAL(fdatasync)(fd), "%s", "");
}
int ftruncate(int fd, off_t size) {
  ON_FD("truncate", fd, REAL(ftruncate)(fd, size), ",\"size\":%lld", (long long)size);
}
int ftruncate64(int fd, off_t size) {
  ON_FD("truncate", fd, REAL(ftruncate)(fd, size), ",\"size\":%lld", (long long)size);
}
int futimens(int fd, const struct timespec times[2]) {
  ON_FD("stamp", fd, REAL(futimens)(fd, times), "%s", "");
}
int fchmod(int fd, mode_t mode) { ON_FD("chmod", fd, REAL(fchmod)(fd, mode), "%s", ""); }

static int fcntl_step(int fd, int command, void* argument) {
  char path[4096];
  int locks = command == F_OFD_SETLK || command == F_OFD_SETLKW || command == F_SETLK || command == F_SETLKW;
  if (!locks || !ours(fd, path, sizeof path)) return REAL(fcntl)(fd, command, argument);
  Step step = begin_step("lock", path);
  // It may wait for long, perhaps for a thread of this process.
  if (trace_fd >= 0) pthread_mutex_unlock(&mutex);
  int result = UNLESS_REFUSED(step, REAL(fcntl)(fd, command, argument));
  int error = errno;
  if (trace_fd >= 0) pthread_mutex_lock(&mutex);
  errno = error;
  end_step(&step);
  return result;
}
#define FCNTL(name)                            \
  int name(int fd, int command, ...) {         \
    va_list arguments;                         \
    va_start(arguments, command);              \
    void* argument = va_arg(arguments, void*); \
    va_end(arguments);                         \
    return fcntl_step(fd, command, argument);  \
  }
FCNTL(fcntl)
FCNTL(fcntl64)

// It closes the descriptor itself, whose number may be another file's then.
int closedir(DIR* directory) {
  pthread_mutex_lock(&mutex);
  remember(dirfd(directory), NULL);
  pthread_mutex_unlock(&mutex);
  return REAL(closedir)(directory);
}

int close(int fd) {
  char path[4096];
  if (!ours(fd, path, sizeof path)) return REAL(close)(fd);
  Step step = begin_step("close", path);
  if (trace_fd < 0) pthread_mutex_lock(&mutex);
  // Before the close: another thread may get the number at once.
  remember(fd, NULL);
  if (trace_fd < 0) pthread_mutex_unlock(&mutex);
  trace("close", path, fd, "%s", "");
  int result = REAL(close)(fd);
  end_step(&step);
  return result;
}

// A call that makes `to` of `from`.
#define FROM_TO(op, from_dir, from, to_dir, to, call)                   \
  do {                                                                  \
    char source[4096], target[4096];                                    \
    if (!resolve(from_dir, from, source, sizeof source)) return call;   \
    if (!resolve(to_dir, to, target, sizeof target)) return call;       \
    Step step = begin_step(op, target);                                 \
    int result = UNLESS_REFUSED(step, call);                            \
    if (result == 0) trace(op, target, -1, ",\"from\":\"%s\"", source); \
    end_step(&step);                                                    \
    return result;                                                      \
  } while (0)

int linkat(int from_dir, const char* from, int to_dir, const char* to, int flags) {
  FROM_TO("link", from_dir, from, to_dir, to, REAL(linkat)(from_dir, from, to_dir, to, flags));
}
int link(const char* from, const char* to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_dir, const char* from, int to_dir, const char* to) {
  FROM_TO("rename", from_dir, from, to_dir, to, REAL(renameat)(from_dir, from, to_dir, to));
}
int renameat2(int from_dir, const char* from, int to_dir, const char* to, unsigned flags) {
  FROM_TO("rename", from_dir, from, to_dir, to, REAL(renameat2)(from_dir, from, to_dir, to, flags));
}
int rename(const char* from, const char* to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

// A call on a name.
#define ON_NAME(op, dir, name, call)                         \
  do {                                                       \
    char path[4096];                                         \
    if (!resolve(dir, name, path, sizeof path)) return call; \
    Step step = begin_step(op, path);                        \
    int result = UNLESS_REFUSED(step, call);                 \
    if (result == 0) trace(op, path, -1, "%s", "");          \
    end_step(&step);                                         \
    return result;                                           \
  } while (0)

int unlinkat(int dir, const char* name, int flags) {
  ON_NAME("unlink", dir, name, REAL(unlinkat)(dir, name, flags));
}
int unlink(const char* name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char* name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }
int mkdirat(int dir, const char* name, mode_t mode) {
  ON_NAME("mkdir", dir, name, REAL(mkdirat)(dir, name, mode));
}
int mkdir(const char* name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }
