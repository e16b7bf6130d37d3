import { type ClientOptions, Connection, milliseconds, type RequestOptions } from './connection.js'
import type { Call, Contract, Diagnosis, Event, Gas, Intent, Lane, Lanes, Message, operations, Page, ProblemKind, Request, Results, Signer, Signers, StreamedEvent, Trail, Waited } from './contract/relay.js'
import { follow } from './following.js'
import { sendItems } from './items.js'
import { stringify } from './json.js'
import { callOne, rpcPath } from './rpc.js'
import { waitFor } from './waiting.js'
import { Webhooks } from './webhooks.js'

export type { ClientOptions, RequestOptions } from './connection.js'
export type { Attempt as IntentAttempt, Diagnosis, Intent, Lane, Outcome as IntentOutcome, Signer, Signers, Status as IntentStatus, Tried as TriedWebhook, WaitingFor, Webhook } from './contract/relay.js'
export { NoAnswerError, type Problem, type RequestOutcome, WatchtowerError } from './errors.js'
export { RpcCallError } from './rpc.js'
export { type DeadNotice, type NoticeId, Webhooks } from './webhooks.js'

/** A status of an intent that a request can wait for. */
export type IntentMilestone = Waited['for']

/** Wei, or the smallest unit of a token: a bigint, or decimal digits. */
export type Amount = bigint | string

/** One call of an intent. */
export type IntentCall = Omit<Call, 'value'> & { value?: Amount }

/** What an intent may cost. */
export type IntentGas = Omit<Gas, 'maxFeePerGas' | 'maxPriorityFeePerGas'> & { maxFeePerGas?: Amount; maxPriorityFeePerGas?: Amount }

/**
 * An intent: calls to carry out, for a `signer` or a `pool`. `key` identifies it for the life of
 * the service: draw it from the business object, such as `payout:17`, not for each try.
 */
export type IntentRequest = Omit<Request, 'chainId' | 'key' | 'value' | 'calls' | 'gas'> & {
  key: string
  /** The number of an EVM chain, or a CAIP-2 text such as `near:mainnet`. */
  chainId: number | bigint | string
  value?: Amount
  calls?: readonly IntentCall[]
  gas?: IntentGas
}

/** The result for one intent of a list. */
export type IntentResult = Results['results'][number]

/** An event of an intent. */
export type IntentEvent = Event

/** The body of a webhook: an event with the request and the intent's state after it. */
export type IntentMessage = Message

/** An event of the stream, with its place in the log. */
export type FollowedIntentEvent = StreamedEvent

export type CreateOptions = RequestOptions & {
  /** Answer when the intent has reached this status or can no longer reach it, or the timeout is over. */
  wait?: IntentMilestone | undefined
  /** How long to wait, in milliseconds; at most 55 seconds. */
  timeout?: number | undefined
}

export type WaitForIntentOptions = RequestOptions & {
  /** The status to wait for; the default is completed. */
  for?: IntentMilestone | undefined
  /** How long to wait, in milliseconds; without a limit by default. */
  timeout?: number | undefined
}

type ListQuery = NonNullable<operations['listIntents']['parameters']['query']>

export type IntentFilters = { [K in Exclude<keyof ListQuery, 'cursor' | 'chainId' | 'status'>]?: ListQuery[K] | undefined } & {
  chainId?: number | bigint | string | undefined
  /** Intents with any of these statuses match. */
  status?: Intent['status'] | readonly Intent['status'][] | undefined
}

export type FollowIntentsOptions = RequestOptions & {
  /** Only this intent's events. */
  intent?: string | undefined
  /** Only this client's intents. */
  client?: string | undefined
  /** The position to begin after, 0 for the whole log; the default is the end of the log. */
  after?: number | undefined
  /** The position to end at, or the present end of the log. Without it the stream never ends. */
  until?: number | 'head' | undefined
}

/** A lane: a signer's nonces on a chain, under a nonce key (`0x0` by default). */
export type LaneId = { chainId: number | bigint | string; signer: string; nonceKey?: string | undefined }

export type LaneFilters = {
  chainId?: number | bigint | string | undefined
  signer?: string | undefined
  /** The process that opened the lane last. */
  holder?: string | undefined
  /** Whether a nonce is in flight. */
  busy?: boolean | undefined
}

/**
 * A relay's REST API, which signs and delivers intents. Every request may be repeated, and is,
 * after a lost answer or a temporary failure: an intent's `key` makes it one intent. Integers
 * beyond 2^53 are bigint; amounts are decimal strings.
 */
export class Relay {
  /** The client's webhooks. */
  readonly webhooks: Webhooks
  readonly #connection: Connection

  constructor(url: string, options: ClientOptions = {}) {
    this.#connection = new Connection(url, options)
    this.webhooks = new Webhooks(this.#connection)
  }

  /**
   * Creates an intent, or finds the intent that this request created before (`alreadyKnown`).
   * The intent is durable. Another request under the same key is refused.
   */
  async create(request: IntentRequest, options: CreateOptions = {}): Promise<Intent> {
    return this.#create(request, options)
  }

  /**
   * Creates intents. Results are in the order of the requests, and a refused intent does not
   * affect the others. Intents with a temporary problem are requested again.
   */
  createAll(requests: readonly IntentRequest[], options: CreateOptions = {}): Promise<IntentResult[]> {
    const send = async (some: readonly IntentRequest[]) => (await this.#create<Results>(some, options)).results
    return sendItems(requests, send, { tries: this.#connection.tries, signal: options.signal })
  }

  #create<T>(body: unknown, { wait, timeout, signal }: CreateOptions): Promise<T> {
    const query = { wait, timeout: milliseconds(timeout) }
    return this.#connection.json({ method: 'POST', path: '/v1/intents', query, body: stringify(body), waitMs: wait && (timeout ?? 20_000), signal })
  }

  /** The present state of one intent. */
  get(id: string, { signal }: RequestOptions = {}): Promise<Intent> {
    return this.#connection.json({ path: pathOf(id), signal })
  }

  /** The intent of a key that was requested for a signer or a pool, or undefined. It is found as soon as it was accepted. */
  async find(key: string, of: { chainId: number | bigint | string } & ({ signer: `0x${string}` } | { pool: string }), { signal }: RequestOptions = {}): Promise<Intent | undefined> {
    const page = await this.#connection.json<Page>({ path: '/v1/intents', query: { ...of, key }, signal })
    return page.intents[0]
  }

  /**
   * Waits until an intent has reached a status, can no longer reach it, or the timeout is over:
   * see `waited.reached`. Temporary failures, such as a restart of the relay or a cut connection,
   * are waited out.
   */
  wait(id: string, options: WaitForIntentOptions = {}): Promise<Intent> {
    return waitFor(this.#connection, pathOf(id), { wait: options.for ?? 'completed' }, options)
  }

  /** One page of intents, newest first. */
  page(filters: IntentFilters = {}, cursor?: string, { signal }: RequestOptions = {}): Promise<Page> {
    return this.#connection.json({ path: '/v1/intents', query: { ...filters, cursor }, signal })
  }

  /** All intents, newest first; pages are fetched as they are needed. */
  async *list(filters: IntentFilters = {}, options: RequestOptions = {}): AsyncGenerator<Intent, void, undefined> {
    let cursor: string | undefined
    do {
      const page = await this.page(filters, cursor, options)
      yield* page.intents
      cursor = page.hasMore ? page.nextCursor : undefined
    } while (cursor !== undefined)
  }

  /** All events of an intent, by rising sequence; pages are fetched as they are needed. */
  async *events(id: string, { after = 0, signal }: RequestOptions & { after?: number | undefined } = {}): AsyncGenerator<IntentEvent, void, undefined> {
    for (let more = true; more; ) {
      const page = await this.#connection.json<Trail>({ path: `${pathOf(id)}/events`, query: { after }, signal })
      yield* page.events
      after = page.events.at(-1)?.sequence ?? after
      more = page.hasMore && page.events.length > 0
    }
  }

  /**
   * Yields the events of the client's intents as they are recorded. If the stream breaks off, or
   * is silent for a minute, it is resumed where it was, without missing or repeating events. It
   * ends when the signal is aborted, or at `until`.
   */
  follow({ signal, ...filters }: FollowIntentsOptions = {}): AsyncGenerator<FollowedIntentEvent, void, undefined> {
    return follow(this.#connection, filters, (line): line is FollowedIntentEvent => 'sequence' in line, signal)
  }

  /** The signers and pools that the key may use, with counts of the client's own intents. */
  signers({ chainId, signal }: RequestOptions & { chainId?: number | bigint | string | undefined } = {}): Promise<Signers> {
    return this.#connection.json({ path: '/v1/signers', query: { chainId }, signal })
  }

  /** One signer. */
  signer(address: string, { signal }: RequestOptions = {}): Promise<Signer> {
    return this.#connection.json({ path: `/v1/signers/${encodeURIComponent(address)}`, signal })
  }

  /** All lanes, newest first; pages are fetched as they are needed. Needs the scope audit. */
  async *lanes(filters: LaneFilters = {}, { signal }: RequestOptions = {}): AsyncGenerator<Lane, void, undefined> {
    let cursor: string | undefined
    do {
      const page: Lanes = await this.#connection.json<Lanes>({ path: '/v1/lanes', query: { ...filters, cursor }, signal })
      yield* page.lanes
      cursor = page.hasMore ? page.nextCursor : undefined
    } while (cursor !== undefined)
  }

  /** One lane, compared with the chain. Needs the scope audit. */
  lane(id: LaneId, { signal }: RequestOptions = {}): Promise<Lane> {
    return this.#connection.json({ path: pathOfLane(id), signal })
  }

  /** The diagnosis of a lane, as `relayer doctor` prints it. Needs the scope audit. */
  diagnosis(id: LaneId, { signal }: RequestOptions = {}): Promise<Diagnosis> {
    return this.#connection.json({ path: `${pathOfLane(id)}/diagnosis`, signal })
  }

  /** Cancels an intent. Once it is signed, a no-op competes for its nonce: `outcome` shows which of the two has landed. */
  cancel(id: string, { reason, signal }: RequestOptions & { reason?: string | undefined } = {}): Promise<Intent> {
    return this.#connection.json({ method: 'POST', path: `${pathOf(id)}/cancel`, body: stringify({ reason }), signal })
  }

  /** Raises the fee of an intent's next attempts: at least a tenth above the fee of the previous speed-up. */
  speedUp(id: string, feePerGas: Amount, { signal }: RequestOptions = {}): Promise<Intent> {
    return this.#connection.json({ method: 'POST', path: `${pathOf(id)}/speed-up`, body: stringify({ feePerGas }), signal })
  }

  /** The contract, as an OpenAPI document. */
  contract({ signal }: RequestOptions = {}): Promise<Contract> {
    return this.#connection.json({ path: '/openapi.json', signal })
  }

  /**
   * Calls JSON-RPC as a wallet does on its node: `eth_sendTransaction` becomes an intent, and a call that is
   * repeated after a lost answer is one intent. Without `chainId`, of the only chain; `pool` chooses among a
   * pool's signers. Rejects with an `RpcCallError` if the answer is an error.
   */
  async rpc<T = unknown>(method: string, params: readonly unknown[] = [], { chainId, pool, signal }: RequestOptions & { chainId?: number | bigint | string | undefined; pool?: string | undefined } = {}): Promise<T> {
    return callOne(this.#connection, rpcPath(chainId) + (pool === undefined ? '' : '/' + encodeURIComponent(pool)), method, params, { signal })
  }

  /** The contract as a web page. */
  docs({ signal }: RequestOptions = {}): Promise<string> {
    return this.#connection.text({ path: '/docs', headers: { Accept: 'text/html' }, signal })
  }

  /** Explains a code of a problem. */
  problem(code: string, { signal }: RequestOptions = {}): Promise<ProblemKind> {
    return this.#connection.json({ path: `/problems/${encodeURIComponent(code)}`, signal })
  }

  /** The contract as YAML, with its comments and examples. */
  contractText({ signal }: RequestOptions = {}): Promise<string> {
    return this.#connection.text({ path: '/openapi.yaml', headers: { Accept: '*/*' }, signal })
  }
}

const pathOfLane = ({ chainId, signer, nonceKey = '0x0' }: LaneId): string => `/v1/lanes/${[String(chainId), signer, nonceKey].map(encodeURIComponent).join('/')}`

function pathOf(id: string): string {
  return `/v1/intents/${encodeURIComponent(id)}`
}
