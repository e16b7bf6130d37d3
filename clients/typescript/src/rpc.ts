import type { RpcError } from './contract/delivery.js'

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
