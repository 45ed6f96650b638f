// The words that the page, pictures and the command line share.
export * from './words/grant-names.js';
export * from './words/kubelet-holders.js';
export * from './words/machine-boxes.js';
export * from './words/machine-line.js';
export * from './words/owner-text.js';
export * from './words/pools-text.js';
export * from './words/rates.js';
export * from './words/resource-text.js';
export * from './words/text.js';
