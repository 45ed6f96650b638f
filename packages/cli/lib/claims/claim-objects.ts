// ClaimObjects: the ResourceClaims, templates and DeviceClasses in the files of a command.
import {
  CLAIM_KINDS,
  type Claim,
  claimOf,
  type DeviceClass,
  deviceClassOf,
  OWN_CLASSES,
} from '@numalign/claims';
import { type FileDocument, inPlace } from '../arguments/documents.js';
import { type Fields, fieldsOf, listOf } from '../gate/findings.js';

const isKind = (kind: unknown): boolean => (CLAIM_KINDS as readonly unknown[]).includes(kind);

const nameOf = (kind: unknown, namespace: unknown, name: unknown) =>
  `${kind} ${namespace ?? 'default'}/${name}`;

export class ClaimObjects {
  readonly #claims = new Map<string, Claim>();
  /** By name; those that come with numalign-node, too. */
  readonly classes = new Map<string, DeviceClass>(OWN_CLASSES);

  /** Takes what a document has, or the items of a List. @throws ERR_INVALID_ARGUMENT, with the field */
  readonly read = ({ value, place }: FileDocument): void => {
    const document = fieldsOf(value);
    const objects = document.kind === 'List' ? listOf(document.items).map(fieldsOf) : [document];
    for (const object of objects.filter(({ kind }) => isKind(kind))) inPlace(place, () => this.#take(object));
  };

  #take(object: Fields): void {
    const { namespace, name } = fieldsOf(object.metadata);
    if (object.kind === 'DeviceClass') this.classes.set(String(name), deviceClassOf(object));
    else this.#claims.set(nameOf(object.kind, namespace, name), claimOf(object));
  }

  /** Undefined: no file has it. */
  find(kind: 'ResourceClaim' | 'ResourceClaimTemplate', namespace: string, name: string): Claim | undefined {
    return this.#claims.get(nameOf(kind, namespace, name));
  }
}

/** Whether an object is read by {@link ClaimObjects}. */
export const isOfClaims = ({ kind }: { readonly kind: string }): boolean => isKind(kind);
