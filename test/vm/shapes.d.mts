export interface Shape {
  name: string;
  about: string;
  nodeCpus: string[];
  /** Of the fixture, where that has others. */
  xmlNodeCpus?: string[];
  arguments: string[];
  tests: string[];
  afterReboot?: string[];
  append?: string;
  offline?: number[];
  kernel?: 'stable' | 'backports';
  hasContainers?: boolean;
  hasDisk?: boolean;
}
export const SHAPES: readonly Shape[];
/** The machines, of several that are alike the first: by its name there is a file in test/fixtures/machines. */
export const FIXTURES: readonly Shape[];
