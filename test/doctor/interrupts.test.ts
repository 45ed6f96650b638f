// needs: nothing
import { describe, expect, it } from 'vitest';
import { parseInterrupts } from '../../lib/doctor/hardware-facts.js';

// CPU 1 is offline.
const TEXT = `           CPU0       CPU2       CPU3
  9:          0          4          0   IO-APIC   9-fasteoi   acpi
 36:          0    1054870          2 PCI-MSIX-0000:00:01.0   1-edge      virtio1-req.0
 41:          0          0          0     GICv3  27 Level     arch_timer
NMI:          0          0          0   Non-maskable interrupts
ERR:          0
`;

describe('/proc/interrupts', () => {
  it('has the counts of each device interrupt, by CPU', () => {
    expect(parseInterrupts(TEXT)).toEqual([
      { irq: 9, name: 'acpi', counts: new Map([[2, 4]]) },
      { irq: 36, name: 'virtio1-req.0', counts: new Map([[2, 1054870], [3, 2]]) }, // biome-ignore format: one row
      { irq: 41, name: 'arch_timer', counts: new Map() },
    ]);
  });

  it('is unknown if it is empty, as in some containers', () => {
    expect(parseInterrupts('')).toBeUndefined();
  });
});
