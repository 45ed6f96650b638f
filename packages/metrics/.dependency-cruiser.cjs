// The rooms of @numalign/metrics and the one order in which they may import each other.
module.exports = require('../../scripts/package-rooms.cjs')('metrics', ['sinks', 'grants', '.']);
