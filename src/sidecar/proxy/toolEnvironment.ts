/** How a tool's process learns of its proxy, whom to trust, and its secrets: environment variables and files. */

/** Where the tool's container sees what the sidecar writes; read-only there. */
export const CA_BUNDLE_PATH = '/oz0/run/ca-bundle.crt';
export const CA_PATH = '/oz0/run/ca.crt';

/**
 * Clients read these (measured in the integration tests: Node's fetch, undici, Python's urllib, requests and httpx, curl, git
 * and Go). What ignores all of them reaches nothing: the pod has one door.
 * @param origin such as `http://127.0.0.1:15001`
 */
export function proxyEnvironment(origin: string, bundlePath: string, caPath: string): Readonly<Record<string, string>> {
  const { hostname, port } = new URL(origin);
  const noProxy = 'localhost,127.0.0.1,::1';
  return {
    HTTP_PROXY: origin,
    HTTPS_PROXY: origin,
    NO_PROXY: noProxy,
    http_proxy: origin,
    https_proxy: origin,
    no_proxy: noProxy,
    NODE_USE_ENV_PROXY: '1',
    // Adds to what Node knows; the others replace, so they get the whole bundle.
    NODE_EXTRA_CA_CERTS: caPath,
    SSL_CERT_FILE: bundlePath,
    REQUESTS_CA_BUNDLE: bundlePath,
    CURL_CA_BUNDLE: bundlePath,
    GIT_SSL_CAINFO: bundlePath,
    PIP_CERT: bundlePath,
    AWS_CA_BUNDLE: bundlePath,
    // Java reads no PEM bundle from a property: to bound hosts it needs a trust store of the image's own.
    JAVA_TOOL_OPTIONS: [
      `-Dhttp.proxyHost=${hostname}`,
      `-Dhttp.proxyPort=${port}`,
      `-Dhttps.proxyHost=${hostname}`,
      `-Dhttps.proxyPort=${port}`,
      '-Dhttp.nonProxyHosts=localhost|127.*|[::1]',
    ].join(' '),
  };
}
