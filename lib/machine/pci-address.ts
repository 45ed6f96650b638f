// Addresses of PCI devices.

/**
 * The address of a PCI device as Linux writes it, such as `0000:3b:00.0`: domain, bus, device,
 * function.
 */
export const PCI_ADDRESS = /^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$/;
