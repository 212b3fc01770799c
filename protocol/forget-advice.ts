/** The way out where a generation file is lost (G7), as errors tell it. */
export const forgetAdvice =
  'run `/opt/p4/libexec/p4 forget RING` as root on each host of the ring (for agents of `npm run agents`, `node dist/agent/host/main.js forget RING --config .p4/agents/HOST/agent.json` in the checkout, with their state folder for .p4)';
