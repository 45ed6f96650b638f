// AffinePlaces: tries the places of a container that is to be near others, or apart from them.
import { AdmissionError, type CpuSet, type Manager } from 'numalign';
import { NodeError } from '../base/errors.js';
import type { Log } from '../base/log.js';
import type { Container, PodSandbox } from '../nri/messages.js';
import { type AffinityChoices, affinityChoices, type Neighbour, type PlacedNeighbour } from './affinity.js';
import { type ContainerRequest, grantUid } from './container-request.js';

/** The containers of a node with CPUs of their own. */
export interface Neighbours {
  /** Whether any is to be apart from others. */
  readonly hasAparter: boolean;
  /** All but the one with this grant. */
  neighboursOf(uid: string): Iterable<PlacedNeighbour>;
}

export interface AffinePlacesOptions {
  readonly neighbours: Neighbours;
  readonly manager: Manager;
  readonly log: Log;
}

/** A container, as selectors see it. */
export const neighbourOf = (
  { namespace, name, labels }: Pick<PodSandbox, 'namespace' | 'name' | 'labels'>,
  container: string,
): Neighbour => ({ ...{ namespace: namespace || 'default', pod: name, container, labels } });

export class AffinePlaces {
  readonly #options: AffinePlacesOptions;

  constructor(options: AffinePlacesOptions) {
    this.#options = options;
  }

  /**
   * The best place that `place` finds, which is given the CPUs to choose from; undefined: any.
   * `names`: of the containers that have their CPUs there.
   * @throws ERR_AFFINITY if there is none where the container must be; like `place`
   */
  async place<Placement>(
    pod: PodSandbox,
    container: Container,
    { exclusiveCpus, affinity = [] }: Pick<ContainerRequest, 'exclusiveCpus' | 'affinity'>,
    place: (within?: CpuSet) => Promise<Placement>,
    names: readonly string[] = [container.name],
  ): Promise<Placement> {
    const { neighbours, manager } = this.#options;
    if (exclusiveCpus === 0 || (affinity.length === 0 && !neighbours.hasAparter)) return place();
    const others = [...neighbours.neighboursOf(grantUid(pod, container))];
    const selves = names.map((name) => neighbourOf(pod, name));
    const found = affinityChoices(affinity, selves, others, manager.topology);
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
    this.#options.log('info', text, { pod: `${pod.namespace}/${pod.name}`, container: container.name });
  }
}

function affinityError(name: string, { required }: AffinityChoices, refusals: readonly string[]): NodeError {
  const why = refusals.at(-1) ?? 'no CPUs are there';
  return new NodeError('ERR_AFFINITY', `container ${name} must be ${required.join(', and ')}: ${why}`, {
    value: required,
    valid: 'room there, or affinity that is not required',
  });
}
