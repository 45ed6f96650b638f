// LatePackages: packages, and parts of Node, that are loaded at their first use. Not every node
// needs them, and each takes some megabytes of its memory.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

export const grpc = (): typeof import('@grpc/grpc-js') => require('@grpc/grpc-js');
/** Without an API server, nothing here needs TLS. */
export const https = () => process.getBuiltinModule('node:https');
export const yaml = (): typeof import('yaml') => require('yaml');

type PromClient = typeof import('prom-client');

type Parts = Pick<PromClient, 'Counter' | 'Gauge' | 'Histogram' | 'Registry'>;

/** What metrics are made of: all of it would load TLS, too. @throws if it is not installed */
export function promClient(): Parts {
  try {
    return {
      Counter: require('prom-client/lib/counter'),
      Gauge: require('prom-client/lib/gauge'),
      Histogram: require('prom-client/lib/histogram'),
      Registry: require('prom-client/lib/registry'),
    };
  } catch {
    // Another version may have its files elsewhere, and they may be no part of its API.
    return require('prom-client');
  }
}
