/** Shows what is being done and how long it takes, on a terminal and in a log of CI alike. */
const started = Date.now();
const running = new Map<string, number>();
const live = process.stderr.isTTY === true;

export const seconds = (since: number): string => `${((Date.now() - since) / 1000).toFixed(1)} s`;

/** Does one step and prints its name with the time it took. Steps may run side by side. */
export async function step<T>(name: string, work: () => Promise<T>): Promise<T> {
  const begun = Date.now();
  running.set(name, begun);
  const ticker = startTicker(name, begun);
  try {
    const result = await work();
    print(`  ✓ ${name} (${seconds(begun)})`);
    return result;
  } catch (error) {
    print(`  ✗ ${name} (${seconds(begun)})`);
    throw error;
  } finally {
    clearInterval(ticker);
    running.delete(name);
    redraw();
  }
}

export function note(text: string): void {
  print(`  ${text}`);
}

export function elapsed(): string {
  return seconds(started);
}

function startTicker(name: string, begun: number): NodeJS.Timeout {
  redraw();
  // A terminal counts in place; a log gets a line every half minute, so that silence always means trouble.
  return live ? setInterval(redraw, 500) : setInterval(() => print(`  … ${name} (${seconds(begun)})`), 30_000);
}

function print(line: string): void {
  process.stderr.write(live ? `\r\x1b[K${line}\n` : `${line}\n`);
  redraw();
}

function redraw(): void {
  if (!live) return;
  const doing = [...running].map(([name, begun]) => `${name} ${seconds(begun)}`).join(', ');
  process.stderr.write(`\r\x1b[K${doing === '' ? '' : `  … ${doing}`.slice(0, (process.stderr.columns ?? 80) - 1)}`);
}
