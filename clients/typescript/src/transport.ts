import { http, type HttpTransport, type HttpTransportConfig } from 'viem'

export type TransportConfig = HttpTransportConfig & {
  /** An API key with the scope rpc, where the service asks for keys. */
  apiKey?: string | undefined
}

// eth_sendRawTransactionSync waits for a minute at most: viem's own ten seconds would
// cut it.
const patienceMs = 65_000

/**
 * A viem transport to a Watchtower's JSON-RPC. The URL is that of a chain,
 * `http://127.0.0.1:8420/rpc/42431`, or the service's own, `http://127.0.0.1:8420`:
 * then the client's chain is added to it.
 */
export function watchtower(url: string, { apiKey, ...config }: TransportConfig = {}): HttpTransport {
  const headers = new Headers(config.fetchOptions?.headers)
  if (apiKey) headers.set('X-API-Key', apiKey)
  const fetchOptions = { ...config.fetchOptions, headers: Object.fromEntries(headers.entries()) }
  return (parameters) =>
    http(rpcUrl(url, parameters.chain?.id), { timeout: patienceMs, ...config, fetchOptions })(parameters)
}

function rpcUrl(url: string, chainId: number | undefined): string {
  const trimmed = url.replace(/\/+$/, '')
  if (new URL(trimmed).pathname !== '/') return trimmed
  return chainId === undefined ? `${trimmed}/rpc` : `${trimmed}/rpc/${chainId}`
}
