// What becomes of the containers that a runtime is about to create.
import { expect, it } from 'vitest';
import { withOutcomes } from '../../lib/nri/creation-outcomes.js';
import { containerOf, podOf } from '../support/nri-objects.js';
import { simulatedNode } from '../support/simulated-node.js';

const GIB = 2 ** 30;
const POD = podOf();
const exclusive = (id: string, cpus = 1) => containerOf({ id, cpus, memory: GIB });
const CALL = {} as never;

it('Each container is admitted, refused, or undone by the runtime', async () => {
  const { handlers } = await simulatedNode();
  const outcomes: string[] = [];
  const told =
    (what: string) =>
    (_: unknown, { id }: { readonly id: string }) =>
      outcomes.push(`${what} ${id}`);
  const node = withOutcomes(handlers, {
    admitted: told('admitted'),
    refused: told('refused'),
    undone: told('undone'),
  });
  for (const id of ['a', 'b', 'c']) await node.createContainer(POD, exclusive(id), CALL);
  await expect(node.createContainer(POD, exclusive('d', 8), CALL)).rejects.toThrow(
    /8 exclusive CPUs requested/,
  );
  await node.postCreateContainer!(POD, exclusive('a'), CALL);
  await node.startContainer!(POD, exclusive('b'), CALL);
  for (const id of ['a', 'b', 'c', 'd']) {
    await node.stopContainer(POD, exclusive(id), CALL);
    await node.removeContainer!(POD, exclusive(id), CALL);
  }
  expect(outcomes).toEqual(['admitted a', 'admitted b', 'admitted c', 'refused d', 'undone c']);
});
