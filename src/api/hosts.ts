/** Names of hosts that a tool may reach, or to which a secret is bound: compared as they are written, so only one spelling is taken. */
import { type Rule, text } from './schema.ts';

const LABEL = '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?';
/** A full name, its last label with a letter first: no shorthand of an address (`127.1`, `0x7f.1`) has that. */
const NAME = `(${LABEL}[.])+[a-z]([a-z0-9-]{0,61}[a-z0-9])?`;
const OCTET = '(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])';
const ADDRESS = `${OCTET}([.]${OCTET}){3}`;
const PORT = '([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])';

/** What is never reached: this machine, its link, and what lies within a machine, a cluster or a cloud. As `domain/egress` has it. */
const NEVER_ADDRESS = '(127|0|169[.]254)[.][0-9.]+';
const NEVER_NAME =
  '([^/?:]*[.])?(localhost|localdomain|local|internal|svc|cluster[.]local|home[.]arpa|onion|metadata[.]goog|metadata[.]tencentyun[.]com|metadata[.]packet[.]net|api[.]metadata[.]cloud[.]ibm[.]com)';
const NEVER = `^(${NEVER_ADDRESS}|${NEVER_NAME})(:[0-9]*)?$`;
const NEVER_URL = `^https?://(${NEVER_ADDRESS}|${NEVER_NAME})([:/?]|$)`;
const NEVER_MESSAGE = 'names within a machine, a cluster or a cloud, loopback and link-local are never reached';

/** Longest name of DNS, a port after it, and `*.` before it. */
const HOST_MAX = 253;
const PATTERN_MAX = HOST_MAX + 8;

const SPELLING =
  'lower case (an international name in its xn-- form), no scheme, path, user or dot at the end; of addresses plain IPv4 only';

function spelled(pattern: string, message: string): readonly Rule<string>[] {
  return [
    { cel: `self.matches('${pattern}')`, test: (host) => new RegExp(pattern).test(host), message },
    {
      cel: `!self.matches('${NEVER}')`,
      test: (host) => !new RegExp(NEVER).test(host),
      message: NEVER_MESSAGE,
    },
  ];
}

/** One host, without a port. */
export const exactHost = (description: string) =>
  text({
    description,
    max: HOST_MAX,
    rules: spelled(
      `^${NAME}$`,
      `must be one host by its full name, such as api.github.com: no address, no *, a port in its own field; lower case (an international name in its xn-- form), no dot at the end`,
    ),
  });

/** Hosts, as a tool names those that it may reach. */
export const hostPattern = text({
  description: 'A host.',
  max: PATTERN_MAX,
  rules: spelled(
    `^(([*][.])?${NAME}|${ADDRESS})(:${PORT})?$`,
    `must be a host by its full name, such as api.github.com, host.example.com:8443, or *.example.com for one label: ${SPELLING}`,
  ),
});

const URL_PATTERN = `^https?://(${NAME}|${ADDRESS})(:${PORT})?([/?][!-"$-~]*)?$`;

/** Only host and port come from the parameter; the path is literal, the scheme https. [N07] */
const PARAMETER_URL_PATTERN = '^https://[{]params[.][a-z][a-z0-9_]*[}](/[!-"$-z|~]*)?$';

/** The parameter that a `url` takes its host from; undefined where it says the host itself. */
export function parameterOf(url: string): string | undefined {
  return new RegExp(PARAMETER_URL_PATTERN).test(url) ? /[.]([a-z0-9_]+)[}]/.exec(url)?.[1] : undefined;
}

export const serverUrl = text({
  description:
    "A remote MCP server, over Streamable HTTP. Its host is all that the tool's pod may reach. `https`; plain `http` for what carries no credentials. `https://{params.<name>}/<path>` takes host and port from a parameter of the Tool's Connection; Connections of this version have none yet.",
  max: 2048,
  rules: [
    {
      cel: `self.matches('${URL_PATTERN}') || self.matches('${PARAMETER_URL_PATTERN}')`,
      test: (url) => new RegExp(URL_PATTERN).test(url) || parameterOf(url) !== undefined,
      message: `must be a URL such as https://mcp.example.com/mcp, without user, fragment or spaces; its host: ${SPELLING}`,
    },
    {
      cel: `!self.matches('${NEVER_URL}')`,
      test: (url) => !new RegExp(NEVER_URL).test(url),
      message: NEVER_MESSAGE,
    },
  ],
});

/** `https://mcp.example.com/x` → where that is; undefined for what `serverUrl` refuses. */
export function addressOf(url: string): { readonly host: string; readonly port: number } | undefined {
  const [, scheme, host, port] = /^(https?):[/][/]([^/:?#@]+)(?::([0-9]+))?([/?]|$)/.exec(url) ?? [];
  if (scheme === undefined || host === undefined) return undefined;
  return { host, port: Number(port ?? (scheme === 'https' ? 443 : 80)) };
}

/** Whether a tool that names these patterns may reach that. */
export function mayReach(patterns: readonly string[], host: string, port: number): boolean {
  return patterns.some((pattern) => {
    const [name = '', ownPort = '443'] = pattern.split(':');
    if (Number(ownPort) !== port) return false;
    return name.startsWith('*.') ? host.slice(host.indexOf('.') + 1) === name.slice(2) : name === host;
  });
}
