// Condition: whether a part does its work, for those who operate the node.

export interface Condition {
  /** For example `nri`; unique. */
  readonly part: string;
  readonly isMet: boolean;
  /** Whether the node does its work only if it is met. */
  readonly isVital: boolean;
  /** For people: why, or what is missing. */
  readonly text: string;
}
