import { http, type HttpTransport, type HttpTransportConfig } from 'viem'

export type TransportConfig = HttpTransportConfig & {
  /** An API key with the scope rpc, if the service requires one. */
  apiKey?: string | undefined
}

// eth_sendRawTransactionSync waits for up to a minute: viem's default timeout of ten
// seconds would abort it.
const patienceMs = 65_000

/**
 * A viem transport to Watchtower's JSON-RPC. The URL is a chain's, such as
 * `http://127.0.0.1:8420/rpc/42431`, or the service's, such as `http://127.0.0.1:8420`.
 * In the second case the client's chain is added to it.
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
