// ErrorDetails: what the details of several errors have. Types only: nothing is loaded at runtime.
import type { AdmissionReason } from './admission-reasons.js';

/**
 * Facts that several errors have. Those of a code are `NumalignError<'ERR_…'>['details']`, and what
 * TypeScript knows after `if (error.code === 'ERR_…')`; docs/reference/errors.md lists them.
 */
export interface ErrorDetails {
  /** The offending value. */
  value?: unknown;
  /** What would be valid. */
  valid?: unknown;
  /** The pod of {@link Manager.admitAll} that the error is about, by its position. */
  index?: number;
  /** What a hint provider threw while it gave back what the error undoes. */
  rollback?: unknown;
  /** Of a rejection: the reason in the kubelet's words. */
  reason?: AdmissionReason;
  /** Of a rejection: the reserved CPUs, as a list. */
  reserved?: string;
}
