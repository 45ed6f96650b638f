// For a require() in TypeScript's `module: node16`, which does not know that Node can require ES modules.
// @ts-ignore: TS1479, where `module` says so
export * from '../dist/entries/diagnostics.js';
