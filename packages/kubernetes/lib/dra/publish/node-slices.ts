// NodeSlices: the publisher of a node's devices, from what its manager and its parts say.
import type { Manager, ManagerView } from 'numalign';
import type { Condition } from '../../base/condition.js';
import { claimOfGrant } from '../../claims/claim-names.js';
import type { DeviceUnit } from '../devices.js';
import { fallenGrants, nodeDevices } from './node-devices.js';
import { readPcieRoots } from './pcie-roots.js';
import { SlicePublisher, type SlicePublisherOptions } from './slice-publisher.js';

export interface SlicesOfNode extends Pick<SlicePublisherOptions, 'nodeName' | 'deletesAtClose'> {
  readonly unit: DeviceUnit;
  /** Whether attributes may be lists. */
  readonly hasLists: boolean;
}

export interface NodeSlicesOptions
  extends SlicesOfNode,
    Omit<SlicePublisherOptions, 'devices' | 'manager' | keyof SlicesOfNode> {
  readonly manager: Manager;
  /** The options in effect. */
  readonly placement: () => ManagerView['placement'];
  /** Whether containers are placed. */
  readonly containers: { readonly condition: Condition };
}

export function nodeSlices(options: NodeSlicesOptions): SlicePublisher {
  const { manager, unit, hasLists, placement, containers } = options;
  const pcieRoots = manager.topology.isSimulated ? [] : readPcieRoots();
  const fallen = fallenGrants();
  return new SlicePublisher({
    ...options,
    devices: () => {
      const { isMet, text } = containers.condition;
      return nodeDevices({
        ...{ manager, unit, hasLists, pcieRoots, fallen, placement: placement() },
        flaw: isMet ? undefined : text,
        isOfClaim: ({ uid }) => claimOfGrant(uid) !== undefined,
      });
    },
  });
}
