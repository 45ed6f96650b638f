// Events of Kubernetes: what is told to those who look at a pod or a node.

/** A pod, or one of its containers. */
export interface PodSubject {
  readonly kind: 'Pod';
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** The name of the container that it is about. */
  readonly container?: string | undefined;
}

/** This node. */
export interface NodeSubject {
  readonly kind: 'Node';
}

export const THIS_NODE: NodeSubject = { kind: 'Node' };

export interface NodeEvent {
  readonly about: PodSubject | NodeSubject;
  readonly type: 'Normal' | 'Warning';
  /** One word in CamelCase, for machines: an Event is repeated under its subject and reason. */
  readonly reason: string;
  /** For people. */
  readonly message: string;
}

/** Returns at once, and never throws. */
export type RecordEvent = (event: NodeEvent) => void;

/** There is no API server. */
export const NO_EVENTS: RecordEvent = () => {};
