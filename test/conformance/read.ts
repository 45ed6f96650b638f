// Reads newline-delimited JSON, as it is or compressed by gzip, and the machines beside a file of
// cases.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { MachineJson } from '../../lib/entries/topology.js';
import type { Case, Context, Machine, Numalign } from './case.js';

const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);

/** The input is not what the runner can work on; this is no verdict on the package. */
export class InputError extends Error {}

export interface Line {
  readonly number: number;
  readonly value: Readonly<Record<string, unknown>>;
}

function readText(path: string): string {
  try {
    const bytes = readFileSync(path);
    return (bytes.subarray(0, 2).equals(GZIP_MAGIC) ? gunzipSync(bytes) : bytes).toString('utf8');
  } catch (error) {
    throw new InputError(`${path}: cannot be read: ${(error as Error).message}`);
  }
}

/**
 * The objects in a file, one a line; empty lines do not count.
 * @throws InputError, with the line's number where one is malformed.
 */
export function readLines(path: string): Line[] {
  const lines: Line[] = [];
  for (const [i, text] of readText(path).split('\n').entries()) {
    if (text.trim() === '') continue;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (error) {
      throw new InputError(`${path}: line ${i + 1} is not JSON: ${(error as Error).message}`);
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new InputError(`${path}: line ${i + 1} is not an object`);
    }
    lines.push({ number: i + 1, value: value as Line['value'] });
  }
  return lines;
}

/** The line as a case. @throws InputError for one without an id. */
export function asCase(path: string, { number, value }: Line): Case {
  if (typeof value.id !== 'string') throw new InputError(`${path}: line ${number} has no id`);
  return value as Case;
}

export function isMachine(value: Line['value']): boolean {
  return typeof value.name === 'string' && Array.isArray(value.columns) && Array.isArray(value.cpus);
}

/**
 * What replays of the cases in `path` may use. Machines are read when the first is asked for, each
 * is made once.
 */
export function contextOf(path: string, numalign: Numalign): Context {
  let recorded: Map<string, MachineJson> | undefined;
  const machines = new Map<string, Promise<Machine>>();

  function load(): Map<string, MachineJson> {
    const plain = join(dirname(path), 'topologies.jsonl');
    const file = [plain, `${plain}.gz`].find(existsSync);
    if (file === undefined)
      throw new InputError(`${path}: there is no topologies.jsonl or topologies.jsonl.gz beside it`);
    const lines = readLines(file);
    for (const line of lines) {
      if (!isMachine(line.value)) throw new InputError(`${file}: line ${line.number} is not a machine`);
    }
    return new Map(lines.map((line) => [line.value.name as string, line.value as unknown as MachineJson]));
  }

  function described(name: string): MachineJson {
    recorded ??= load();
    const json = recorded.get(name);
    if (!json) throw new Error(`no machine of the topologies file has the name ${JSON.stringify(name)}`);
    return json;
  }

  async function make(name: string): Promise<Machine> {
    const json = described(name);
    return { recorded: json, topology: await numalign.discover({ json }) };
  }

  return {
    numalign,
    described,
    machine(name) {
      const machine = machines.get(name) ?? make(name);
      machines.set(name, machine);
      return machine;
    },
  };
}
