// Neighbours: other programs of this machine that place the CPUs of containers, or may: plugins of
// the container runtime, and known programs. A runtime does not list its plugins.
import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { basename, join } from 'node:path';
import { isPlacingPlugin, placingProgram } from './placing-programs.js';
import { clientsOf } from './socket-peers.js';

export interface Neighbour {
  readonly name: string;
  /** Where it was found, for people: `pid 4711`. */
  readonly at: string;
  /** Whether it is known to place CPUs; a plugin with another name may, too. */
  readonly isPlacing: boolean;
}

export interface NeighbourPlaces {
  /** The runtime's socket for plugins. */
  readonly socketPath: string;
  /** Where runtimes find plugins that they start. Default: /opt/nri/plugins. */
  readonly pluginFolder?: string;
  /** Default: /proc. */
  readonly procFolder?: string;
  /** The processes that are connected to the socket. Default: as ss(8) knows them. */
  readonly clients?: (isServer: (path: string) => boolean) => Promise<readonly number[]>;
}

const OWN = 'numalign-node';

/** Those that can be seen from here; only looks. */
export async function findNeighbours(places: NeighbourPlaces): Promise<Neighbour[]> {
  const { socketPath, procFolder = '/proc', clients = clientsOf } = places;
  const pids = await clients(isPath(socketPath));
  const connected = pids
    .filter((pid) => pid !== process.pid)
    .flatMap((pid) => processOf(procFolder, pid) ?? []);
  const placing = pidsIn(procFolder)
    .filter((pid) => !pids.includes(pid))
    .flatMap((pid) => processOf(procFolder, pid) ?? [])
    .filter(({ name }) => placingProgram(name) !== undefined);
  // The agent whose node is checked, if this process is not the agent itself.
  const agent = pids.includes(process.pid) ? undefined : connected.find(({ name }) => name === OWN);
  const others = connected.filter((each) => each !== agent);
  return [...others, ...installed(places.pluginFolder ?? '/opt/nri/plugins'), ...placing];
}

/** The plugins that a runtime starts itself: files such as `10-balloons`. */
function installed(folder: string): Neighbour[] {
  return namesIn(folder).flatMap((file) => {
    const name = /^\d\d-(.+)$/.exec(file)?.[1];
    return name === undefined ? [] : [{ name, at: join(folder, file), isPlacing: isPlacingPlugin(name) }];
  });
}

const pidsIn = (folder: string) =>
  namesIn(folder)
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

// Undefined for one that has ended, and for a thread of the kernel.
function processOf(folder: string, pid: number): Neighbour | undefined {
  try {
    const words = readFileSync(join(folder, String(pid), 'cmdline'), 'utf8').split('\0');
    const names = words.slice(0, 2).map((word) => basename(word));
    const name = names.includes(OWN) || words[1]?.includes('@numalign/kubernetes') ? OWN : names[0];
    return name ? { name, at: `pid ${pid}`, isPlacing: isPlacing(name) } : undefined;
  } catch {
    return undefined;
  }
}

const isPlacing = (name: string) => name === OWN || placingProgram(name) !== undefined;

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

// /var/run is a link to /run.
function isPath(path: string): (other: string) => boolean {
  const real = realPathOf(path);
  return (other) => other === path || (basename(other) === basename(path) && realPathOf(other) === real);
}

function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
