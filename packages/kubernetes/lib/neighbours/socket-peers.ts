// SocketPeers: which processes are connected to a Unix socket. The kernel tells the two ends of a
// connection by a netlink socket only, which ss(8) reads.
import { execFile } from 'node:child_process';

interface End {
  /** The path that the socket is bound to; `*`: none. */
  readonly path: string;
  readonly inode: string;
  readonly peer: string;
  readonly pids: readonly number[];
}

const LINE = /^\s*u_\S+\s+ESTAB\s+\d+\s+\d+\s+(\S+)\s+(\d+)\s+\S+\s+(\d+)(.*)$/;
const MOST_BYTES = 2 ** 26;

/** The clients of a server on this path in the output of `ss -xpH`. Pure. */
export function clientsIn(text: string, isServer: (path: string) => boolean): number[] {
  const ends = text.split('\n').flatMap((line): End[] => {
    const [, path = '', inode = '', peer = '', users = ''] = LINE.exec(line) ?? [];
    const pids = [...users.matchAll(/pid=(\d+)/g)].map(([, pid]) => Number(pid));
    return inode === '' ? [] : [{ path, inode, peer, pids }];
  });
  const byInode = new Map(ends.map((end) => [end.inode, end]));
  const clients = ends
    .filter(({ path }) => isServer(path))
    .flatMap(({ peer, pids }) => byInode.get(peer)?.pids.filter((pid) => !pids.includes(pid)) ?? []);
  return [...new Set(clients)];
}

/** Empty if there is no ss, or if it may not see the processes. */
export function clientsOf(isServer: (path: string) => boolean): Promise<number[]> {
  return new Promise((resolve) => {
    execFile('ss', ['-xpH'], { maxBuffer: MOST_BYTES }, (error, stdout) =>
      resolve(error ? [] : clientsIn(stdout, isServer)),
    );
  });
}
