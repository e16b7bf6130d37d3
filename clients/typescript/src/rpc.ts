import type { Connection, RequestOptions } from './connection.js'
import type { RpcAnswer, RpcCall, RpcError } from './contract/delivery.js'
import { stringify } from './json.js'

/** An error that a JSON-RPC call was answered with. */
export class RpcCallError extends Error {
  override readonly name = 'RpcCallError'
  /** The error's code; see docs/reference/jsonrpc.md. */
  readonly code: number
  /** The problem that the REST API would return, the node's own data, or a hash. */
  readonly data: unknown
  constructor(error: RpcError) {
    super(`${error.code}: ${error.message}`)
    this.code = error.code
    this.data = error.data
  }
}

/** Makes calls in one request. Answers are in the order of the calls. */
export async function callAll(connection: Connection, path: string, calls: readonly Omit<RpcCall, 'jsonrpc' | 'id'>[], { signal }: RequestOptions): Promise<RpcAnswer[]> {
  const body = stringify(calls.map((call, id) => ({ jsonrpc: '2.0', id, ...call })))
  // A call may wait for a transaction for up to a minute.
  const answers = await connection.json<RpcAnswer | RpcAnswer[]>({ method: 'POST', path, body, waitMs: 60_000, signal })
  return Array.isArray(answers) ? answers : [answers] // a batch that is refused as a whole
}

/** Makes one call. Rejects with an `RpcCallError` if the answer is an error. */
export async function callOne<T>(connection: Connection, path: string, method: string, params: readonly unknown[], options: RequestOptions): Promise<T> {
  const [answer] = await callAll(connection, path, [{ method, params: [...params] }], options)
  if (answer?.error) throw new RpcCallError(answer.error)
  return answer?.result as T
}

/** The path of a chain's JSON-RPC; without a chain, of the only one. */
export const rpcPath = (chainId: number | bigint | string | undefined): string => (chainId === undefined ? '/rpc' : `/rpc/${encodeURIComponent(String(chainId))}`)
