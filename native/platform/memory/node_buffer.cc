#include "platform/memory/node_buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <string>

#include "core/id_list.h"
#include "platform/files/unique_fd.h"
#include "platform/memory/memory_placement.h"
#include "platform/memory/memory_policy.h"

namespace numalign {
namespace {

// From asm/mman.h; older headers lack some.
constexpr int kHugeShift = 26;      // MAP_HUGE_SHIFT
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14

Error shortage(const char* call, const std::string& what) { return syscall_error(call, what, ENOMEM); }

// By seccomp, or by a kernel without NUMA.
bool is_denied(const Error& error) { return error.errno_value == EPERM || error.errno_value == ENOSYS; }

// For kernels without MADV_POPULATE_WRITE: lets read(2) write a byte into each page. A missing page
// gives EFAULT in the kernel's writes, where this process's own write would get SIGBUS.
Result<Done> touch_by_reading(char* data, size_t bytes, size_t page) {
  UniqueFd zero(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  if (!zero.valid()) return syscall_error("open", "cannot open /dev/zero to touch memory with");
  std::array<iovec, 256> pages;
  for (size_t at = 0; at < bytes;) {
    size_t n = 0;
    for (size_t next = at; n < pages.size() && next < bytes; next += page) pages[n++] = {data + next, 1};
    ssize_t done = readv(zero.get(), pages.data(), static_cast<int>(n));
    if (done <= 0) return syscall_error("readv", "cannot touch memory", done == 0 ? EIO : errno);
    at += static_cast<size_t>(done) * page;
  }
  return Done{};
}

size_t page_of(const NodeBufferRequest& request) {
  return request.hugepage_bytes != 0 ? request.hugepage_bytes : static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

size_t in_pages(size_t bytes, size_t page) { return (bytes + page - 1) / page * page; }

// Makes every page present.
Result<Done> populate(char* data, size_t bytes, size_t page) {
  int refused;
  const char* call = "madvise";
  do {
    refused = madvise(data, bytes, kPopulateWrite) == 0 ? 0 : errno;
  } while (refused == EINTR || refused == EAGAIN);
  if (refused == EINVAL || refused == ENOSYS) {
    Result<Done> touched = touch_by_reading(data, bytes, page);
    refused = touched.ok() ? 0 : touched.error().errno_value;
    call = "readv";
  }
  if (refused == 0) return Done{};
  // EFAULT: the pool is empty.
  if (refused == EFAULT || refused == ENOMEM) return shortage(call, "there are too few pages for a buffer");
  return syscall_error(call, "cannot touch the pages of a buffer", refused);
}

}  // namespace

Result<NodeBuffer> NodeBuffer::create(const NodeBufferRequest& request) {
  const bool huge = request.hugepage_bytes != 0;
  const size_t page = page_of(request);
  if (request.bytes > SIZE_MAX - page) return shortage("mmap", "no machine has that much memory");
  const size_t bytes = in_pages(request.bytes, page);
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  if (huge) flags |= MAP_HUGETLB | std::countr_zero(page) << kHugeShift;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (data == MAP_FAILED) return syscall_error("mmap", "cannot get the memory of a buffer");
  NodeBuffer buffer(data, bytes);

  // After a fork, a write would copy the page, perhaps into a missing hugepage.
  if (madvise(data, bytes, MADV_DONTFORK) != 0)
    return syscall_error("madvise", "cannot keep a buffer from children");

  // Ordinary pages are first preferred and then moved: on a full node, binding would call the
  // kernel's OOM killer, but moving does not.
  const bool bind = huge && request.strict;
  Result<Done> bound = set_range_policy(
      data, bytes, {bind ? MemoryMode::kBind : MemoryMode::kPreferred, request.nodes}, false);
  if (request.strict && !bound.ok() && !is_denied(bound.error())) return bound.error();
  Result<Done> populated = populate(static_cast<char*>(data), bytes, page);
  if (!populated.ok()) return populated.error();
  if (!request.strict) return buffer;

  const std::string nodes = "NUMA nodes " + format_id_list(request.nodes);
  if (bound.ok() && !bind) {
    bound = set_range_policy(data, bytes, {MemoryMode::kBind, request.nodes}, true);
    if (!bound.ok() && bound.error().errno_value == EIO) {
      return shortage("mbind", nodes + " have too few pages for a buffer");
    }
  }
  MemoryPlacement placement = placement_of_range(data, bytes);
  if (!placement.has_other_than(request.nodes) && (placement.unknown == 0 || bound.ok())) return buffer;
  if (!bound.ok()) return bound.error();
  return shortage("move_pages", "not all of a buffer is on " + nodes);
}

Result<Done> move_node_buffer(void* data, const NodeBufferRequest& request) {
  const size_t bytes = in_pages(request.bytes, page_of(request));
  const MemoryMode mode = request.strict ? MemoryMode::kBind : MemoryMode::kPreferred;
  return set_range_policy(data, bytes, {mode, request.nodes}, true);
}

void NodeBuffer::abandon(NodeBuffer buffer) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  mmap(buffer.data_, buffer.mapped_bytes_, PROT_READ | PROT_WRITE, flags, -1, 0);
  // Even if that has failed: keeping the memory is better than pulling it away.
  buffer.data_ = nullptr;
}

NodeBuffer::~NodeBuffer() {
  if (data_ != nullptr) munmap(data_, mapped_bytes_);
}

}  // namespace numalign
