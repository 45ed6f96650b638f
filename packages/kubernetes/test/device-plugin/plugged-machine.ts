// A simulated machine whose CPUs a device plugin offers to a fake kubelet.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Manager, type ManagerOptions, openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { DevicePlugin, type DevicePluginOptions } from '../../lib/device-plugin/device-plugin.js';
import { FakeKubelet } from './fake-kubelet.js';

export class PluggedMachine {
  readonly root = mkdtempSync(join(tmpdir(), 'numalign-plugin-'));
  readonly kubelet = new FakeKubelet(join(this.root, 'device-plugins'));
  readonly messages: string[] = [];
  manager!: Manager;
  plugin!: DevicePlugin;

  /** `synthetic`: the machine, as hwloc describes it. */
  static async open(
    synthetic: string,
    options: Partial<DevicePluginOptions> & { machine?: ManagerOptions } = {},
  ): Promise<PluggedMachine> {
    const machine = new PluggedMachine();
    const { machine: settings, ...plugin } = options;
    machine.manager = await openManager({
      ...{ topology: await discover({ synthetic }), stateDir: join(machine.root, 'state') },
      ...{ reservedSystemCPUs: '0' },
      ...settings,
    });
    machine.plug(plugin);
    return machine;
  }

  plug(options: Partial<DevicePluginOptions> = {}): DevicePlugin {
    this.plugin = new DevicePlugin({
      ...{ manager: this.manager, folder: this.kubelet.folder },
      log: (level, message) => this.messages.push(`${level}: ${message}`),
      ...options,
    });
    return this.plugin;
  }

  async close(): Promise<void> {
    await this.plugin.close();
    this.kubelet.kill();
    this.manager.close();
    rmSync(this.root, { recursive: true, force: true });
  }
}
