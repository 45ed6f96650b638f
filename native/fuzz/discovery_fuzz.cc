// Any text as an hwloc XML document or as a synthetic description: an error, or a machine that holds
// together.
#include <cstdio>
#include <cstdlib>

#include "core/topology.h"
#include "platform/discovery/hwloc_discovery.h"

// hwloc loses a few bytes on some malformed synthetic descriptions.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace numalign;
  std::string text(reinterpret_cast<const char*>(data), size);
  // A synthetic description cannot begin with '<', an XML document must.
  bool is_xml = !text.empty() && text[0] == '<';
  Result<TopologySpec> spec = discover(is_xml ? DiscoverySource::kXml : DiscoverySource::kSynthetic, text);
  if (!spec.ok()) return 0;
  Result<std::shared_ptr<const Topology>> topology = Topology::create(std::move(spec).value());
  if (!topology.ok()) {
    std::fprintf(stderr, "%s\n", topology.error().message.c_str());
    std::abort();
  }
  return 0;
}
