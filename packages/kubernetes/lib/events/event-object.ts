// EventObject: Events as the API server has them (v1). Pure.
import type { KubernetesObject } from '../api-server/resource.js';
import type { NodeEvent } from './event.js';

/** An Event, and how often it has happened. */
export interface Occurrence {
  event: NodeEvent;
  count: number;
  readonly first: Date;
  last: Date;
  /** The name of the object; empty until the API server has it. */
  name: string;
}

const COMPONENT = 'numalign-node';
// Events of what has no namespace, such as nodes.
const NO_NAMESPACE = 'default';
// The API server's limits for names and notes.
const LONGEST_NAME = 253;
const LONGEST_MESSAGE = 1024;

export const namespaceOf = ({ about }: NodeEvent): string =>
  about.kind === 'Pod' ? about.namespace : NO_NAMESPACE;

/** What has the same key has one object. */
export function keyOf({ about, type, reason }: NodeEvent): string {
  const subject = about.kind === 'Pod' ? [about.namespace, about.name, about.uid, about.container] : [];
  return JSON.stringify([about.kind, ...subject, type, reason]);
}

/** What changes if it happens again. */
export const repetition = ({ event, count, last }: Occurrence) => ({
  message: messageOf(event),
  count,
  lastTimestamp: timeOf(last),
});

export function eventObject(occurrence: Occurrence, nodeName: string): KubernetesObject {
  const { event, first } = occurrence;
  const involvedObject = subjectOf(event, nodeName);
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: nameOf(involvedObject.name), namespace: namespaceOf(event) },
    involvedObject,
    type: event.type,
    reason: event.reason,
    firstTimestamp: timeOf(first),
    ...repetition(occurrence),
    source: { component: COMPONENT, host: nodeName },
    reportingComponent: COMPONENT,
    reportingInstance: nodeName,
  };
}

function subjectOf({ about }: NodeEvent, nodeName: string) {
  // The kubelet's Events of a node have its name as the uid, and `kubectl describe` asks for that.
  if (about.kind === 'Node') return { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: nodeName };
  const { kind, namespace, name, uid, container } = about;
  return {
    ...{ apiVersion: 'v1', kind, namespace, name, uid },
    ...(container !== undefined && { fieldPath: `spec.containers{${container}}` }),
  };
}

let names = 0;

/** A new name, like those of Kubernetes' own components. */
function nameOf(subject: string): string {
  const suffix = `.${Date.now().toString(16)}${process.pid.toString(16)}${(names++).toString(16)}`;
  const start = subject.slice(0, LONGEST_NAME - suffix.length).replace(/[-.]+$/, '');
  return start + suffix;
}

// The API server's times have no fractions.
const timeOf = (date: Date): string => date.toISOString().replace(/\.\d+Z$/, 'Z');

const messageOf = ({ message }: NodeEvent): string => message.slice(0, LONGEST_MESSAGE);
