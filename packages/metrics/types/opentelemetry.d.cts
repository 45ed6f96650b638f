// Types for require(): with `module: node16`, TypeScript takes the types in dist/ for those of an ES
// module.
// @ts-ignore: TS1479, depending on `module`
export * from '../dist/opentelemetry.js';
