import type { CancelProof } from './cancel.js'
import { type ClientOptions, Connection, milliseconds, nextCursor, type RequestOptions } from './connection.js'
import type {
  Address, CanceledGroup, Contract, Event, FollowedEvent, Group, GroupId, Hash, Health, ListedGroup, operations, Page, Probe, ProblemKind, Refused, Results, RpcAnswer, RpcCall, Taken, Trail, Transaction, Validated, Waited,
} from './contract/delivery.js'
import { follow } from './following.js'
import { sendItems } from './items.js'
import { stringify } from './json.js'
import { callAll, callOne, rpcPath } from './rpc.js'
import { waitFor } from './waiting.js'

/** A stage of a transaction that a request can wait for. */
export type Milestone = Waited['for']

/** A chain: the number of an EVM chain, or a CAIP-2 text such as `near:mainnet`. */
export type ChainId = number | bigint | string

type OnChain = RequestOptions & { chainId?: ChainId | undefined }

// The query of an operation, with members that may be undefined.
type QueryOf<Name extends keyof operations> = { [K in keyof NonNullable<operations[Name]['parameters']['query']>]?: NonNullable<operations[Name]['parameters']['query']>[K] | undefined }

/** Options of requests that are recorded under a key: the same request with the same key gets the first answer again. */
type KeyedOptions = RequestOptions & { idempotencyKey?: string | undefined }

export type SubmitOptions = KeyedOptions & {
  /** Answer when every transaction has reached this stage, or the timeout is over. */
  wait?: Milestone | undefined
  /** How long to wait, in milliseconds; at most 55 seconds. */
  timeout?: number | undefined
}

export type WaitOptions = OnChain & {
  /** The stage to wait for; the default is executed. */
  for?: Milestone | undefined
  /** How long to wait, in milliseconds; without a limit by default. */
  timeout?: number | undefined
}

export type ListFilters = Omit<QueryOf<'listTransactions'>, 'cursor' | 'status' | 'chainId'> & {
  chainId?: ChainId | undefined
  status?: Transaction['status'] | readonly Transaction['status'][] | undefined
}

export type GroupFilters = Omit<QueryOf<'listGroups'>, 'cursor' | 'chainId'> & { chainId?: ChainId | undefined }

export type FollowOptions = RequestOptions &
  Omit<QueryOf<'followEvents'>, 'name' | 'chainId' | 'after' | 'until'> & {
    /** The position to begin after, 0 for the whole log; the default is the end of the log. */
    after?: number | undefined
    /** The position to end at, or the present end of the log. Without it the stream never ends. */
    until?: number | 'head' | undefined
    chainId?: ChainId | undefined
    /** Prefix of the events' names, such as tx.mined. */
    name?: string | readonly string[] | undefined
  }

/**
 * A Watchtower's REST API, which delivers signed transactions. Every request may be repeated, and
 * is, after a lost answer or a temporary failure. Integers beyond 2^53 are bigint.
 */
export class Client {
  readonly #connection: Connection

  constructor(url: string, options: ClientOptions = {}) {
    this.#connection = new Connection(url, options)
  }

  /**
   * Submits signed transactions. Results are in the order of the transactions, and a
   * faulty transaction does not affect the others. A result with `ok` is durable, and
   * submitting it again finds it.
   */
  async submit(chainId: ChainId, transactions: readonly `0x${string}`[], options: SubmitOptions = {}): Promise<(Taken | Refused)[]> {
    const { wait, timeout, idempotencyKey, signal } = options
    const send = async (some: readonly `0x${string}`[]) => {
      const { results } = await this.#connection.json<Results>({
        method: 'POST',
        path: '/v1/transactions',
        query: { wait, timeout: milliseconds(timeout) },
        headers: { 'Idempotency-Key': idempotencyKey },
        body: stringify({ chainId, transactions: some }),
        waitMs: wait && (timeout ?? 20_000),
        signal,
      })
      return results as (Taken | Refused)[]
    }
    // Under a key only the same request may be repeated.
    if (idempotencyKey !== undefined) return send(transactions)
    return sendItems(transactions, send, { tries: this.#connection.tries, signal })
  }

  /** Answers like submit, and records nothing. */
  async validate(chainId: ChainId, transactions: readonly `0x${string}`[], options: RequestOptions = {}): Promise<(Validated | Refused)[]> {
    const body = stringify({ chainId, transactions })
    const { results } = await this.#connection.json<Results>({ method: 'POST', path: '/v1/transactions', query: { validate: 'only' }, body, ...options })
    return results as (Validated | Refused)[]
  }

  /** The present state of one transaction. */
  get(hash: Hash, { chainId, signal }: OnChain = {}): Promise<Transaction> {
    return this.#connection.json({ path: pathOf(hash), query: { chainId }, signal })
  }

  /**
   * Waits until a transaction has reached a stage, can no longer reach it, or the timeout
   * is over: see `waited.reached`. Temporary failures, such as a restart of the service or a cut
   * connection, are waited out.
   */
  wait(hash: Hash, options: WaitOptions = {}): Promise<Transaction> {
    return waitFor(this.#connection, pathOf(hash), { chainId: options.chainId, wait: options.for ?? 'executed' }, options)
  }

  /** One page of transactions, newest first. */
  page(filters: ListFilters = {}, cursor?: string, { signal }: RequestOptions = {}): Promise<Page> {
    return this.#connection.json({ path: '/v1/transactions', query: { ...filters, cursor }, signal })
  }

  /** All transactions, newest first; pages are fetched as they are needed. */
  async *list(filters: ListFilters = {}, options: RequestOptions = {}): AsyncGenerator<Transaction, void, undefined> {
    let cursor: string | undefined
    do {
      const page = await this.page(filters, cursor, options)
      yield* page.transactions
      cursor = page.hasMore ? page.nextCursor : undefined
    } while (cursor !== undefined)
  }

  /** All events of a transaction, in order; pages are fetched as they are needed. */
  async *events(hash: Hash, { chainId, signal }: OnChain = {}): AsyncGenerator<Event, void, undefined> {
    let after = 0
    for (let more = true; more; ) {
      const page = await this.#connection.json<Trail>({ path: `${pathOf(hash)}/events`, query: { chainId, after }, signal })
      yield* page.events
      after = page.events.at(-1)?.version ?? after
      more = page.hasMore && page.events.length > 0
    }
  }

  /**
   * Records that a transaction's nonce is used up on chain, for an owner who has used it for
   * something else. The service asks the chain, and refuses if the nonce is still free.
   */
  markStale(hash: Hash, { chainId, signal }: OnChain = {}): Promise<Transaction> {
    return this.#connection.json({ method: 'DELETE', path: pathOf(hash), query: { chainId }, signal })
  }

  /**
   * Yields events as they are recorded. If the stream breaks off, or is silent for a
   * minute, it is resumed where it was, without missing or repeating events. It ends when
   * the signal is aborted, or at `until`.
   */
  follow({ signal, name, ...filters }: FollowOptions = {}): AsyncGenerator<FollowedEvent, void, undefined> {
    const query = { ...filters, name: typeof name === 'string' ? name : name?.join(',') }
    return follow(this.#connection, query, (line): line is FollowedEvent => 'stream' in line, signal)
  }

  /** A sender's groups, newest first; pages are fetched as they are needed. */
  async *groups(sender: Address, filters: GroupFilters = {}, { signal }: RequestOptions = {}): AsyncGenerator<ListedGroup, void, undefined> {
    let cursor: string | undefined
    do {
      const request = { path: `/v1/senders/${encodeURIComponent(sender)}/groups`, query: { ...filters, cursor }, signal }
      const { headers, body } = await this.#connection.answer(request, (text) => JSON.parse(text) as ListedGroup[])
      yield* body
      cursor = nextCursor(headers)
    } while (cursor !== undefined)
  }

  /** A group with all its members and its cancel plan. This needs `chainId` if the group is on several chains. */
  async group(sender: Address, groupId: GroupId, { chainId, signal }: OnChain = {}): Promise<Group> {
    const members: Group['members'] = []
    for (let cursor: string | undefined; ; ) {
      const query = { chainId, limit: 1000, cursor }
      const { nextCursor, ...page } = await this.#connection.json<Group>({ path: groupPath(sender, groupId), query, signal })
      members.push(...page.members)
      if (nextCursor === undefined) return { ...page, members }
      cursor = nextCursor
    }
  }

  /**
   * Cancels a group: its members that have not ended are not sent any more, and their
   * bytes are erased. This needs the owner's signature, and `chainId` if the group is on
   * several chains.
   */
  cancelGroup(sender: Address, groupId: GroupId, proof: CancelProof, options: KeyedOptions & OnChain = {}): Promise<CanceledGroup> {
    const { expires, signature } = proof
    const typed = expires !== undefined
    return this.#connection.json({
      method: 'POST',
      path: `${groupPath(sender, groupId)}/cancel`,
      query: { chainId: options.chainId },
      headers: { 'Idempotency-Key': options.idempotencyKey, Authorization: typed ? undefined : `Signature ${signature}` },
      ...(typed && { body: stringify({ expires: BigInt(expires), signature }) }),
      signal: options.signal,
    })
  }

  /**
   * Calls JSON-RPC as on a node of the chain; without `chainId`, of the only chain. Sending a
   * transaction again finds it. Rejects with an `RpcCallError` if the answer is an error.
   */
  async rpc<T = unknown>(method: string, params: readonly unknown[] = [], options: OnChain = {}): Promise<T> {
    return callOne(this.#connection, rpcPath(options.chainId), method, params, options)
  }

  /** Calls JSON-RPC with a batch. Answers are in the order of the calls. */
  async rpcBatch(calls: readonly Omit<RpcCall, 'jsonrpc' | 'id'>[], options: OnChain = {}): Promise<RpcAnswer[]> {
    return callAll(this.#connection, rpcPath(options.chainId), calls, options)
  }

  /** The state of the service. A degraded service is no error. */
  health({ signal }: RequestOptions = {}): Promise<Health> {
    return this.#connection.json({ path: '/health', alsoStatus: 503, tries: 1, signal })
  }

  /** Whether the process runs: `status` is ok. */
  live({ signal }: RequestOptions = {}): Promise<Probe> {
    return this.#connection.json({ path: '/livez', tries: 1, signal })
  }

  /** Whether the process is ready for requests: `status` is ok. A process that is not is no error. */
  ready({ signal }: RequestOptions = {}): Promise<Probe> {
    return this.#connection.json({ path: '/readyz', alsoStatus: 503, tries: 1, signal })
  }

  /** The contract, as an OpenAPI document. */
  contract({ signal }: RequestOptions = {}): Promise<Contract> {
    return this.#connection.json({ path: '/openapi.json', signal })
  }

  /** The contract as YAML, with its comments and examples. */
  contractText({ signal }: RequestOptions = {}): Promise<string> {
    return this.#connection.text({ path: '/openapi.yaml', headers: { Accept: '*/*' }, signal })
  }

  /** The contract as a web page. */
  docs({ signal }: RequestOptions = {}): Promise<string> {
    return this.#connection.text({ path: '/docs', headers: { Accept: 'text/html' }, signal })
  }

  /** Explains a code of a problem. */
  problem(code: string, { signal }: RequestOptions = {}): Promise<ProblemKind> {
    return this.#connection.json({ path: `/problems/${encodeURIComponent(code)}`, signal })
  }
}

function pathOf(hash: Hash): string {
  return `/v1/transactions/${encodeURIComponent(hash)}`
}

function groupPath(sender: Address, groupId: GroupId): string {
  return `/v1/senders/${encodeURIComponent(sender)}/groups/${encodeURIComponent(groupId)}`
}
