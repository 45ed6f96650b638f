// AffinePlaces: tries the places of a container that is to be near others, or apart from them.
import { AdmissionError, type CpuSet, type Manager } from 'numalign';
import { NodeError } from '../base/errors.js';
import type { Log } from '../base/log.js';
import type { Container, PodSandbox } from '../nri/messages.js';
import {
  type AffinityChoices,
  affinityChoices,
  type Neighbour,
  type PlacedNeighbour,
} from '../placement/affinity.js';
import { type ContainerRequest, grantUid } from '../placement/container-request.js';
import type { Placement } from './container-placement.js';
import type { Inventory } from './inventory.js';
import { fieldsOf, subjectOf } from './reports.js';

/** Places the container on some of these CPUs; undefined: on any. */
export type PlaceWithin = (within?: CpuSet) => Promise<Placement | null>;

export interface AffinePlacesOptions {
  readonly inventory: Inventory;
  readonly manager: Manager;
  readonly log: Log;
}

const neighbourOf = ({ namespace, name, labels }: PodSandbox, container: string): Neighbour => ({
  ...{ namespace: namespace || 'default', pod: name, container, labels },
});

export class AffinePlaces {
  readonly #options: AffinePlacesOptions;

  constructor(options: AffinePlacesOptions) {
    this.#options = options;
  }

  /**
   * The best place that `place` finds.
   * @throws ERR_AFFINITY if there is none where the container must be; like `place`
   */
  async place(
    pod: PodSandbox,
    container: Container,
    { exclusiveCpus, affinity = [] }: ContainerRequest,
    place: PlaceWithin,
  ): Promise<Placement | null> {
    const { inventory, manager } = this.#options;
    const isConcerned = affinity.length > 0 || inventory.containers.some(({ request }) => isAparter(request));
    if (exclusiveCpus === 0 || !isConcerned) return place();
    const others = [...this.#others(grantUid(pod, container))];
    const found = affinityChoices(affinity, neighbourOf(pod, container.name), others, manager.topology);
    const refusals: string[] = [];
    for (const within of found.choices) {
      try {
        const placement = await place(within);
        if (refusals.length > 0) this.#reportSecondBest(pod, container, found);
        return placement;
      } catch (error) {
        // Without required terms the last choice is any CPUs.
        const isLast = found.required.length === 0 && within === undefined;
        if (isLast || !(error instanceof AdmissionError)) throw error;
        refusals.push(error.message);
      }
    }
    throw affinityError(container.name, found, refusals);
  }

  #reportSecondBest(pod: PodSandbox, container: Container, { preferred }: AffinityChoices): void {
    if (preferred.length === 0) return;
    const text = `container ${container.name} may not be where it prefers to be: ${preferred.join('; ')}`;
    this.#options.log('info', text, { ...fieldsOf(subjectOf(pod, container)), id: container.id });
  }

  // A container that has ended keeps its CPUs for its next start.
  *#others(uid: string): Generator<PlacedNeighbour> {
    const { inventory } = this.#options;
    for (const { podId, subject, placement, request } of inventory.containers) {
      const pod = inventory.findPod(podId);
      if (!pod || !placement?.cpus || placement.uid === uid) continue;
      const { affinity = [] } = request;
      yield { ...neighbourOf(pod, subject.container!), cpus: placement.cpus, affinity };
    }
    for (const pod of inventory.pods) {
      for (const { placement } of inventory.leftIn(pod.id)) {
        if (!placement.cpus || placement.uid === uid) continue;
        const container = placement.uid.slice(placement.uid.lastIndexOf('.') + 1);
        yield { ...neighbourOf(pod, container), cpus: placement.cpus, affinity: [] };
      }
    }
  }
}

const isAparter = ({ affinity = [] }: ContainerRequest) => affinity.some(({ key }) => key === 'apart');

function affinityError(name: string, { required }: AffinityChoices, refusals: readonly string[]): NodeError {
  const why = refusals.at(-1) ?? 'no CPUs are there';
  return new NodeError('ERR_AFFINITY', `container ${name} must be ${required.join(', and ')}: ${why}`, {
    value: required,
    valid: 'room there, or affinity that is not required',
  });
}
