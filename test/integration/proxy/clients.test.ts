/**
 * Clients as they are, told of the proxy by their environment alone: each sends its placeholder, the host sees the secret, and
 * what the host echoes shows none.
 */
import { type ExecFileException, execFile, execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { canariesIn, codeOf, HOST, SECRET, startWorld, type World } from './support/world.ts';

let world: World;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'oz0-clients-'));
  world = await startWorld();
});
afterAll(async () => {
  await world.close();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(() => {
  world.seen.length = 0;
  world.script = undefined;
});

const has = (command: string, ...args: string[]): boolean => {
  try {
    execFileSync(command, args, { stdio: 'ignore', timeout: 20_000 });
    return true;
  } catch {
    return false;
  }
};

/** Runs a program with the tool's environment and nothing else of ours. */
function run(
  command: string,
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<{ out: string; code: number }> {
  const { PATH = '', HOME = '', PYTHONPATH = '' } = process.env;
  return new Promise((resolve) => {
    execFile(
      command,
      args,
      {
        env: { PATH, HOME, PYTHONPATH, ...world.proxy.environment(), ...more },
        timeout: 25_000,
        maxBuffer: 64 * 1024 * 1024,
      },
      (error: ExecFileException | null, stdout, stderr) =>
        resolve({ out: stdout + stderr, code: typeof error?.code === 'number' ? error.code : error === null ? 0 : 1 }),
    );
  });
}

/** The value of a header, as it reached the host. */
const reached = (name: string): string | undefined => {
  const { rawHeaders = [] } = world.seen.at(-1) ?? {};
  const at = rawHeaders.findIndex((each) => each.toLowerCase() === name);
  return rawHeaders[at + 1];
};

/** Two clients of Java's own, as programs of one file. */
const JAVA: readonly (readonly [string, string])[] = [
  [
    'HttpsURLConnection',
    `var connection = (java.net.HttpURLConnection) new java.net.URI(args[0]).toURL().openConnection();
     connection.setDoOutput(true);
     connection.setRequestProperty("Authorization", "Bearer " + System.getenv("API_KEY"));
     connection.getOutputStream().write("{\\"a\\":1}".getBytes());
     System.out.println(new String(connection.getInputStream().readAllBytes()));`,
  ],
  [
    'HttpClient',
    `var request = java.net.http.HttpRequest.newBuilder(new java.net.URI(args[0]))
         .header("Authorization", "Bearer " + System.getenv("API_KEY"))
         .POST(java.net.http.HttpRequest.BodyPublishers.ofString("{\\"a\\":1}")).build();
     System.out.println(java.net.http.HttpClient.newHttpClient()
         .send(request, java.net.http.HttpResponse.BodyHandlers.ofString()).body());`,
  ],
];

const URL_ = `https://${HOST}/v1?x=1`;
const node = process.execPath;
const requests: readonly (readonly [string, boolean, () => ReturnType<typeof run>])[] = [
  [
    "Node's fetch",
    true,
    () =>
      run(node, [
        '-e',
        `fetch('${URL_}', { method: 'POST', body: '{"a":1}', headers: { authorization: 'Bearer ' + process.env.API_KEY } }).then((r) => r.text()).then(console.log)`,
      ]),
  ],
  [
    "Node's https.request",
    true,
    () =>
      run(node, [
        '-e',
        `require('https').request('${URL_}', { method: 'POST', headers: { authorization: 'Bearer ' + process.env.API_KEY } }, (r) => r.pipe(process.stdout)).end('{"a":1}')`,
      ]),
  ],
  [
    'undici with its EnvHttpProxyAgent',
    true,
    () =>
      run(node, [
        '--input-type=module',
        '-e',
        `import { createRequire } from 'node:module'; const { request, EnvHttpProxyAgent } = createRequire('${process.cwd()}/x.js')('undici');
         const r = await request('${URL_}', { dispatcher: new EnvHttpProxyAgent(), method: 'POST', body: '{"a":1}', headers: { authorization: 'Bearer ' + process.env.API_KEY } }); console.log(await r.body.text())`,
      ]),
  ],
  [
    'curl',
    has('curl', '--version'),
    () => run('sh', ['-c', `curl -sS -d '{"a":1}' -H "Authorization: Bearer $API_KEY" '${URL_}'`]),
  ],
  [
    "Python's urllib",
    has('python3', '--version'),
    () =>
      run('python3', [
        '-c',
        `import os,urllib.request as u;print(u.urlopen(u.Request('${URL_}',data=b'{"a":1}',headers={'Authorization':'Bearer '+os.environ['API_KEY']})).read().decode())`,
      ]),
  ],
  [
    "Python's requests",
    has('python3', '-c', 'import requests'),
    () =>
      run('python3', [
        '-c',
        `import os,requests;print(requests.post('${URL_}',data='{"a":1}',headers={'Authorization':'Bearer '+os.environ['API_KEY']}).text)`,
      ]),
  ],
  [
    "Python's httpx",
    has('python3', '-c', 'import httpx'),
    () =>
      run('python3', [
        '-c',
        `import os,httpx;print(httpx.post('${URL_}',content='{"a":1}',headers={'Authorization':'Bearer '+os.environ['API_KEY']}).text)`,
      ]),
  ],
  ...JAVA.map(([client, program]): (typeof requests)[number] => [
    `Java's ${client}`,
    has('javac', '-version'),
    async () => {
      const source = join(folder, `${client}Of.java`);
      await writeFile(
        source,
        `class ${client}Of { public static void main(String[] args) throws Exception { ${program} } }`,
      );
      return run('java', [source, URL_]);
    },
  ]),
  [
    "Go's net/http",
    has('go', 'version'),
    async () => {
      const source = join(folder, 'main.go');
      await writeFile(
        source,
        `package main
import ("fmt"; "io"; "net/http"; "os"; "strings")
func main() {
	request, _ := http.NewRequest("POST", "${URL_}", strings.NewReader("{\\"a\\":1}"))
	request.Header.Set("Authorization", "Bearer "+os.Getenv("API_KEY"))
	response, err := http.DefaultClient.Do(request)
	if err != nil { fmt.Println(err); os.Exit(1) }
	io.Copy(os.Stdout, response.Body)
}
`,
      );
      // With the environment of whoever runs the tests: its caches are there.
      execFileSync('go', ['build', '-o', join(folder, 'client'), source], { cwd: folder, stdio: 'inherit' });
      return run(join(folder, 'client'), []);
    },
  ],
];

describe('[C02] clients, unchanged', () => {
  for (const [name, installed, request] of requests) {
    test.skipIf(!installed)(
      name,
      async () => {
        const { out, code } = await request();
        expect(code, out).toBe(0);
        expect(world.seen, out).toHaveLength(1);
        expect(world.seen[0]).toMatchObject({ method: 'POST', url: '/v1?x=1', body: '{"a":1}' });
        expect(reached('authorization')).toBe(`Bearer ${SECRET}`);
        expect(out).toContain('"url":"/v1?x=1"');
        expect(canariesIn(out, SECRET)).toEqual([]);
      },
      60_000,
    );
  }

  test.skipIf(!has('curl', '--version'))(
    'curl -u: Basic credentials, and a large body for which it would send Expect',
    async () => {
      const file = join(folder, 'large');
      await writeFile(file, Buffer.alloc(3_000_000, 'l'));
      const { out, code } = await run('sh', [
        '-c',
        `curl -sS -o /dev/null -w '%{http_code}' -u "user:$API_KEY" --data-binary @${file} https://${HOST}/large`,
      ]);
      expect([code, out]).toEqual([0, '200']);
      expect(reached('authorization')).toBe(`Basic ${Buffer.from(`user:${SECRET}`).toString('base64')}`);
      expect(world.seen.at(-1)?.body).toHaveLength(3_000_000);
    },
  );

  test.skipIf(!has('curl', '--version'))(
    'curl over one connection, --compressed, and following a redirect to another host',
    async () => {
      world.script = (request, response) => {
        if (request.url === '/away') response.writeHead(302, { location: 'https://other.example.test/' }).end();
        else response.end('here');
      };
      const { out } = await run('sh', [
        '-c',
        `curl -sS -w '%{num_connects} ' --compressed -H "Authorization: Bearer $API_KEY" https://${HOST}/1 https://${HOST}/2`,
      ]);
      expect(out).toBe('here1 here0 ');
      // [case 76] Whatever a client does with its header then: the other host gets the placeholder at most.
      await run('sh', [
        '-c',
        `curl -sS -kL --location-trusted -H "Authorization: Bearer $API_KEY" https://${HOST}/away`,
      ]);
      const away = world.seen.find(({ host }) => host === 'other.example.test');
      expect(away).toBeDefined();
      expect(canariesIn(JSON.stringify(away), SECRET)).toEqual([]);
    },
  );

  test('an AWS request, signed with the placeholder, is refused with the reason', async () => {
    const { out } = await run('sh', [
      '-c',
      `curl -sS --aws-sigv4 aws:amz:eu-central-1:s3 -u "AKIAEXAMPLE:$API_KEY" https://${HOST}/bucket`,
    ]);
    expect(codeOf(out)).toBe('signed-request');
    expect(out).toContain('AWS Signature 4');
    expect(world.seen).toEqual([]);
  });
});

describe.skipIf(!has('git', '--version'))('[C02] git over https', () => {
  /** git http-backend as CGI, behind Basic credentials. */
  const backend = (root: string) => (request: IncomingMessage, response: ServerResponse, body: Buffer) => {
    if (request.headers.authorization !== `Basic ${Buffer.from(`x-access-token:${SECRET}`).toString('base64')}`) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
      return;
    }
    const url = new URL(request.url ?? '/', 'https://x');
    const child = execFile(
      'git',
      ['http-backend'],
      {
        encoding: 'buffer',
        maxBuffer: 64 * 1024 * 1024,
        env: {
          PATH: process.env['PATH'] ?? '',
          GIT_PROJECT_ROOT: root,
          GIT_HTTP_EXPORT_ALL: '1',
          REMOTE_USER: 'tool',
          REQUEST_METHOD: request.method ?? '',
          PATH_INFO: decodeURIComponent(url.pathname),
          QUERY_STRING: url.search.slice(1),
          CONTENT_TYPE: request.headers['content-type'] ?? '',
          CONTENT_LENGTH: String(body.length),
          HTTP_CONTENT_ENCODING: String(request.headers['content-encoding'] ?? ''),
          GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
        },
      },
      (_error, stdout) => {
        const end = stdout.indexOf('\r\n\r\n');
        const headers = stdout
          .subarray(0, end)
          .toString()
          .split('\r\n')
          .map((line) => line.split(': ') as [string, string]);
        const status = Number(headers.find(([name]) => name === 'Status')?.[1].slice(0, 3) ?? 200);
        response.writeHead(status, headers.filter(([name]) => name !== 'Status').flat()).end(stdout.subarray(end + 4));
      },
    );
    // git may have ended before it read all of it.
    child.stdin?.on('error', () => {}).end(body);
  };

  test('clone, then push more than fits in one buffer', async () => {
    const root = join(folder, 'repos');
    await mkdir(root);
    const git = (...args: string[]): string =>
      execFileSync(
        'git',
        ['-c', 'user.name=t', '-c', 'user.email=t@example.test', '-c', 'init.defaultBranch=main', ...args],
        { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
      );
    const bare = join(root, 'repo.git');
    git('init', '--bare', bare);
    git('-C', bare, 'config', 'http.receivepack', 'true');
    const seed = join(folder, 'seed');
    git('clone', bare, seed);
    await writeFile(join(seed, 'file'), 'first');
    git('-C', seed, 'add', '.');
    git('-C', seed, 'commit', '-m', 'first');
    git('-C', seed, 'push', 'origin', 'HEAD:main');
    world.script = backend(root);

    const work = join(folder, 'work');
    const identity = {
      GIT_TERMINAL_PROMPT: '0',
      GIT_AUTHOR_NAME: 't',
      GIT_AUTHOR_EMAIL: 't@example.test',
      GIT_COMMITTER_NAME: 't',
      GIT_COMMITTER_EMAIL: 't@example.test',
    };
    const cloned = await run(
      'sh',
      ['-c', `git clone "https://x-access-token:$API_KEY@${HOST}/repo.git" ${work}`],
      identity,
    );
    expect(cloned.code, cloned.out).toBe(0);
    expect(await readFile(join(work, 'file'), 'utf8')).toBe('first');
    // Noise does not compress: over git's postBuffer, so it is sent in chunks.
    const { randomBytes } = await import('node:crypto');
    await writeFile(join(work, 'large'), randomBytes(3_000_000));
    const pushed = await run(
      'sh',
      ['-c', `cd ${work} && git add . && git commit -qm second && git push origin HEAD:main`],
      identity,
    );
    expect(pushed.code, pushed.out).toBe(0);
    expect(git('-C', bare, 'log', '--format=%s', 'main').trim().split('\n')).toEqual(['second', 'first']);
    expect(canariesIn(cloned.out + pushed.out + (await readFile(join(work, '.git/config'), 'utf8')), SECRET)).toEqual(
      [],
    );
  }, 60_000);
});
