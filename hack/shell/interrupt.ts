/** Ctrl-C and SIGTERM as one AbortSignal, so that whoever started something can still clean up after it. */
let controller = new AbortController();

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => controller.abort(new DOMException(`got ${signal}`, 'AbortError')));
}

export function interrupted(): AbortSignal {
  return controller.signal;
}

/** Runs the clean-up of an interrupted command: until a second Ctrl-C, it may run programs again. */
export async function uninterrupted<T>(work: () => Promise<T>): Promise<T> {
  controller = new AbortController();
  return await work();
}
