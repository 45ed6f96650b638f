// For a require() in TypeScript's `module: node16`, which takes the types of dist for those of an ES module.
// @ts-ignore: TS1479, where `module` says so
export * from '../dist/entries/cluster.js';
// @ts-ignore: TS1479, where `module` says so
export { default } from '../dist/entries/cluster.js';
