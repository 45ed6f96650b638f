// The gate of `plan`: files that a cluster would refuse are refused, with all that is wrong in them.
import { NumalignError } from 'numalign';
import { checkAcquireOptions, DEFAULT_VERSION, isMemoryType } from 'numalign/tools';
import type { Topology } from 'numalign/topology';
import type { DeviceSelections } from '../arguments/devices.js';
import type { FileDocument } from '../arguments/documents.js';
import type { PlacementFlags } from '../arguments/placement-flags.js';
import type { DocumentCheck } from '../arguments/pod-file.js';
import type { PodFlags } from '../arguments/pod-flags.js';
import { Findings, fieldsOf } from './findings.js';
import { checkManifests, noDevices } from './manifest-check.js';
import { startFindings } from './start-check.js';

interface GateContext {
  readonly topology: Topology;
  readonly devices: DeviceSelections;
}

/** The checks of a configuration, and of pods and workloads. */
export interface Gate {
  readonly configuration: (document: FileDocument) => boolean;
  readonly manifests: DocumentCheck;
}

const KIND = 'KubeletConfiguration';

/** `numalign plan` without --lenient. */
export function openGate(flags: PlacementFlags & PodFlags, { topology, devices }: GateContext): Gate {
  const findings = new Findings();
  const resources = new Set(Object.keys(devices));
  checkResources(flags.resource ?? {}, resources);
  return {
    configuration: (document) => {
      // The library refuses another kind.
      if (fieldsOf(document.value).kind !== KIND) return true;
      const found = startFindings(fieldsOf(document.value), {
        version: flags.kubeletVersion ?? DEFAULT_VERSION,
        topology,
        instead: setInstead(flags),
      });
      findings.add(document, found);
      return found.length === 0;
    },
    manifests: {
      isRight: (document) => checkManifests(document, { findings, devices: resources }),
      end: () => findings.throwAny(),
    },
  };
}

// What flags set in place of fields.
function setInstead({ policy, scope, cpuManagerPolicy, reservedSystemCPUs }: PlacementFlags) {
  return {
    ...(policy !== undefined && { topologyManagerPolicy: policy }),
    ...(scope !== undefined && { topologyManagerScope: scope }),
    // To the kubelet's rules the policy dynamic is static.
    ...(cpuManagerPolicy !== undefined && {
      cpuManagerPolicy: cpuManagerPolicy === 'none' ? 'none' : 'static',
    }),
    ...(reservedSystemCPUs !== undefined && { reservedSystemCPUs: String(reservedSystemCPUs) }),
  };
}

// As `run` does.
function checkResources(amounts: Readonly<Record<string, string>>, devices: ReadonlySet<string>): void {
  checkAcquireOptions({ cpu: 1, resources: amounts });
  for (const resource of Object.keys(amounts)) {
    if (isMemoryType(resource) || devices.has(resource)) continue;
    const valid = [...devices, 'hugepages such as hugepages-2Mi'];
    throw new NumalignError('ERR_INVALID_OPTION', `--resource ${resource}: ${noDevices(resource)}`, {
      option: 'resources',
      value: resource,
      valid,
    });
  }
}
