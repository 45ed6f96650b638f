// The machines on which agents contend: this one with its few CPUs, and a larger simulated one with
// memory and devices.
import { readFileSync } from 'node:fs';
import { parseList } from './state-file.mjs';

const GI = 2 ** 30;

/** The CPUs of a list such as `0-3`, as an array. */
export const listText = (cpus) => cpus.join(',');

function allowedCpus() {
  return parseList(/^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync('/proc/self/status', 'utf8'))[1]);
}

/** This machine, or enough of it for contention. Undefined if it has too few CPUs to grant any. */
export function realMachine() {
  const allowed = allowedCpus();
  const managed = allowed.slice(0, 4);
  if (managed.length < 2) return undefined;
  return {
    name: 'real',
    isReal: true,
    options: { managedCPUs: listText(managed) },
    grantable: managed,
    managed,
    allowed,
    capacity: undefined,
    amounts: { cpu: [1, Math.max(1, managed.length - 2)], memory: [], devices: [] },
    resource: undefined,
  };
}

/** A simulated machine whose kernel is a folder tree, which quiet grants change. */
export function quietMachine() {
  const managed = Array.from({ length: 16 }, (_, cpu) => cpu);
  return {
    name: 'quiet',
    isReal: false,
    isQuiet: true,
    synthetic: 'package:2 numa:1 core:8 pu:1',
    options: { reservedSystemCPUs: '0' },
    grantable: managed.filter((cpu) => cpu !== 0),
    managed,
    capacity: undefined,
    amounts: { cpu: [1, 2, 3], memory: [], devices: [] },
    resource: undefined,
  };
}

const RESOURCE = 'example.com/nic';

/** A simulated machine whose kernel is a folder tree, and whose grants move, grow and shrink. */
export function changingMachine() {
  return { ...simulatedMachine(true), name: 'changing', isQuiet: true, hasElastic: true };
}

/** `hasMovesAbove`: most operations of the agents there are about moves. */
export function simulatedMachine(hasMovesAbove = false) {
  const managed = Array.from({ length: 24 }, (_, cpu) => cpu);
  const devices = Array.from({ length: 6 }, (_, i) => ({ id: `nic-${i}`, numaNodes: [i % 2] }));
  return {
    name: 'simulated',
    isReal: false,
    hasMovesAbove,
    synthetic: 'package:2 [numa(memory=8GB)] l3:1 core:6 pu:2',
    options: { reservedSystemCPUs: '0', devices: { [RESOURCE]: devices } },
    grantable: managed.filter((cpu) => cpu !== 0),
    managed,
    // For each NUMA node; decimal or binary gigabytes: hwloc's are at most these.
    capacity: { memory: 8 * GI },
    amounts: { cpu: hasMovesAbove ? [1, 1, 2, 3, 5] : [1, 2, 3, 6], memory: ['1Gi', '3Gi'], devices: [1, 2] },
    resource: RESOURCE,
  };
}
