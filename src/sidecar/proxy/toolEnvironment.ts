/** How a tool's process learns of its proxy, whom to trust, and its secrets: environment variables and files. */

/** Where the tool's container sees what the sidecar writes; read-only there. */
export const CA_BUNDLE_PATH = '/oz0/run/ca-bundle.crt';
export const CA_PATH = '/oz0/run/ca.crt';
/** The bundle, as Java reads it. */
export const TRUST_STORE_PATH = '/oz0/run/ca-bundle.p12';

/**
 * Clients read these (measured in the integration tests: Node's fetch, undici, Python's urllib, requests and httpx, curl, git
 * Go and Java). What ignores all of them reaches nothing: the pod has one door.
 * @param origin such as `http://127.0.0.1:15001`
 */
export function proxyEnvironment(
  origin: string,
  paths: { readonly bundle: string; readonly ca: string; readonly store: string },
): Readonly<Record<string, string>> {
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
    NODE_EXTRA_CA_CERTS: paths.ca,
    SSL_CERT_FILE: paths.bundle,
    REQUESTS_CA_BUNDLE: paths.bundle,
    CURL_CA_BUNDLE: paths.bundle,
    GIT_SSL_CAINFO: paths.bundle,
    PIP_CERT: paths.bundle,
    AWS_CA_BUNDLE: paths.bundle,
    // No password: there is nothing to keep from anybody in it.
    JAVA_TOOL_OPTIONS: [
      `-Dhttp.proxyHost=${hostname}`,
      `-Dhttp.proxyPort=${port}`,
      `-Dhttps.proxyHost=${hostname}`,
      `-Dhttps.proxyPort=${port}`,
      `-Djavax.net.ssl.trustStore=${paths.store}`,
      '-Djavax.net.ssl.trustStoreType=PKCS12',
      '-Dhttp.nonProxyHosts=localhost|127.*|[::1]',
    ].join(' '),
  };
}
