/** JSON lines on stdout, as the other processes write them; a logger library would cost this process its budget. */

export type Log = (
  level: 'info' | 'warn' | 'error',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;

const LONGEST_STRING = 2_048;

export function createLog(write: (line: string) => void = (line) => void process.stdout.write(line)): Log {
  return (level, message, fields = {}) => {
    const cut = Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === 'string' && value.length > LONGEST_STRING ? `${value.slice(0, LONGEST_STRING)}…` : value,
    ]);
    const line = { level, time: new Date().toISOString(), component: 'sidecar', ...Object.fromEntries(cut), message };
    write(`${JSON.stringify(line)}\n`);
  };
}
