// needs: agents
// The built packages without packages that metrics need.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { installIn } from '../../../test/support/installed.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'numalign-test-'));
  installIn(folder, { packages: ['prom-client', '@opentelemetry'] });
  return () => rmSync(folder, { recursive: true });
});

/** What a module prints that imports `name` of `entry`, and has a manager. */
function run(name: string, entry: string, text: string) {
  const imports = [
    ['discover', 'numalign/topology'],
    ['openManager', 'numalign'],
    [name, entry],
  ].map(([each, from]) => `import { ${each} } from '${from}';`);
  const code = `${imports.join('\n')}
    const manager = await openManager({ topology: await discover({ synthetic: 'core:2 pu:1' }) });
    await (await manager.acquire({ cpu: 1 })).release();
    try { ${name}(manager); } catch (error) { console.log(error.code, error.details.value, error.cause.code); }
    ${text}`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: folder,
    encoding: 'utf8',
  });
  return [stdout, stderr];
}

describe('where packages are not installed that metrics need', () => {
  it('collectMetrics says that prom-client is missing', () => {
    expect(run('collectMetrics', '@numalign/metrics', '')).toEqual([
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
    expect(run('registerMetrics', '@numalign/metrics/opentelemetry', given)).toEqual([
      'ERR_OPTIONAL_DEPENDENCY @opentelemetry/api MODULE_NOT_FOUND\ntrue\n',
      '',
    ]);
  });
});

it('collectMetrics takes all of a prom-client whose files are elsewhere', () => {
  const own = join(folder, 'node_modules/prom-client');
  mkdirSync(own);
  const real = createRequire(import.meta.url).resolve('prom-client');
  writeFileSync(join(own, 'package.json'), JSON.stringify({ name: 'prom-client', exports: './index.js' }));
  writeFileSync(join(own, 'index.js'), `module.exports = require(${JSON.stringify(real)});`);
  const text = `
    const { register } = (await import('prom-client')).default;
    console.log((await register.metrics()).includes('numalign_free_cpus'));`;
  expect(run('collectMetrics', '@numalign/metrics', text)).toEqual(['true\n', '']);
});
