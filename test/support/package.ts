// All entries of the package as one.
export * from '../../lib/entries/diagnostics.js';
export * from '../../lib/entries/kubelet.js';
export * from '../../lib/entries/topology.js';
export * from '../../lib/index.js';
