// The yardsticks: the least that things cost, in plain C on plain N-API. Built by yardstick.mjs.
// Times are in nanoseconds. A function that gets a Float64Array does its work once per element, and
// stores how long that took.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <node_api.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kMaxArguments = 5, kMaskBytes = 8192, kMaxPath = 4096 };

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static napi_value fail(napi_env env, const char* what) {
  char message[256];
  snprintf(message, sizeof message, "%s: %s", what, strerror(errno));
  napi_throw_error(env, NULL, message);
  return NULL;
}

static napi_value number(napi_env env, double value) {
  napi_value result = NULL;
  napi_create_double(env, value, &result);
  return result;
}

// Throws and returns 0 if there are fewer arguments.
static int arguments(napi_env env, napi_callback_info info, size_t wanted, napi_value* argv) {
  size_t argc = kMaxArguments;
  napi_get_cb_info(env, info, &argc, argv, NULL, NULL);
  if (argc >= wanted) return 1;
  napi_throw_type_error(env, NULL, "too few arguments");
  return 0;
}

static void* elements(napi_env env, napi_value array, size_t* length) {
  void* data = NULL;
  if (napi_get_typedarray_info(env, array, NULL, length, &data, NULL, NULL) != napi_ok) {
    napi_throw_type_error(env, NULL, "a typed array was expected");
  }
  return data;
}

// The arguments, with the times to fill first. Throws and returns NULL if they are missing.
static double* times_of(napi_env env, napi_callback_info info, size_t wanted, napi_value* argv, size_t* count) {
  return arguments(env, info, wanted, argv) ? elements(env, argv[0], count) : NULL;
}

// E

static napi_value empty(napi_env env, napi_callback_info info) {
  (void)env;
  (void)info;
  return NULL;
}

// Raw system calls

static unsigned char masks[2][kMaskBytes];
static size_t mask_bytes[2];

// (words of one mask, words of another): the masks that pin sets in turn.
static napi_value set_masks(napi_env env, napi_callback_info info) {
  napi_value argv[kMaxArguments];
  if (!arguments(env, info, 2, argv)) return NULL;
  for (size_t i = 0; i < 2; i++) {
    size_t words = 0;
    const void* mask = elements(env, argv[i], &words);
    if (mask == NULL) return NULL;
    mask_bytes[i] = words * 4 < kMaskBytes ? words * 4 : kMaskBytes;
    memcpy(masks[i], mask, mask_bytes[i]);
  }
  return NULL;
}

// (): reads the calling thread's mask, sets the next, reads it back.
static napi_value pin(napi_env env, napi_callback_info info) {
  (void)info;
  static unsigned char read[kMaskBytes];
  static size_t next = 0;
  next = 1 - next;
  if (syscall(SYS_sched_getaffinity, 0, 128, read) < 0 || syscall(SYS_sched_setaffinity, 0, mask_bytes[next], masks[next]) < 0 ||
      syscall(SYS_sched_getaffinity, 0, 128, read) < 0) {
    return fail(env, "an affinity");
  }
  return NULL;
}

// hwloc alone, with the filters and flags of native/platform/discovery/hwloc_discovery.cc

static int load(hwloc_topology_t* topology, const char* xml, size_t length) {
  static const hwloc_obj_type_t kept[] = {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_DIE, HWLOC_OBJ_CORE, HWLOC_OBJ_L3CACHE};
  if (hwloc_topology_init(topology) != 0) return -1;
  if (xml != NULL && hwloc_topology_set_xmlbuffer(*topology, xml, (int)length) != 0) return -1;
  hwloc_topology_set_all_types_filter(*topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
    hwloc_topology_set_type_filter(*topology, kept[i], HWLOC_TYPE_FILTER_KEEP_ALL);
  }
  hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  unsigned long flags =
      HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS;
  if (xml == NULL) flags |= HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING | HWLOC_TOPOLOGY_FLAG_NO_DISTANCES;
  hwloc_topology_set_flags(*topology, flags);
  return hwloc_topology_load(*topology);
}

// (XML as a Uint8Array that ends with 0, or null for this machine) -> how long hwloc takes to load
// it, without destroying it.
static napi_value hwloc_load(napi_env env, napi_callback_info info) {
  napi_value argv[kMaxArguments];
  if (!arguments(env, info, 1, argv)) return NULL;
  napi_valuetype type = napi_undefined;
  napi_typeof(env, argv[0], &type);
  size_t length = 0;
  const char* xml = type == napi_object ? elements(env, argv[0], &length) : NULL;
  hwloc_topology_t topology = NULL;
  double begin = now_ns();
  int loaded = load(&topology, xml, length);
  double took = now_ns() - begin;
  if (topology != NULL) hwloc_topology_destroy(topology);
  return loaded == 0 ? number(env, took) : fail(env, "hwloc_topology_load");
}

// (synthetic description) -> the machine in hwloc's XML
static napi_value hwloc_xml(napi_env env, napi_callback_info info) {
  napi_value argv[kMaxArguments];
  char description[kMaxPath];
  if (!arguments(env, info, 1, argv)) return NULL;
  napi_get_value_string_utf8(env, argv[0], description, sizeof description, NULL);
  hwloc_topology_t topology = NULL;
  char* xml = NULL;
  int length = 0;
  napi_value text = NULL;
  if (hwloc_topology_init(&topology) == 0 && hwloc_topology_set_synthetic(topology, description) == 0 &&
      hwloc_topology_load(topology) == 0 && hwloc_topology_export_xmlbuffer(topology, &xml, &length, 0) == 0) {
    napi_create_string_utf8(env, xml, (size_t)length - 1, &text);
    hwloc_free_xmlbuffer(topology, xml);
  }
  if (topology != NULL) hwloc_topology_destroy(topology);
  return text != NULL ? text : fail(env, "hwloc_topology_export_xmlbuffer");
}

// The writes of a commit

// The files of a state folder that a commit writes, in its order. The second is synced.
enum { kOwner, kState, kCopy, kNumber, kFiles };
static const char* const file_names[kFiles] = {"owner", "state", "copy", "number"};

// (times, folder, what the owner claims, the line of the change, whether it is synced): what an
// admission writes, to files of its own: the claim, the change twice, and the generation.
static napi_value commit(napi_env env, napi_callback_info info) {
  static const char generation[] = "0000000000000016\n";
  napi_value argv[kMaxArguments];
  size_t count = 0;
  size_t sizes[kFiles] = {0, 0, 0, sizeof generation - 1};
  const void* bytes[kFiles] = {NULL, NULL, NULL, generation};
  char folder[kMaxPath];
  bool is_synced = false;
  double* times = times_of(env, info, 5, argv, &count);
  if (times == NULL) return NULL;
  bytes[kOwner] = elements(env, argv[2], &sizes[kOwner]);
  bytes[kState] = bytes[kCopy] = elements(env, argv[3], &sizes[kState]);
  sizes[kCopy] = sizes[kState];
  if (bytes[kOwner] == NULL || bytes[kState] == NULL) return NULL;
  napi_get_value_string_utf8(env, argv[1], folder, sizeof folder, NULL);
  napi_get_value_bool(env, argv[4], &is_synced);
  int directory = open(folder, O_DIRECTORY | O_CLOEXEC);
  int files[kFiles];
  int failed = directory < 0;
  for (size_t i = 0; i < kFiles; i++) {
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (i == kNumber ? 0 : O_APPEND);
    files[i] = openat(directory, file_names[i], flags, 0600);
    failed |= files[i] < 0;
  }
  for (size_t i = 0; i < count && !failed; i++) {
    double begin = now_ns();
    for (size_t file = 0; file < kFiles; file++) {
      if (file == kNumber) lseek(files[file], 0, SEEK_SET);
      failed |= write(files[file], bytes[file], sizes[file]) != (ssize_t)sizes[file];
      if (file == kState && is_synced) failed |= fdatasync(files[file]);
    }
    times[i] = now_ns() - begin;
  }
  if (failed) fail(env, folder);
  for (size_t i = 0; i < kFiles; i++) close(files[i]);
  close(directory);
  return NULL;
}

// What a thread notices of others

// How long the calling thread has been runnable and waited for a CPU since its start, as the kernel
// counts it; -1 if it does not. `fd` is its schedstat.
static double run_delay_ns(int fd) {
  char text[96];
  unsigned long long ran = 0;
  unsigned long long waited = 0;
  ssize_t length = pread(fd, text, sizeof text - 1, 0);
  if (length <= 0) return -1;
  text[length] = '\0';
  return sscanf(text, "%llu %llu", &ran, &waited) == 2 ? (double)waited : -1;
}

static int open_schedstat(void) { return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC); }

// () -> run_delay_ns of the calling thread
static napi_value run_delay(napi_env env, napi_callback_info info) {
  (void)info;
  int fd = open_schedstat();
  if (fd < 0) return fail(env, "schedstat");
  double waited = run_delay_ns(fd);
  close(fd);
  return number(env, waited);
}

// (times, delays, pause): sleeps repeatedly for `pause`. `times`: how much later than requested it
// woke up; `delays`: how much of that it waited for a CPU.
static napi_value wake_ups(napi_env env, napi_callback_info info) {
  napi_value argv[kMaxArguments];
  size_t count = 0;
  size_t delay_count = 0;
  double pause = 0;
  double* times = times_of(env, info, 3, argv, &count);
  double* delays = elements(env, argv[1], &delay_count);
  napi_get_value_double(env, argv[2], &pause);
  if (times == NULL || delays == NULL) return NULL;
  int fd = open_schedstat();
  if (fd < 0) return fail(env, "schedstat");
  for (size_t i = 0; i < count && i < delay_count; i++) {
    double waited = run_delay_ns(fd);
    double wanted = now_ns() + pause;
    struct timespec until = {(time_t)(wanted / 1e9), 0};
    until.tv_nsec = (long)(wanted - (double)until.tv_sec * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) continue;
    times[i] = now_ns() - wanted;
    delays[i] = run_delay_ns(fd) - waited;
  }
  close(fd);
  return NULL;
}

// (times, duration, least) -> how often the clock stood still for at least `least`, for a thread
// that only reads it for `duration`. Stores the first of these.
static napi_value spin_gaps(napi_env env, napi_callback_info info) {
  napi_value argv[kMaxArguments];
  size_t count = 0;
  double duration = 0;
  double least = 0;
  double* times = times_of(env, info, 3, argv, &count);
  napi_get_value_double(env, argv[1], &duration);
  napi_get_value_double(env, argv[2], &least);
  if (times == NULL) return NULL;
  size_t found = 0;
  double before = now_ns();
  for (double end = before + duration; before < end;) {
    double now = now_ns();
    if (now - before >= least) {
      if (found < count) times[found] = now - before;
      found++;
    }
    before = now;
  }
  return number(env, (double)found);
}

// The distance of CPUs from each other, and from memory

enum { kTurns = 100, kLine = 64, kLoads = 1000 };
static const double kPatienceNs = 60e9;

// Whether the cell got this value before the limit: the thread on the other side may have failed.
static int await_value(_Atomic uint32_t* cell, uint32_t wanted) {
  double begin = now_ns();
  for (uint32_t spins = 1; atomic_load_explicit(cell, memory_order_acquire) != wanted; spins++) {
    if (spins % (1u << 20) == 0 && now_ns() - begin > kPatienceNs) return 0;
  }
  return 1;
}

// (times, shared cell, side): two threads pass a cache line to each other: how long there and back
// takes, the mean of 100 turns.
static napi_value ping_pong(napi_env env, napi_callback_info info) {
  napi_value argv[kMaxArguments];
  size_t count = 0;
  size_t cells = 0;
  uint32_t side = 0;
  double* times = times_of(env, info, 3, argv, &count);
  _Atomic uint32_t* cell = elements(env, argv[1], &cells);
  napi_get_value_uint32(env, argv[2], &side);
  if (times == NULL || cell == NULL || cells == 0) return NULL;
  uint32_t value = 0;
  for (size_t i = 0; i < count; i++) {
    double begin = now_ns();
    for (int turn = 0; turn < kTurns; turn++, value += 2) {
      if (side == 0) atomic_store_explicit(cell, value + 1, memory_order_release);
      if (!await_value(cell, side == 0 ? value + 2 : value + 1)) {
        errno = ETIMEDOUT;
        return fail(env, "the other side");
      }
      if (side != 0) atomic_store_explicit(cell, value + 2, memory_order_release);
    }
    times[i] = (now_ns() - begin) / kTurns;
  }
  return NULL;
}

// Each line has the offset of another, in one circle through all of them (Sattolo), which no
// prefetcher can predict.
static void make_circle(unsigned char* memory, size_t lines) {
  for (size_t i = 0; i < lines; i++) *(size_t*)(memory + i * kLine) = i * kLine;
  uint64_t state = 1;
  for (size_t i = lines - 1; i > 0; i--) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    size_t* one = (size_t*)(memory + i * kLine);
    size_t* other = (size_t*)(memory + (state >> 33) % i * kLine);
    size_t kept = *one;
    *one = *other;
    *other = kept;
  }
}

// (times, bytes, NUMA node): how long a load from memory of that node takes if it depends on the
// one before, the mean of 1,000.
static napi_value memory_latency(napi_env env, napi_callback_info info) {
  napi_value argv[kMaxArguments];
  size_t count = 0;
  double size = 0;
  uint32_t node = 0;
  double* times = times_of(env, info, 3, argv, &count);
  napi_get_value_double(env, argv[1], &size);
  napi_get_value_uint32(env, argv[2], &node);
  if (times == NULL) return NULL;
  enum { kBind = 2, kMaxNode = 1024, kWordBits = 64 };
  size_t bytes = (size_t)size;
  uint64_t nodes[kMaxNode / kWordBits] = {0};
  if (node >= kMaxNode) return fail(env, "node");
  nodes[node / kWordBits] = (uint64_t)1 << node % kWordBits;
  unsigned char* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail(env, "mmap");
  // Large pages, so that the memory is measured and not the page tables.
  madvise(memory, bytes, MADV_HUGEPAGE);
  if (syscall(SYS_mbind, memory, bytes, kBind, nodes, (unsigned long)kMaxNode, 0) != 0) {
    munmap(memory, bytes);
    return fail(env, "mbind");
  }
  make_circle(memory, bytes / kLine);
  size_t at = 0;
  for (size_t i = 0; i < count; i++) {
    double begin = now_ns();
    for (int load = 0; load < kLoads; load++) at = *(volatile size_t*)(memory + at);
    times[i] = (now_ns() - begin) / kLoads;
  }
  munmap(memory, bytes);
  return NULL;
}

NAPI_MODULE_INIT() {
  const napi_property_descriptor functions[] = {
      {"empty", NULL, empty, NULL, NULL, NULL, napi_enumerable, NULL},
      {"setMasks", NULL, set_masks, NULL, NULL, NULL, napi_enumerable, NULL},
      {"pin", NULL, pin, NULL, NULL, NULL, napi_enumerable, NULL},
      {"hwlocLoad", NULL, hwloc_load, NULL, NULL, NULL, napi_enumerable, NULL},
      {"hwlocXml", NULL, hwloc_xml, NULL, NULL, NULL, napi_enumerable, NULL},
      {"commit", NULL, commit, NULL, NULL, NULL, napi_enumerable, NULL},
      {"runDelay", NULL, run_delay, NULL, NULL, NULL, napi_enumerable, NULL},
      {"wakeUps", NULL, wake_ups, NULL, NULL, NULL, napi_enumerable, NULL},
      {"pingPong", NULL, ping_pong, NULL, NULL, NULL, napi_enumerable, NULL},
      {"memoryLatency", NULL, memory_latency, NULL, NULL, NULL, napi_enumerable, NULL},
      {"spinGaps", NULL, spin_gaps, NULL, NULL, NULL, napi_enumerable, NULL},
  };
  napi_define_properties(env, exports, sizeof functions / sizeof *functions, functions);
  return exports;
}
