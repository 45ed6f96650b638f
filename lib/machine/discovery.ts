// Discovery: loads this machine or another as a Topology. Follows hwloc_topology_load and
// hwloc_topology_set_xmlbuffer.
import { readFile } from 'node:fs/promises';
import { checkOptions } from '../base/check-options.js';
import { errorName } from '../base/codes/errno.js';
import { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import { parseMachine } from './machine-json.js';
import { Topology } from './topology.js';

/** Where {@link discover} reads the machine. Give one option, or none for this machine. */
export interface DiscoverOptions {
  /** The path of an hwloc XML file. */
  xml?: string;
  /** An hwloc synthetic description, for example `package:2 numa:2 core:4 pu:2`. */
  synthetic?: string;
  /** The path of a JSON machine, or the parsed object: see {@link MachineJson}. */
  json?: string | object;
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    const name = errorName(cause as NodeJS.ErrnoException);
    throw new NumalignError('ERR_INVALID_TOPOLOGY', `cannot read the machine file ${path}: ${name}`, {
      value: path,
      cause,
    });
  }
}

/**
 * Loads a machine with hwloc (hwloc_topology_load; a JSON machine without hwloc), off the event
 * loop. Without options it is this machine with all its CPUs, also those that this process may not
 * use.
 * @throws ERR_INVALID_TOPOLOGY if the description cannot be read or contradicts itself;
 *   ERR_INVALID_ARGUMENT for more than one source
 */
export async function discover(options: DiscoverOptions = {}): Promise<Topology> {
  const sources = Object.entries(checkOptions(options, ['xml', 'synthetic', 'json'], 'discover'));
  const [kind, value] = (sources[0] ?? ['machine', undefined]) as [
    Topology['source'],
    string | object | undefined,
  ];
  const isRight =
    kind === 'machine' ||
    typeof value === 'string' ||
    (kind === 'json' && typeof value === 'object' && value);
  if (sources.length > 1 || !isRight) {
    throw new NumalignError(
      'ERR_INVALID_ARGUMENT',
      'discover takes one of { xml: path }, { synthetic: description }, { json: path or object }, or nothing for this machine',
      { value: options, valid: ['xml', 'synthetic', 'json'] },
    );
  }
  if (kind === 'json') {
    const machine: unknown = typeof value === 'string' ? parseJson(await readText(value), value) : value;
    return new Topology('json', native.createTopology(parseMachine(machine)));
  }
  const text = kind === 'xml' ? await readText(value as string) : (value as string | undefined);
  return new Topology(kind, await native.discoverTopology(kind, text, true));
}

/**
 * This machine, as by {@link discover}. Without devices, these are read when first asked for,
 * on the event loop.
 */
export async function discoverMachine(withDevices: boolean): Promise<Topology> {
  return new Topology('machine', await native.discoverTopology('machine', undefined, withDevices));
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new NumalignError('ERR_INVALID_TOPOLOGY', `${path} is not JSON: ${(cause as Error).message}`, {
      value: path,
      cause,
    });
  }
}
