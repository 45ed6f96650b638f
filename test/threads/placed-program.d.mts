export interface Placed {
  grant: string;
  kinds: Record<'main' | 'workers' | 'pool' | 'v8' | 'others', number[]>;
  guaranteed: Record<'all' | 'main' | 'pool' | 'workers', boolean>;
  workerTids: number[];
  masks: Record<string, string>;
  scheduling?: object;
}
export function runProgram(
  options: object,
  milliseconds?: number,
): Promise<{
  pid: number;
  placed: Placed;
  seen: Map<number, Set<number>>;
  ended: { jobs: number; left: [number, string][] };
}>;
