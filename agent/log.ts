/** One structured line on standard error for each transition: host, ring, node, session; never a generation, never a prompt. */
export type LogLine = { readonly event: string } & Readonly<Record<string, string | number | boolean | null>>;
export type Log = (line: LogLine) => void;

export const logTo =
  (host: string): Log =>
  (line) => {
    process.stderr.write(`${JSON.stringify({ at: new Date().toISOString(), host, ...line })}\n`);
  };
