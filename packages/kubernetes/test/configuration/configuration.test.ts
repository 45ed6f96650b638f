import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  configurationText,
  effectiveText,
  readConfiguration,
} from '../../lib/configuration/configuration.js';
import { FIELD_NAMES, rowOf } from '../../lib/configuration/fields.js';
import { changedSettings } from '../../lib/configuration/manager-part.js';
import { thrownBy } from '../support/nri-objects.js';

const HEAD = 'apiVersion: numalign.io/v1alpha1\nkind: NodeConfiguration\n';

function folder(files: Readonly<Record<string, string>>): string {
  const path = mkdtempSync(join(tmpdir(), 'numalign-configuration-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  mkdirSync(path, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  return path;
}

const fileOf = (text: string) => join(folder({ 'node.yaml': text }), 'node.yaml');
const read = (fields: string, flags = {}) => readConfiguration({ file: fileOf(HEAD + fields), flags });

describe('A configuration', () => {
  it('has the value of the flag, else of the file, else the default, and says which', () => {
    const configuration = read('policy: restricted\nname: first\n', { name: 'second' });
    expect(configuration.values).toMatchObject({ policy: 'restricted', name: 'second', index: '90' });
    expect(configurationText(configuration)).toBe('policy: restricted (file), name: second (flag)');
    expect(effectiveText(configuration, 'index')).toBe('90 (default)');
    expect(effectiveText(configuration, 'managedCPUs')).toBe('as recorded (at first: all)');
  });

  it('reads one CPU, and two digits, which YAML takes for numbers', () => {
    const { values } = read('reservedSystemCPUs: 3\nindex: 05\n');
    expect(values).toMatchObject({ reservedSystemCPUs: '3', index: '05' });
  });

  it('has paths that are relative to the folder of the file', () => {
    const path = folder({ 'node.yaml': `${HEAD}stateDir: state\nkubeletFolder: /k\n` });
    const { values } = readConfiguration({ file: join(path, 'node.yaml'), flags: {} });
    expect(values).toMatchObject({ stateDir: join(path, 'state'), kubeletFolder: '/k' });
  });

  it('gives options of placement and settings of the machine to the manager', () => {
    const { manager } = read('policy: restricted\nmanagedCPUs: all\nisolatedCPUs: 2-3\npublish: true\n');
    expect(manager).toEqual({
      placement: { policy: 'restricted' },
      settings: { managedCPUs: null, isolatedCPUs: '2-3' },
    });
  });

  it('takes what a KubeletConfiguration sets, and shows it, but prefers its own fields', () => {
    const path = folder({
      'node.yaml': `${HEAD}kubeletConfiguration: kubelet.yaml\npolicy: restricted\n`,
      'kubelet.yaml': [
        'kind: KubeletConfiguration',
        'cpuManagerPolicy: static',
        'cpuManagerPolicyOptions: { strict-cpu-reservation: "true", full-pcpus-only: "true" }',
        'topologyManagerPolicy: single-numa-node',
        'systemReserved: { cpu: 1000m }',
        'featureGates: { PodLevelResources: true, Other: true }',
      ].join('\n'),
    });
    const configuration = readConfiguration({ file: join(path, 'node.yaml'), flags: {} });
    expect(configuration.values.policy).toBe('restricted');
    expect(effectiveText(configuration, 'cpuManagerPolicy')).toBe('static (kubeletConfiguration)');
    expect(configuration.manager.settings).toEqual({
      systemReserved: { cpu: '1000m' },
      featureGates: { PodLevelResources: true },
      strictCPUReservation: true,
    });
    expect(configuration.manager.placement).toMatchObject({
      policy: 'restricted',
      kubeletConfiguration: { cpuManagerPolicyOptions: { 'full-pcpus-only': 'true' } },
    });
    expect(configuration.files).toHaveLength(2);
  });

  it.each([
    ['polcy: restricted', /has no option "polcy"; did you mean "policy"\?/],
    ['policy: strict', /policy must be .*, not 'strict'/],
    ['cpuManagerPolicyOptions: { full-pcpu-only: true }', /did you mean "full-pcpus-only"/],
    [
      'cpuManagerPolicyOptions: { full-pcpus-only: true, distribute-cpus-across-cores: true }',
      /full-pcpus-only/,
    ],
    ['reservedSystemCPUs: 0-x', /0-x/],
    ['publish: sometimes', /publish must be true or false, not 'sometimes'/],
    ['deviceUnit: socket', /deviceUnit must be one of cpu, core/],
    ['page: 80', /page must be an IP address and a port/],
    ['policy: [', /it is not YAML/],
  ])('is refused with the file and the field: %s', (fields, message) => {
    const error = thrownBy(() => read(fields)) as Error;
    expect(error).toMatchObject({ code: 'ERR_INVALID_CONFIGURATION' });
    expect(error.message).toMatch(/^\/.*node\.yaml: /);
    expect(error.message).toMatch(message);
  });

  it.each([
    ['kind: KubeletConfiguration', /name it in the field kubeletConfiguration/],
    ['kind: Node', /it is kind Node .* not NodeConfiguration/],
    ['apiVersion: numalign.io/v9\nkind: NodeConfiguration', /v9/],
    ['policy: none', /it is kind undefined/],
    ['- policy', /it is not an object/],
  ])('is refused if it is something else: %s', (text, message) => {
    const error = thrownBy(() => readConfiguration({ file: fileOf(text), flags: {} }));
    expect(error).toMatchObject({
      code: 'ERR_INVALID_CONFIGURATION',
      message: expect.stringMatching(message),
    });
  });

  it('is refused if the file cannot be read', () => {
    expect(() => readConfiguration({ file: '/none', flags: {} })).toThrow(
      /\/none: it cannot be read: ENOENT/,
    );
  });

  it('takes its own defaults as values', () => {
    for (const name of FIELD_NAMES) {
      const { check, default: byDefault } = rowOf(name);
      if (byDefault !== undefined && byDefault !== null) expect(check(byDefault, name)).toEqual(byDefault);
    }
  });
});

describe('Settings of the machine', () => {
  it('get their defaults when the configuration does not set them any more', () => {
    expect(
      changedSettings({ isolatedCPUs: '2', strictCPUReservation: true }, { managedCPUs: '0-3' }),
    ).toEqual({
      isolatedCPUs: null,
      strictCPUReservation: false,
      managedCPUs: '0-3',
    });
  });

  it.each([
    [{ systemReserved: { cpu: 1 } }, {}, { reservedSystemCPUs: '' }],
    [{ systemReserved: { cpu: 1 } }, { reservedSystemCPUs: '0' }, { reservedSystemCPUs: '0' }],
    [{ reservedSystemCPUs: '0' }, { kubeReserved: { cpu: 1 } }, { kubeReserved: { cpu: 1 } }],
  ])('reserve CPUs under one of three names: from %j to %j', (before, after, change) => {
    expect(changedSettings(before, after)).toEqual(change);
  });
});
