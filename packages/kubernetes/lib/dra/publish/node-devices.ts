// NodeDevices: the devices that the manager's machine has for claims now, with taints.
import type { CpuSet, GrantInfo, ManagerView } from 'numalign';
import { BY_RECORD, cpusOfGrants } from 'numalign/tools';
import { type DeviceMachine, type DeviceUnit, devicesOf, machineNow, type PcieRoot } from '../devices.js';
import type { Taint, TaintedDevice } from './resource-slices.js';

export type DeviceManager = Pick<
  ManagerView,
  'topology' | 'settings' | 'placement' | 'freeCpus' | 'memory' | 'grants'
>;

export interface NodeDevicesOptions {
  readonly manager: DeviceManager;
  readonly unit: DeviceUnit;
  /** The options in effect. */
  readonly placement: ManagerView['placement'];
  /** Whether a grant is a claim's, which the scheduler knows. */
  readonly isOfClaim: (grant: GrantInfo) => boolean;
  /** Of the grants of claims: those that only the record keeps now. */
  readonly fallen: (claims: readonly GrantInfo[]) => readonly GrantInfo[];
  readonly pcieRoots: readonly PcieRoot[];
  readonly hasLists: boolean;
  /** Why containers cannot be placed here; undefined: they can. */
  readonly flaw: string | undefined;
}

/** @throws like {@link ManagerView.freeCpus} */
export function nodeDevices(options: NodeDevicesOptions): TaintedDevice[] {
  const { manager, unit, isOfClaim, fallen, flaw } = options;
  const claims = manager.grants().filter(isOfClaim);
  const placing: Taint[] =
    flaw === undefined ? [] : [{ key: 'numalign.io/not-placing', value: 'true', effect: 'NoSchedule' }];
  // What a claim has is at least kept by the masks of others.
  const open = cpusOfGrants(fallen(claims));
  return devicesOf(machineOf(options, claims), unit).map((device) => ({
    ...device,
    taints: [...placing, ...(isNear(device.node, open, manager) ? [FALLEN] : [])],
  }));
}

/**
 * From look to look, grants that have lost their level. Where there are no shared members, as in the
 * container of an agent, the record is their level from the beginning: the runtime keeps containers off.
 */
export function fallenGrants(): NodeDevicesOptions['fallen'] {
  let kept: ReadonlySet<string> = new Set();
  return (claims) => {
    const isKept = ({ uid, enforcement }: GrantInfo) => enforcement !== BY_RECORD || kept.has(uid);
    kept = new Set(claims.filter(isKept).map(({ uid }) => uid));
    return claims.filter(({ uid, enforcement }) => enforcement === BY_RECORD && kept.has(uid));
  };
}

const FALLEN: Taint = { key: 'numalign.io/enforcement', value: BY_RECORD, effect: 'NoSchedule' };

const isNear = (node: number, cpus: CpuSet, { topology }: DeviceManager) =>
  topology.nodes.some(({ id, cpus: own }) => id === node && own.intersects(cpus));

function machineOf(
  { manager, placement, pcieRoots, hasLists }: NodeDevicesOptions,
  claims: readonly GrantInfo[],
): DeviceMachine {
  const held = { cpus: cpusOfGrants(claims), memory: claims.flatMap(({ memory }) => memory) };
  const { topology } = manager;
  const now = {
    topology,
    settings: manager.settings(),
    freeCpus: manager.freeCpus(),
    memory: manager.memory(),
  };
  return { ...machineNow({ ...now, placement, claims: held }), pcieRoots, hasLists };
}
