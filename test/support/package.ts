// All entries of the package as one, and what recorded cases look at behind them.
export * from '../../lib/entries/diagnostics.js';
export * from '../../lib/entries/kubelet.js';
export * from '../../lib/entries/topology.js';
export * from '../../lib/index.js';
export { NodeMask } from '../../lib/machine/node-mask.js';
