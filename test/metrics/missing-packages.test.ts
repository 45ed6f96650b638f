// needs: process
// The built package without packages that only metrics need.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { installWithout } from '../support/without-package.js';

let dist: string;
beforeAll(() => {
  const folder = mkdtempSync(join(tmpdir(), 'numalign-test-'));
  dist = installWithout('prom-client', folder);
  rmSync(join(folder, 'node_modules/@opentelemetry'));
  return () => rmSync(folder, { recursive: true });
});

/** What a module prints that imports `name` of `entry`, and has a manager. */
function run(name: string, entry: string, text: string) {
  const imports = [
    ['discover', 'entries/topology.js'],
    ['openManager', 'index.js'],
    [name, entry],
  ].map(([each, file]) => `import { ${each} } from ${JSON.stringify(join(dist, file!))};`);
  const code = `${imports.join('\n')}
    const manager = await openManager({ topology: await discover({ synthetic: 'core:2 pu:1' }) });
    await (await manager.acquire({ cpu: 1 })).release();
    try { ${name}(manager); } catch (error) { console.log(error.code, error.details.value, error.cause.code); }
    ${text}`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
  });
  return [stdout, stderr];
}

describe('where packages are not installed that only metrics need', () => {
  it('collectMetrics says that prom-client is missing, which nothing else of the package needs', () => {
    expect(run('collectMetrics', 'metrics/index.js', '')).toEqual([
      'ERR_OPTIONAL_DEPENDENCY prom-client MODULE_NOT_FOUND\n',
      '',
    ]);
  });

  it('registerMetrics says that OpenTelemetry’s API is missing, unless a meter is given', () => {
    const given = `
      const names = [];
      const create = (name) => names.push(name);
      const meter = { createObservableGauge: create, createObservableCounter: create, addBatchObservableCallback() {} };
      registerMetrics(manager, { meter });
      console.log(names.includes('numalign.free_cpus'));`;
    expect(run('registerMetrics', 'metrics/opentelemetry.js', given)).toEqual([
      'ERR_OPTIONAL_DEPENDENCY @opentelemetry/api MODULE_NOT_FOUND\ntrue\n',
      '',
    ]);
  });
});
