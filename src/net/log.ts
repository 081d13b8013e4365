/** How this folder's parts report: one event, a fixed name, plain fields. Never a key, token, header or body. */
export type NetLog = (
  level: 'info' | 'warn',
  event: string,
  fields?: Readonly<Record<string, string | number | boolean>>,
) => void;
