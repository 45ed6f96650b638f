// Memory policy, placement, and buffers on NUMA nodes. See platform/memory/memory_policy.h and
// platform/memory/node_buffer.h.
#include <unistd.h>

#include <bit>

#include "addon/convert.h"
#include "addon/environment.h"
#include "platform/memory/memory_placement.h"
#include "platform/memory/memory_policy.h"
#include "platform/memory/node_buffer.h"

namespace numalign::addon {
namespace {

constexpr double kMaxBytes = 9007199254740991;  // 2^53 - 1

size_t to_bytes(const Napi::Value& value, const char* what) {
  if (!value.IsNumber()) throw Napi::TypeError::New(value.Env(), std::string(what) + " must be a number");
  double number = value.As<Napi::Number>();
  if (!(number >= 0 && number <= kMaxBytes)) {
    throw Napi::RangeError::New(value.Env(), std::string(what) + " is out of range");
  }
  return static_cast<size_t>(number);
}

Napi::Value get_policy(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  MemoryPolicy policy = unwrap(env, memory_policy());
  Napi::Object object = Napi::Object::New(env);
  object["mode"] = Napi::Number::New(env, static_cast<int>(policy.mode));
  object["flags"] = Napi::Number::New(env, policy.flags);
  object["nodes"] = from_id_set(env, policy.nodes);
  return object;
}

// (mode, flags, words of the nodes)
void set_policy(const Napi::CallbackInfo& info) {
  MemoryPolicy policy;
  policy.mode = static_cast<MemoryMode>(to_int(info[0], "the mode"));
  policy.flags = to_int(info[1], "the flags");
  policy.nodes = to_id_set<NodeTag>(info[2]);
  unwrap(info.Env(), set_memory_policy(policy));
}

// (words of the nodes to leave, words of the target nodes, a process id or 0 for this process)
Napi::Value migrate(const Napi::CallbackInfo& info) {
  pid_t pid = to_int(info[2], "the process id");
  long left =
      unwrap(info.Env(), migrate_pages(to_id_set<NodeTag>(info[0]), to_id_set<NodeTag>(info[1]), pid));
  return Napi::Number::New(info.Env(), static_cast<double>(left));
}

// (a Uint8Array that begins a page, bytes of a hugepage or 0, words of the nodes, strict)
void move_buffer(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  if (!info[0].IsTypedArray() || info[0].As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array)
    throw Napi::TypeError::New(env, "the memory must be a Uint8Array");
  auto bytes = info[0].As<Napi::Uint8Array>();
  NodeBufferRequest request;
  request.bytes = bytes.ByteLength();
  request.hugepage_bytes = to_bytes(info[1], "the size of a hugepage");
  request.nodes = to_id_set<NodeTag>(info[2]);
  request.strict = to_bool(info[3], "strict");
  unwrap(env, move_node_buffer(bytes.Data(), request));
}

const char* source_name(MemoryPlacement::Source source) {
  switch (source) {
    case MemoryPlacement::Source::kMovePages:
      return "move_pages";
    case MemoryPlacement::Source::kNumaMaps:
      return "numa_maps";
    case MemoryPlacement::Source::kNone:
      return "";
  }
  return "";
}

// (a Uint8Array, or nothing for the whole process, or the id of another process)
Napi::Value placement(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  MemoryPlacement found;
  if (info[0].IsUndefined()) {
    found = placement_of_process();
  } else if (info[0].IsNumber()) {
    found = placement_of_process(to_int(info[0], "the process id"));
  } else if (info[0].IsTypedArray() && info[0].As<Napi::TypedArray>().TypedArrayType() == napi_uint8_array) {
    auto bytes = info[0].As<Napi::Uint8Array>();
    found = placement_of_range(bytes.Data(), bytes.ByteLength());
  } else {
    throw Napi::TypeError::New(env, "the memory must be a Uint8Array or a process");
  }
  auto byNode = Napi::Float64Array::New(env, 2 * found.bytes_by_node.size());
  size_t i = 0;
  for (auto [node, bytes] : found.bytes_by_node) {
    byNode[i++] = node;
    byNode[i++] = static_cast<double>(bytes);
  }
  Napi::Object object = Napi::Object::New(env);
  object["byNode"] = byNode;
  object["absent"] = Napi::Number::New(env, static_cast<double>(found.absent));
  object["unknown"] = Napi::Number::New(env, static_cast<double>(found.unknown));
  object["source"] = Napi::String::New(env, source_name(found.source));
  object["errno"] = Napi::Number::New(env, found.errno_value);
  object["pageBytes"] = Napi::Number::New(env, static_cast<double>(sysconf(_SC_PAGESIZE)));
  return object;
}

// True if the environment is ending, which refuses everything that needs JavaScript.
bool is_ending(napi_env env) {
  napi_value global;
  bool has_it;
  return napi_get_global(env, &global) != napi_ok ||
         napi_has_named_property(env, global, "globalThis", &has_it) != napi_ok;
}

// The memory of a Buffer. Node calls finalize() once, on the environment's thread: when V8 has
// freed the memory, or when the environment ends, perhaps while V8 still uses the memory. By then
// the memory may be in another environment: postMessage copies it, but a byte stream or
// ArrayBuffer.prototype.transfer puts it into an ArrayBuffer that can be sent. So the addresses
// stay valid when an environment ends.
struct BufferMemory {
  NodeBuffer mapping;
  bool* is_finalized;  // while the Buffer is being made: Node finalizes after some failures and not after
                       // others

  static void finalize(napi_env env, void*, void* hint) {
    auto* memory = static_cast<BufferMemory*>(hint);
    if (memory->is_finalized != nullptr) {
      *memory->is_finalized = true;
    } else if (is_ending(env)) {
      NodeBuffer::abandon(std::move(memory->mapping));
    }
    delete memory;
  }
};

Napi::Value to_buffer(Napi::Env env, NodeBuffer mapping, size_t bytes) {
  bool is_finalized = false;
  auto* memory = new BufferMemory{std::move(mapping), &is_finalized};
  napi_value value;
  // V8 counts the bytes as external memory: napi_adjust_external_memory would count them twice.
  napi_status status =
      napi_create_external_buffer(env, bytes, memory->mapping.data(), BufferMemory::finalize, memory, &value);
  if (status != napi_ok) {
    if (!is_finalized) delete memory;
    throw Napi::Error::New(env);
  }
  memory->is_finalized = nullptr;
  return Napi::Value(env, value);
}

// (bytes, bytes of a hugepage or 0, words of the nodes, strict)
Napi::Value node_buffer(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  NodeBufferRequest request;
  request.bytes = to_bytes(info[0], "the size");
  request.hugepage_bytes = to_bytes(info[1], "the size of a hugepage");
  request.nodes = to_id_set<NodeTag>(info[2]);
  request.strict = to_bool(info[3], "strict");
  bool is_valid = request.bytes > 0 && !request.nodes.empty() &&
                  (request.hugepage_bytes == 0 || std::has_single_bit(request.hugepage_bytes));
  if (!is_valid)
    throw Napi::RangeError::New(env, "a buffer needs bytes, nodes, and a power of two as page size");
  return to_buffer(env, unwrap(env, NodeBuffer::create(request)), request.bytes);
}

}  // namespace

void export_memory(Napi::Env env, Napi::Object exports) {
  exports["memoryPolicy"] = Napi::Function::New<get_policy>(env);
  exports["setMemoryPolicy"] = Napi::Function::New<set_policy>(env);
  exports["migratePages"] = Napi::Function::New<migrate>(env);
  exports["memoryPlacement"] = Napi::Function::New<placement>(env);
  exports["moveBuffer"] = Napi::Function::New<move_buffer>(env);
  exports["nodeBuffer"] = Napi::Function::New<node_buffer>(env);
}

}  // namespace numalign::addon
