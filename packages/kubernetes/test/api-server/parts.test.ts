// The address of the API server, the waits for it, and its lines.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { newBackoff } from '../../lib/api-server/backoff.js';
import { inClusterConfiguration } from '../../lib/api-server/configuration.js';
import { jsonLines } from '../../lib/api-server/json-lines.js';

describe('the configuration in a cluster', () => {
  it('is in the environment and the folder of the service account', () => {
    const folder = mkdtempSync(join(tmpdir(), 'numalign-account-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const environment = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' };
    const files = { caFile: join(folder, 'ca.crt'), tokenFile: join(folder, 'token') };
    const known = { url: 'https://10.96.0.1:443', ...files };
    expect(inClusterConfiguration(environment, folder)).toEqual({ ...known, namespace: null });
    writeFileSync(join(folder, 'namespace'), 'numalign\n');
    expect(inClusterConfiguration(environment, folder)).toEqual({ ...known, namespace: 'numalign' });
    expect(inClusterConfiguration({ ...environment, KUBERNETES_SERVICE_HOST: 'fd00::1' }, folder).url).toBe(
      'https://[fd00::1]:443',
    );
  });

  it.each([
    [{}],
    [{ KUBERNETES_SERVICE_HOST: '10.96.0.1' }],
    [{ KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: 'tcp://10.96.0.1:443' }],
  ])('is none outside of it: %o', (environment) => {
    expect(() => inClusterConfiguration(environment)).toThrow(
      expect.objectContaining({ code: 'ERR_NOT_IN_CLUSTER' }),
    );
  });
});

describe('backoff', () => {
  it('doubles up to 30 s, at least half of it, and never before the server’s own time', () => {
    const least = newBackoff(() => 0);
    const most = newBackoff(() => 1);
    expect(Array.from({ length: 8 }, () => least.next())).toEqual([
      250, 500, 1000, 2000, 4000, 8000, 15000, 15000,
    ]);
    expect(Array.from({ length: 8 }, () => most.next())).toEqual([
      500, 1000, 2000, 4000, 8000, 16000, 30000, 30000,
    ]);
    least.reset();
    expect(least.next(5000)).toBe(5000);
  });
});

describe('lines of JSON', () => {
  it('are the same however the stream is cut', async () => {
    const values = fc.array(fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer(), fc.constant(null)));
    await fc.assert(
      fc.asyncProperty(values, fc.array(fc.nat(20)), async (list, cuts) => {
        const bytes = Buffer.from(list.map((value) => `${JSON.stringify(value)}\n`).join(''));
        async function* chunks() {
          let at = 0;
          for (const cut of cuts) {
            yield bytes.subarray(at, at + cut);
            at += cut;
          }
          yield bytes.subarray(at);
        }
        const read: unknown[] = [];
        for await (const value of jsonLines(chunks())) read.push(value);
        expect(read).toEqual(list);
      }),
    );
  });
});
