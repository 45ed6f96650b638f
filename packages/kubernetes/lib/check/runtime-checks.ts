// Checks of the container runtime, and of the cgroups for its containers. Pure.
import { HIDDEN, VISIBLE } from '../cgroups/hidden-processes.js';
import type { NodeFacts, SocketFacts } from './node-facts.js';
import { ok, problem, unknown, type Verdict, warning } from './verdict.js';

const WORDS: Readonly<Record<SocketFacts['state'], string>> = {
  listens: 'it answers',
  refused: 'no server listens on it',
  absent: 'it does not exist',
  forbidden: 'this user may not use it',
  'no-socket': 'it is not a socket',
};

/** The state of a socket in words. */
export const socketText = ({ path, state }: SocketFacts) => `${path}: ${WORDS[state]}`;

// The first versions with NRI, as pairs of numbers.
const FIRST_WITH_NRI: Readonly<Record<string, readonly [number, number]>> = {
  containerd: [1, 7],
  'cri-o': [1, 26],
};
// The first versions with NRI on by default.
const ON_BY_DEFAULT: Readonly<Record<string, readonly [number, number]>> = {
  containerd: [2, 0],
  'cri-o': [1, 30],
};

function numbersOf(version: string): readonly [number, number] | undefined {
  const found = /^v?(\d+)\.(\d+)/.exec(version);
  return found ? [Number(found[1]), Number(found[2])] : undefined;
}

const isBefore = (a: readonly [number, number], b: readonly [number, number]) =>
  a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);

const NAME_IT = "name the runtime's socket in CONTAINER_RUNTIME_ENDPOINT";
const WITHOUT_NRI = 'a newer runtime, or `numalign-node attach` for containers that run';

export function runtimeVersion({ nri, runtimeVersion }: NodeFacts): Verdict {
  if (!runtimeVersion) return unknown('the runtime does not report its version', NAME_IT);
  const { name, version } = runtimeVersion;
  if (!nri) return ok(`${name} ${version}: no NRI is needed`);
  const [first, numbers] = [FIRST_WITH_NRI[name], numbersOf(version)];
  if (!first || !numbers) return unknown(`${name} ${version}: it is unknown whether it has NRI`);
  return isBefore(numbers, first)
    ? problem(`${name} ${version} has no NRI: the first version with NRI is ${first.join('.')}`, WITHOUT_NRI)
    : ok(`${name} ${version} has NRI`);
}

export function runtimeSocket({ runtime }: NodeFacts): Verdict {
  return runtime.state === 'listens'
    ? ok(socketText(runtime))
    : warning(socketText(runtime), `${NAME_IT}; without it \`attach\` does not work`);
}

export function nriSocket(facts: NodeFacts): Verdict {
  const { nri } = facts;
  if (!nri) return ok('containers are left to the runtime and the kubelet');
  const text = socketText(nri);
  if (nri.state === 'listens') return ok(text);
  if (nri.state === 'forbidden')
    return problem(text, "run numalign-node as the socket's owner, usually root");
  if (facts.isNriDisabled === true)
    return problem(
      `${text}; ${facts.configuration} switches NRI off`,
      'set `disable = false` below [plugins."io.containerd.nri.v1.nri"] there, and restart containerd',
    );
  if (facts.isNriDisabled === null && isOffByDefault(facts))
    return problem(
      `${text}; this runtime has NRI off by default`,
      'add [plugins."io.containerd.nri.v1.nri"] with `disable = false` to ' +
        `${facts.configuration}, and restart containerd`,
    );
  return problem(
    text,
    'start the runtime, or name the socket by --nri-socket; in a pod, mount its folder by hostPath',
  );
}

function isOffByDefault({ runtimeVersion }: NodeFacts): boolean {
  const numbers = runtimeVersion && numbersOf(runtimeVersion.version);
  const first = runtimeVersion && ON_BY_DEFAULT[runtimeVersion.name];
  return Boolean(numbers && first && isBefore(numbers, first));
}

export function cpusetController({ cgroups }: NodeFacts): Verdict {
  const { version, controllers, areProcessesHidden } = cgroups;
  if (areProcessesHidden) return problem(HIDDEN, VISIBLE);
  if (controllers.includes('cpuset')) return ok(`cgroup v${version} with the controller cpuset`);
  return problem(
    `cgroup v${version} without the controller cpuset: no container can be kept on CPUs`,
    version === 1
      ? 'mount it: `mount -t cgroup -o cpuset cpuset /sys/fs/cgroup/cpuset`'
      : 'a kernel with CONFIG_CPUSETS, and in a container the cgroups of the machine',
  );
}
