// The rooms of @numalign/cli and the one order in which they may import each other.
module.exports = require('../../scripts/package-rooms.cjs')('cli', [
  'terminal',
  'arguments',
  'pages',
  'pages/status',
  'picture',
  'completion',
  'agent',
  'systemd',
  'commands',
  'commands/service',
  '.',
]);
