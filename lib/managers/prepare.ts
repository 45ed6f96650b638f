// Prepare: what every opener does with the state first. Configure: how its settings change later.
import type { Assignments } from '../account/assignments.js';
import { withIdentities } from '../account/cpu-identities.js';
import { cpusNow } from '../account/cpus-now.js';
import { withoutPods } from '../account/pod-changes.js';
import { universe } from '../account/pools.js';
import type { Host } from '../admission/host.js';
import { commitEnforced, transact, withoutDead } from '../admission/transact.js';
import { grantWarnings, settingWarnings, stateArchived, type Warning } from '../admission/warnings.js';
import { defaultCgroupRoot } from '../cgroups/files/cgroup-namespace.js';
import {
  applySettings,
  checkCgroupRoot,
  checkKnown,
  checkLeavesPool,
  checkRecorded,
  chosenSettings,
  firstState,
} from '../decision/machine-settings.js';
import { totalsOf } from '../decision/memory/memory-tables.js';
import type { Config } from '../input/config.js';
import { parseMachineOptions } from '../input/given-settings.js';
import type { MachineOptions } from '../input/machine-options.js';
import { checkBesideKubelet } from '../kubelet/kubelet-conflict.js';
import { readKubeletFacts } from '../kubelet/kubelet-facts.js';
import { kubeletStatus } from '../kubelet/record/kubelet-status.js';
import { allowing } from '../machine/topology-refresh.js';
import type { QuietReview } from '../quiet/quieter.js';
import { isQuietUnsettled } from '../reconcile/quiet-settings.js';
import type { Store } from '../state/store.js';
import { noteMask } from '../threads/mask-wish.js';

const ALL_QUIET: QuietReview = { isGivenUp: () => false };

// The first opener records the settings; later openers must agree with them. Grants of an earlier
// boot are archived, and those of dead owners dropped. Changes of the machine do not prevent
// opening. Returns warnings for the opener.
export function prepare(host: Host, config: Config): Promise<readonly Warning[]> {
  const { ledger, topology, resources, lockTimeoutMs } = host;
  return ledger.transact({ lockTimeoutMs, totalOn: totalsOf(topology) }, async (checkpoint, commit) => {
    const now = cpusNow(topology, checkpoint?.assignments.pods);
    const { cgroupRoot } = config.settings;
    const recordRoot = () => cgroupRoot !== undefined && ledger.agreedRoot?.record(cgroupRoot);
    if (!checkpoint) {
      const first = withCgroupRoot(firstState(config, topology, now), config, ledger);
      refuseBesideKubelet(host, config, first);
      recordRoot();
      await commit(withIdentities(first, first, topology));
      joinPool(host, config, first);
      return settingWarnings(first, topology, now.online);
    }
    const assignments = checkpoint.assignments;
    // CPUs within reach are available once they are given back.
    host.topology = allowing(topology, host.enforcer.cpusWithinReach(assignments));
    checkRecorded(assignments, config, { topology, now, path: ledger.path });
    refuseBesideKubelet(host, config, assignments);
    // Such a state can only be looked at.
    if (checkpoint.refusal) return [];
    recordRoot();
    const archived = ledger.isOfThisBoot(checkpoint)
      ? []
      : [stateArchived(checkpoint, await ledger.archive(checkpoint))];
    const state = archived.length > 0 ? withoutPods(assignments) : withoutDead(host, assignments);
    // This kernel does not have the settings of an earlier boot.
    const before = archived.length > 0 ? { ...assignments, quiet: null } : assignments;
    const isUnsettled = await isQuietUnsettled(host, state);
    if (state !== assignments || isUnsettled)
      await commitEnforced(
        host,
        { before, wanted: state, commit },
        isUnsettled ? { quietReview: ALL_QUIET } : {},
      );
    // Before anything changes the mask of this process, which may be that of dead owners' grants.
    const stateDir = ledger.scope === 'memory' ? undefined : ledger.path;
    await noteMask({ topology, stateDir }, assignments, now);
    joinPool(host, config, state);
    return [
      ...archived,
      ...settingWarnings(state, topology, now.online),
      ...grantWarnings(state, topology, resources, now),
    ];
  });
}

function withCgroupRoot(state: Assignments, { settings }: Config, { scope }: Store): Assignments {
  if (settings.cgroupRoot !== undefined) return state;
  return { ...state, settings: { ...state.settings, cgroupRoot: defaultCgroupRoot(scope) } };
}

const joined = () => new Set<Host>();

// Makes this process a member, and moves it off exclusive CPUs at once. This also repairs what a
// crash has left behind.
function joinPool(host: Host, { sharedMember }: Config, state: Assignments): void {
  const { enforcer, ledger } = host;
  const members = ledger.registry.of(joined);
  const onReopen = () => void transact(host, undefined, async (now) => enforcer.apply(now)).catch(() => {});
  if (sharedMember) {
    enforcer.join(state, onReopen);
    members.add(host);
  }
  try {
    enforcer.apply(state);
  } catch (error) {
    if (members.delete(host)) enforcer.leave();
    throw error;
  }
}

/** The process stays a member while another of its managers uses the host. */
export function leavePool(host: Host): void {
  if (host.ledger.registry.of(joined).delete(host)) host.enforcer.leave();
}

/** @throws like {@link Manager.configure} */
export async function configure(host: Host, config: Config, options: MachineOptions): Promise<void> {
  const changes = parseMachineOptions(options);
  await transact(host, undefined, async (state, commit) => {
    checkKnown(changes, host.topology, state.settings);
    const now = cpusNow(host.topology, state.pods);
    const { placement } = config;
    const required = chosenSettings({ settings: changes, placement }, host.topology, now, state.settings);
    const settings = applySettings(state.settings, required);
    const next = { ...state, settings };
    checkLeavesPool(next, now);
    checkCgroupRoot(state, settings);
    refuseBesideKubelet(host, config, next);
    if (changes.cgroupRoot !== undefined) host.ledger.agreedRoot?.checkPlace();
    await commit(next);
    if (changes.cgroupRoot !== undefined) host.ledger.agreedRoot?.record(changes.cgroupRoot);
    host.enforcer.apply(next);
  });
}

function refuseBesideKubelet(
  { ledger, topology }: Host,
  { besideKubelet }: Config,
  { settings, kubelet }: Pick<Assignments, 'settings' | 'kubelet'>,
): void {
  if (ledger.scope !== 'machine' || topology.isSimulated || besideKubelet) return;
  const record = kubeletStatus(kubelet, (uuid) => ledger.owners.isProcessAlive(uuid));
  const managed = universe(settings, { online: topology.cpus });
  checkBesideKubelet(readKubeletFacts(), managed, topology.cpus, record);
}
