#include "addon/topology_binding.h"

#include <algorithm>

#include "addon/async_job.h"
#include "addon/convert.h"
#include "addon/environment.h"
#include "platform/discovery/hwloc_discovery.h"

namespace numalign::addon {
namespace {

using Handle = std::shared_ptr<const Topology>;
constexpr napi_type_tag kTopologyTag = {0x6e756d616c69676eULL, 0x746f706f6c6f6779ULL};

// The columns of a CPU and of a hugepage pool in the flat arrays of a description;
// lib/base/native.ts has the same.
constexpr int CpuInfo::*kCpuColumns[] = {&CpuInfo::cpu, &CpuInfo::core, &CpuInfo::package, &CpuInfo::die,
                                         &CpuInfo::l3,  &CpuInfo::node, &CpuInfo::kind};
constexpr size_t kHugepageColumns = 3;  // node, page bytes, count

template <class Array>
Array array_of(const Napi::Object& object, const char* name, napi_typedarray_type type) {
  Napi::Value value = object.Get(name);
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != type) {
    throw Napi::TypeError::New(object.Env(),
                               std::string(name) + " must be a typed array of the documented kind");
  }
  return value.As<Array>();
}

// Field by field as in lib/base/native.ts, with numbers for what people read as hexadecimal.
std::vector<PciDevice> to_devices(const Napi::Value& value) {
  if (!value.IsArray()) throw Napi::TypeError::New(value.Env(), "devices must be an array");
  auto list = value.As<Napi::Array>();
  std::vector<PciDevice> devices;
  for (uint32_t i = 0; i < list.Length(); i++) {
    auto object = list.Get(i).As<Napi::Object>();
    PciDevice& device = devices.emplace_back();
    device.id = to_string(object.Get("id"), "the id of a device");
    device.device_class = static_cast<uint16_t>(to_int(object.Get("class"), "the class of a device"));
    device.vendor = static_cast<uint16_t>(to_int(object.Get("vendor"), "the vendor of a device"));
    device.device = static_cast<uint16_t>(to_int(object.Get("device"), "the device number of a device"));
    device.driver = to_string(object.Get("driver"), "the driver of a device");
    device.parent = to_string(object.Get("parent"), "the parent of a device");
    auto names = object.Get("names").As<Napi::Array>();
    for (uint32_t j = 0; j < names.Length(); j++) {
      device.names.push_back(to_string(names.Get(j), "a name of a device"));
    }
    auto nodes = object.Get("nodes").As<Napi::Array>();
    for (uint32_t j = 0; j < nodes.Length(); j++) {
      device.nodes.push_back(to_int(nodes.Get(j), "a NUMA node of a device"));
    }
  }
  return devices;
}

template <class Item>
Napi::Array from_list(Napi::Env env, const std::vector<Item>& items) {
  auto list = Napi::Array::New(env, items.size());
  for (size_t i = 0; i < items.size(); i++) {
    list[static_cast<uint32_t>(i)] = Napi::Value::From(env, items[i]);
  }
  return list;
}

Napi::Array from_devices(Napi::Env env, const std::vector<PciDevice>& devices) {
  auto list = Napi::Array::New(env, devices.size());
  for (size_t i = 0; i < devices.size(); i++) {
    const PciDevice& device = devices[i];
    Napi::Object object = Napi::Object::New(env);
    object["id"] = device.id;
    object["class"] = device.device_class;
    object["vendor"] = device.vendor;
    object["device"] = device.device;
    object["driver"] = device.driver;
    object["names"] = from_list(env, device.names);
    object["nodes"] = from_list(env, device.nodes);
    object["parent"] = device.parent;
    list[static_cast<uint32_t>(i)] = object;
  }
  return list;
}

TopologySpec to_spec(const Napi::Value& value) {
  if (!value.IsObject()) throw Napi::TypeError::New(value.Env(), "a description must be an object");
  auto object = value.As<Napi::Object>();
  auto cpus = array_of<Napi::Int32Array>(object, "cpus", napi_int32_array);
  auto nodes = array_of<Napi::Int32Array>(object, "nodes", napi_int32_array);
  auto memory = array_of<Napi::Float64Array>(object, "memory", napi_float64_array);
  auto tiers = array_of<Napi::Int32Array>(object, "tiers", napi_int32_array);
  auto distances = array_of<Napi::Uint32Array>(object, "distances", napi_uint32_array);
  auto hugepages = array_of<Napi::Float64Array>(object, "hugepages", napi_float64_array);
  constexpr size_t columns = std::size(kCpuColumns);
  size_t n = nodes.ElementLength();
  bool fits = cpus.ElementLength() % columns == 0 && memory.ElementLength() == n &&
              tiers.ElementLength() == n &&
              (distances.ElementLength() == 0 || distances.ElementLength() == n * n) &&
              hugepages.ElementLength() % kHugepageColumns == 0;
  if (!fits)
    throw Napi::TypeError::New(value.Env(), "the arrays of a description have lengths that do not match");

  TopologySpec spec;
  for (size_t i = 0; i < cpus.ElementLength(); i += columns) {
    CpuInfo& cpu = spec.cpus.emplace_back();
    for (size_t c = 0; c < columns; c++) cpu.*kCpuColumns[c] = cpus[i + c];
  }
  for (size_t i = 0; i < n; i++) {
    NodeInfo& node = spec.nodes.emplace_back();
    node.node = nodes[i];
    node.memory_bytes = static_cast<uint64_t>(memory[i]);
    node.tier = static_cast<MemoryTier>(std::clamp(tiers[i], 0, kMemoryTiers - 1));
    for (size_t j = 0; j < n && distances.ElementLength() > 0; j++)
      node.distances.push_back(distances[i * n + j]);
  }
  for (size_t i = 0; i < hugepages.ElementLength(); i += kHugepageColumns) {
    for (NodeInfo& node : spec.nodes) {
      if (node.node != hugepages[i]) continue;
      node.hugepages.push_back(
          {static_cast<uint64_t>(hugepages[i + 1]), static_cast<uint64_t>(hugepages[i + 2])});
    }
  }
  spec.has_devices = !object.Get("devices").IsNull();
  if (spec.has_devices) spec.devices = to_devices(object.Get("devices"));
  spec.possible = to_id_set<CpuTag>(object.Get("possible"));
  spec.isolated = to_id_set<CpuTag>(object.Get("isolated"));
  spec.allowed = to_id_set<CpuTag>(object.Get("allowed"));
  return spec;
}

Napi::Value from_spec(Napi::Env env, const TopologySpec& spec) {
  constexpr size_t columns = std::size(kCpuColumns);
  auto cpus = Napi::Int32Array::New(env, spec.cpus.size() * columns);
  for (size_t i = 0; i < spec.cpus.size(); i++) {
    for (size_t c = 0; c < columns; c++) cpus[i * columns + c] = spec.cpus[i].*kCpuColumns[c];
  }
  size_t n = spec.nodes.size();
  bool has_distances = n > 0 && !spec.nodes[0].distances.empty();
  auto nodes = Napi::Int32Array::New(env, n);
  auto memory = Napi::Float64Array::New(env, n);
  auto tiers = Napi::Int32Array::New(env, n);
  auto distances = Napi::Uint32Array::New(env, has_distances ? n * n : 0);
  std::vector<double> pools;
  for (size_t i = 0; i < n; i++) {
    const NodeInfo& node = spec.nodes[i];
    nodes[i] = node.node;
    memory[i] = static_cast<double>(node.memory_bytes);
    tiers[i] = static_cast<int>(node.tier);
    for (size_t j = 0; has_distances && j < n; j++) distances[i * n + j] = node.distances[j];
    for (const HugepagePool& pool : node.hugepages) {
      pools.insert(pools.end(), {static_cast<double>(node.node), static_cast<double>(pool.page_bytes),
                                 static_cast<double>(pool.count)});
    }
  }
  auto hugepages = Napi::Float64Array::New(env, pools.size());
  std::ranges::copy(pools, hugepages.Data());

  Napi::Object object = Napi::Object::New(env);
  object["cpus"] = cpus;
  object["nodes"] = nodes;
  object["memory"] = memory;
  object["tiers"] = tiers;
  object["distances"] = distances;
  object["hugepages"] = hugepages;
  object["devices"] = spec.has_devices ? from_devices(env, spec.devices) : env.Null();
  object["possible"] = from_id_set(env, spec.possible);
  object["isolated"] = from_id_set(env, spec.isolated);
  object["allowed"] = from_id_set(env, spec.allowed);
  return object;
}

Napi::Value create_topology(const Napi::CallbackInfo& info) {
  return wrap_topology(info.Env(), unwrap(info.Env(), Topology::create(to_spec(info[0]))));
}

Napi::Value describe_topology(const Napi::CallbackInfo& info) {
  return from_spec(info.Env(), to_topology(info[0]).spec());
}

// (topology) -> the devices of this machine now
Napi::Value read_devices_binding(const Napi::CallbackInfo& info) {
  return from_devices(info.Env(), read_devices(to_topology(info[0]).spec().nodes));
}

Napi::Value discover_topology(const Napi::CallbackInfo& info) {
  std::string kind = to_string(info[0], "the source");
  std::string text = info[1].IsUndefined() ? std::string() : to_string(info[1], "the machine's description");
  DiscoverySource source;
  if (kind == "machine") {
    const bool with_devices = info[2].ToBoolean();
    source = with_devices ? DiscoverySource::kMachine : DiscoverySource::kBareMachine;
  } else if (kind == "xml") {
    source = DiscoverySource::kXml;
  } else if (kind == "synthetic") {
    source = DiscoverySource::kSynthetic;
  } else {
    throw Napi::TypeError::New(info.Env(), "the source must be 'machine', 'xml' or 'synthetic'");
  }
  return run_async<Handle>(
      info.Env(),
      [source, text]() -> Result<Handle> {
        Result<TopologySpec> spec = discover(source, text);
        if (!spec.ok()) return spec.error();
        return Topology::create(std::move(spec).value());
      },
      wrap_topology);
}

// (topology) -> CPUs
Napi::Value best_fit_binding(const Napi::CallbackInfo& info) {
  const Topology& topology = to_topology(info[0]);
  WireReader wire = wire_of(info.Env());
  const BestFitQuestion question = read_best_fit(wire);
  check(info.Env(), wire);
  return to_wire(info.Env(), unwrap(info.Env(), near_fit(topology, question.available, question.count,
                                                         question.near, question.options)));
}

}  // namespace

Napi::Value wrap_topology(Napi::Env env, Handle topology) {
  auto handle = Napi::External<Handle>::New(env, new Handle(std::move(topology)),
                                            [](Napi::BasicEnv, Handle* value) { delete value; });
  handle.TypeTag(&kTopologyTag);
  return handle;
}

const Topology& to_topology(const Napi::Value& value) {
  if (!value.IsExternal() || !value.As<Napi::External<Handle>>().CheckTypeTag(&kTopologyTag)) {
    throw Napi::TypeError::New(value.Env(), "a Topology handle was expected");
  }
  return **value.As<Napi::External<Handle>>().Data();
}

void export_topology(Napi::Env env, Napi::Object exports) {
  exports["createTopology"] = Napi::Function::New<create_topology>(env);
  exports["describeTopology"] = Napi::Function::New<describe_topology>(env);
  exports["discoverTopology"] = Napi::Function::New<discover_topology>(env);
  exports["readDevices"] = Napi::Function::New<read_devices_binding>(env);
  exports["bestFit"] = Napi::Function::New<best_fit_binding>(env);
}

}  // namespace numalign::addon
