// For a require() in TypeScript's `module: node16`, which takes the types of dist for those of an ES module.
// @ts-ignore: TS1479, where `module` says so
export * from '../dist/entries/cluster.js';
// By name, so that tools which do not follow `export *` see more than a default.
// @ts-ignore: TS1479, where `module` says so
export { cluster, default } from '../dist/entries/cluster.js';
