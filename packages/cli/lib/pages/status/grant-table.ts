// The grants of a state as a table. Pure.
import {
  besideText,
  containerCpusText,
  cpusText,
  elasticText,
  idLength,
  ownerText,
  since,
  withMixed,
} from '@numalign/page/words';
import type { GrantStatus } from 'numalign/diagnostics';
import { table } from '../../terminal/table.js';
import type { Page } from '../../terminal/terminal.js';
import { listText, printable } from '../../terminal/text.js';

// A row for each container, if the row of the grant does not show it all.
function containerRows({ containers, booking }: GrantStatus, hasOthers: boolean): string[][] {
  if (containers.length === 1 && containers[0]!.held.isEmpty && booking === null) return [];
  return containers.map(({ name, kind, cpus, mixed, isolation, held, memory, devices }, i) => [
    '',
    `${i === containers.length - 1 ? '└─' : '├─'} ${printable(name)}${kind === 'app' ? '' : ` (${kind})`}`,
    `${containerCpusText({ cpus, mixed, isolation })}${held.isEmpty ? '' : `, held ${held}`}`,
    '',
    ...(hasOthers ? [besideText(memory, devices)] : []),
    ...['', '', '', ''],
  ]);
}

export function grantTable(grants: readonly GrantStatus[], page: Page): string[] {
  const length = idLength(grants.map((grant) => grant.uid));
  const others = grants.map(({ memory, devices }) => besideText(memory, devices));
  const hasOthers = others.some((text) => text !== '');
  const columns = [
    { title: 'ID' },
    { title: 'NAME' },
    { title: 'CPUS' },
    { title: 'NUMA' },
    ...(hasOthers ? [{ title: 'MEMORY AND DEVICES' }] : []),
    { title: 'OWNER', flexible: true },
    { title: 'STATE' },
    { title: 'ENFORCEMENT' },
    { title: 'SINCE' },
  ];
  const rows = grants.flatMap((grant, i) => [
    [
      printable(grant.uid.slice(0, length)),
      grant.name === grant.uid ? '-' : printable(grant.name),
      `${withMixed(cpusText(grant.cpus), grant.mixed)}${elasticText(grant.elastic)}${grant.isIsolated ? ' (isolated)' : ''}`,
      grant.cpus.isEmpty ? '-' : listText(grant.numaNodes),
      ...(hasOthers ? [others[i] || '-'] : []),
      ownerText(grant),
      `${grant.alive ? 'alive' : 'dead'}${grant.flags.length > 0 ? ', flagged' : ''}${grant.quiet ? ', quiet' : ''}${grant.movable ? ', movable' : ''}`,
      grant.enforcement,
      since(grant.admittedAt),
    ],
    ...containerRows(grant, hasOthers),
  ]);
  return table(columns, rows, page);
}
