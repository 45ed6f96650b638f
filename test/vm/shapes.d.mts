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
  kernel?: 'stable' | 'backports' | 'newest';
  hasContainers?: boolean;
  hasTap?: boolean;
  hasIrqbalance?: boolean;
  hasDisk?: boolean;
  release?: string;
  isRare?: boolean;
}
/** Of the host's end of tap0, with its prefix. */
export const TAP_ADDRESS: string;
export const SHAPES: readonly Shape[];
/** The machines, of several that are alike the first: by its name there is a file in test/fixtures/machines. */
export const FIXTURES: readonly Shape[];
