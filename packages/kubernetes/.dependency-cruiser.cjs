// The rooms of @numalign/kubernetes and the one order in which they may import each other.
module.exports = require('../../scripts/package-rooms.cjs')('kubernetes', [
  'base',
  'protobuf',
  'grpc',
  'ttrpc',
  'nri',
  'cgroups',
  'placement',
  'containers',
  'cri',
  'kubelet',
  'device-plugin',
  'api-server',
  'publish',
  'check',
  '.',
  'cli',
]);
