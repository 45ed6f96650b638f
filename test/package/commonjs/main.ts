// CommonJS, as the package.json beside it has no `type`: what tsc makes of this calls require().

import { collectMetrics } from '@numalign/metrics';
import { registerMetrics } from '@numalign/metrics/opentelemetry';
import { type Grant, type Manager, openManager } from 'numalign';
import cluster, { cluster as byName, type GrantedWorker } from 'numalign/cluster';
import { discover } from 'numalign/topology';

async function main(): Promise<void> {
  const topology = await discover({ synthetic: 'numa:2 core:4 pu:2' });
  const manager: Manager = await openManager({ topology });
  const grant: Grant = await manager.acquire({ cpu: 2 });
  // @ts-expect-error: a number, since the types are the package's own.
  const text: string = grant.cpus.size;
  // The default export, as TypeScript has it of a CommonJS module.
  const forked: (options?: { cpu?: number }) => Promise<GrantedWorker> = cluster.fork;
  if (cluster !== byName || forked !== byName.fork) throw new Error('two clusters');
  // One module, whichever way it comes.
  const imported = await import('numalign');
  console.log(text, typeof collectMetrics, typeof registerMetrics, imported.openManager === openManager);
}

void main();
