// The topology hints of a request for devices of one resource. Follows generateDeviceTopologyHints
// of the kubelet's Device Manager (v1.32 and v1.36). Pure function; safe to call from any thread.
#pragma once

#include <span>

#include "core/hint_family.h"

namespace numalign {

struct Device {
  NodeMask near;  // empty: it reports no nodes, and counts nowhere
  bool available = false;
  // An earlier container of the pod leaves it behind. Every hint includes one of its nodes.
  bool reusable = false;
};

struct DeviceHintsRequest {
  int nodes = 0;  // of the machine
  int count = 0;
  std::vector<Device> devices;  // all registered devices
  // Only masks of nodes near some device, as since v1.36; of all nodes if no device is near any.
  bool only_near_devices = false;
};

// A mask is a hint if `count` available or reusable devices are near any of its nodes. It is
// preferred if it has as few nodes as the request needs with every registered device. Machines with
// more than `enumerated` nodes get LinearHints; there, a device near several nodes counts at the
// lowest of them, and the family is approximate. REQUIRES: count >= 1, 1 to 64 nodes.
HintFamily device_hints(const DeviceHintsRequest& request, int enumerated = kEnumeratedNodes);

}  // namespace numalign
