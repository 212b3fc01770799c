/** What holds for a host where its inventory says nothing. */
export const inventoryDefaults = {
  sshPort: 22,
  stateFolder: '/var/lib/p4',
  ports: { agent: 7400, metrics: 7401, bridge: 19_000 },
  prometheusPort: 9090,
} as const;
