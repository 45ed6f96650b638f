// @numalign/claims: a machine as devices of Kubernetes' Dynamic Resource Allocation.
export {
  type AttributeValue,
  type Capacity,
  capacityName,
  DEVICE_UNITS,
  type Device,
  type DeviceIdentity,
  type DeviceKind,
  type DeviceMachine,
  type DeviceUnit,
  DRIVER,
  deviceNamed,
  devicesOf,
  memoryType,
  type PcieRoot,
} from './devices/devices.js';
