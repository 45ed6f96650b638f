// Machines as discovery has them, by the text that describes them. NUMALIGN_FIXTURES: where captures are.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "core/topology.h"
#include "platform/discovery/hwloc_discovery.h"

namespace numalign::test {

inline std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string fixture(const std::string& name) {
  std::string text = read_file(std::string(NUMALIGN_FIXTURES) + "/machines/" + name);
  EXPECT_FALSE(text.empty()) << name;
  return text;
}

// The machine, which must also be one that Topology accepts.
inline TopologySpec described(DiscoverySource source, const std::string& text) {
  Result<TopologySpec> spec = discover(source, text);
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error().message);
  if (!spec.ok()) return {};
  auto topology = Topology::create(spec.value());
  EXPECT_TRUE(topology.ok()) << (topology.ok() ? "" : topology.error().message);
  return spec.value();
}
inline TopologySpec captured(const std::string& name) {
  return described(DiscoverySource::kXml, fixture(name));
}
inline TopologySpec synthetic(const std::string& text) {
  return described(DiscoverySource::kSynthetic, text);
}

// The message, or "" where the text was accepted.
inline std::string refusal(DiscoverySource source, const std::string& text) {
  Result<TopologySpec> spec = discover(source, text);
  if (spec.ok()) return "";
  EXPECT_EQ(spec.error().code, ErrorCode::kHwloc);
  EXPECT_FALSE(spec.error().message.empty());
  return spec.error().message;
}

}  // namespace numalign::test
