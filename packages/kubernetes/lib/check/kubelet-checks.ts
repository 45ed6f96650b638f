// Checks of a kubelet on the same node. Pure.
import type { NodeFacts } from './node-facts.js';
import { socketText } from './runtime-checks.js';
import { ok, problem, unknown, type Verdict, warning } from './verdict.js';

const NONE = 'there is no kubelet';

// The assignments to containers stay in the file, whatever the kubelet's configuration says.
function change({ folder, isService }: NodeFacts['kubelet'], field: string, file: string): string {
  const restart = isService ? '`systemctl restart kubelet`' : 'start it again';
  return `set ${field} in its configuration, drain the node, stop the kubelet, remove ${folder}/${file}, and ${restart}`;
}

export function cpuPolicy({ kubelet, nri }: NodeFacts): Verdict {
  const policy = kubelet.cpuPolicy;
  if (policy === null) return ok(kubelet.exists ? 'the kubelet has no state of CPUs' : NONE);
  if (typeof policy !== 'string') return unknown(`the kubelet's assignments cannot be read: ${policy.error}`);
  if (policy === 'none') return ok('the kubelet assigns no CPUs: its policy is none');
  const found = `the kubelet assigns CPUs itself, by the policy ${policy}`;
  if (!nri) return ok(`${found}: they are recorded`);
  return problem(found, change(kubelet, 'cpuManagerPolicy: none', 'cpu_manager_state'));
}

export function memoryPolicy({ kubelet, nri }: NodeFacts): Verdict {
  const policy = kubelet.memoryPolicy;
  if (policy === null) return ok(kubelet.exists ? 'the kubelet has no state of memory' : NONE);
  if (typeof policy !== 'string')
    return unknown(`the kubelet's bookings of memory cannot be read: ${policy.error}`);
  if (policy === 'None') return ok('the kubelet books no memory: its policy is None');
  const found = `the kubelet books memory itself, by the policy ${policy}`;
  if (!nri) return ok(`${found}: it is recorded`);
  return problem(found, change(kubelet, 'memoryManagerPolicy: None', 'memory_manager_state'));
}

export function podResources({ kubelet }: NodeFacts): Verdict {
  const { podResources, exists } = kubelet;
  if (podResources.state === 'listens') return ok(socketText(podResources));
  if (!exists) return ok(NONE);
  return warning(
    `${socketText(podResources)}: the kubelet's assignments are only read from its files`,
    'in a pod, mount its folder by hostPath',
  );
}

export function devicePlugins({ kubelet }: NodeFacts): Verdict {
  const { devicePlugins, exists } = kubelet;
  if (devicePlugins.state === 'listens') return ok(socketText(devicePlugins));
  if (!exists) return ok(NONE);
  return warning(
    `${socketText(devicePlugins)}: no device plugin can register`,
    'in a pod, mount its folder by hostPath, as root',
  );
}
