import Module from 'node:module';
import { expect, it, onTestFinished, vi } from 'vitest';
import { promClient } from '../../lib/base/late-packages.js';

/** Node's loader, as it answers `require`. */
type Load = (request: string, ...more: unknown[]) => unknown;
const loader = Module as unknown as { _load: Load };

it.each([
  ['has its files elsewhere', /^prom-client\/lib\/registry$/, undefined],
  ['is not installed', /^prom-client(\/|$)/, 'prom-client is not here'],
])('The metrics of a prom-client that %s are made of all of it, or missing', (_, missing, error) => {
  const load = loader._load;
  const asked: string[] = [];
  vi.spyOn(loader, '_load').mockImplementation(function (this: unknown, request, ...more) {
    if (request.startsWith('prom-client')) asked.push(request);
    if (missing.test(request)) throw new Error(`${request} is not here`);
    return load.call(this, request, ...more);
  });
  onTestFinished(() => void vi.restoreAllMocks());
  if (error !== undefined) return void expect(promClient).toThrow(error);
  const { Registry, Gauge } = promClient();
  expect(asked.at(-1)).toBe('prom-client');
  const registry = new Registry();
  new Gauge({ name: 'a', help: 'b', registers: [registry] }).set(1);
  expect(registry.getSingleMetric('a')).toBeDefined();
});
