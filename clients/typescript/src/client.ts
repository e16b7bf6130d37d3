import type { Address, CanceledGroup, Event, FollowedEvent, GroupId, Hash, Health, Mark, Page, Problem, Refused, Results, Status, Taken, Trail, Transaction, Validated, Waited } from './api.js'
import { linesOf } from './lines.js'
import { Silence } from './silence.js'

/** A stage of a transaction that a request can wait for. */
export type Milestone = Waited['for']

export type ClientOptions = {
  /** An API key, if the service requires one. */
  apiKey?: string | undefined
  /** Sent with every request. */
  headers?: Record<string, string> | undefined
  /** Replaces the global fetch. */
  fetch?: typeof globalThis.fetch | undefined
}

/** Options of every request. */
type RequestOptions = { signal?: AbortSignal | undefined }

export type SubmitOptions = RequestOptions & {
  /** Answer when every transaction has reached this stage, or the timeout is over. */
  wait?: Milestone | undefined
  /** How long to wait, in milliseconds; at most 55 seconds. */
  timeout?: number | undefined
}

export type WaitOptions = RequestOptions & {
  chainId?: number | undefined
  /** The stage to wait for; the default is executed. */
  for?: Milestone | undefined
  /** How long to wait, in milliseconds; without a limit by default. */
  timeout?: number | undefined
}

export type ListFilters = {
  chainId?: number | undefined
  sender?: Address | undefined
  groupId?: string | undefined
  ungrouped?: boolean | undefined
  status?: Status | readonly Status[] | undefined
  /** Transactions in one page; at most 1000, the default is 100. */
  limit?: number | undefined
}

export type FollowOptions = RequestOptions & {
  /** The position to begin after, 0 for the whole log; the default is the end of the log. */
  after?: number | undefined
  /** The position to end at, or the present end of the log. Without it the stream never ends. */
  until?: number | 'head' | undefined
  chainId?: number | undefined
  sender?: Address | undefined
  groupId?: GroupId | undefined
  hash?: Hash | undefined
  /** Prefix of the events' names, such as tx.mined. */
  name?: string | readonly string[] | undefined
  /** Prefix of the streams' names, such as tx-42431-. */
  stream?: string | undefined
}

/**
 * The group owner's authorization of a cancel: a signature over the typed data of
 * `cancelMessage`, with its expiry; or a signature over keccak256 of the group's id,
 * without expiry.
 */
export type CancelProof = { signature: `0x${string}`; expires?: bigint | number | undefined }

/** An error answer. Branch on `problem.code`: it never changes. */
export class WatchtowerError extends Error {
  override readonly name = 'WatchtowerError'
  constructor(
    readonly problem: Problem,
    /** The wait that the service demands before a retry, in milliseconds; 0 for none. */
    readonly retryAfterMs: number = 0,
  ) {
    super(`${problem.code}: ${problem.detail ?? problem.title}`)
  }
}

// How long one request waits; the next one continues the wait. Proxies commonly cut a
// connection after a minute of silence.
const roundMs = 50_000
// The pause before a retry, unless the service demands a longer one.
const pauseMs = 1_000
// The silence after which an event stream counts as dead. The service writes at least
// every 15 seconds.
const silenceMs = 60_000

/** A Watchtower's REST API. Numbers beyond 2^53 lose their last digits, as JSON's do. */
export class Client {
  readonly #base: string
  readonly #options: ClientOptions

  constructor(url: string, options: ClientOptions = {}) {
    this.#base = url.replace(/\/+$/, '')
    this.#options = options
  }

  /**
   * Submits signed transactions. Results are in the order of the transactions, and a
   * faulty transaction does not affect the others. A result with `ok` is durable, and
   * submitting it again finds it.
   */
  async submit(chainId: number, transactions: readonly `0x${string}`[], options: SubmitOptions = {}): Promise<(Taken | Refused)[]> {
    const query = { wait: options.wait, timeout: milliseconds(options.timeout) }
    return (await this.#post(query, { chainId, transactions }, options)) as (Taken | Refused)[]
  }

  /** Answers like submit, and records nothing. */
  async validate(chainId: number, transactions: readonly `0x${string}`[], options: RequestOptions = {}): Promise<(Validated | Refused)[]> {
    return (await this.#post({ validate: 'only' }, { chainId, transactions }, options)) as (Validated | Refused)[]
  }

  /** The present state of one transaction. */
  get(hash: Hash, options: RequestOptions & { chainId?: number | undefined } = {}): Promise<Transaction> {
    return this.#json(`/v1/transactions/${hash}`, { chainId: options.chainId }, { signal: options.signal ?? null })
  }

  /**
   * Waits until a transaction has reached a stage, can no longer reach it, or the timeout
   * is over: see `waited.reached`. Temporary failures, such as a restart of the service,
   * are retried.
   */
  async wait(hash: Hash, options: WaitOptions = {}): Promise<Transaction> {
    const deadline = Date.now() + (options.timeout ?? Number.POSITIVE_INFINITY)
    for (;;) {
      const left = Math.max(deadline - Date.now(), 0)
      let rest = pauseMs
      try {
        const query = { chainId: options.chainId, wait: options.for ?? 'executed', timeout: milliseconds(Math.min(left, roundMs)) }
        const found = await this.#json<Transaction>(`/v1/transactions/${hash}`, query, { signal: options.signal ?? null })
        const waited = found.waited
        if (!waited || waited.reached || waited.because === 'ended' || Date.now() >= deadline) return found
        if (waited.because === 'timeout') continue
      } catch (error) {
        if (!passes(error) || options.signal?.aborted || Date.now() >= deadline) throw error
        rest = restAfter(error)
      }
      await pause(Math.min(rest, Math.max(deadline - Date.now(), 0)), options.signal)
    }
  }

  /** One page of transactions, newest first. */
  page(filters: ListFilters = {}, cursor?: string, options: RequestOptions = {}): Promise<Page> {
    return this.#json('/v1/transactions', { ...filters, cursor }, { signal: options.signal ?? null })
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
  async *events(hash: Hash, options: RequestOptions & { chainId?: number | undefined } = {}): AsyncGenerator<Event, void, undefined> {
    let after = 0
    for (let more = true; more; ) {
      const query = { chainId: options.chainId, after }
      const page = await this.#json<Trail>(`/v1/transactions/${hash}/events`, query, { signal: options.signal ?? null })
      yield* page.events
      after = page.events.at(-1)?.version ?? after
      more = page.hasMore && page.events.length > 0
    }
  }

  /**
   * Yields events as they are recorded. If the stream breaks off, or is silent for a
   * minute, it is resumed where it was, without missing or repeating events. It ends when
   * the signal is aborted, or at `until`.
   */
  async *follow({ signal, name, ...filters }: FollowOptions = {}): AsyncGenerator<FollowedEvent, void, undefined> {
    let after = filters.after
    while (!signal?.aborted) {
      let rest = pauseMs
      const silence = new Silence(silenceMs, signal)
      try {
        const query = { ...filters, after, name: typeof name === 'string' ? name : name?.join(',') }
        const response = await this.#fetch('/v1/events', query, { headers: { Accept: 'application/x-ndjson' }, signal: silence.signal })
        for await (const line of linesOf(response.body!)) {
          silence.break() // while the caller handles the event
          const said = JSON.parse(line) as FollowedEvent | Mark
          after = said.position
          if ('stream' in said) yield said
          else if (said.end) return
          silence.begin()
        }
      } catch (error) {
        if (signal?.aborted) return
        if (!silence.lasted && !passes(error)) throw error
        rest = restAfter(error)
      } finally {
        silence.close()
      }
      await pause(rest, signal).catch(() => {}) // aborted: the loop ends
    }
  }

  /**
   * Cancels a group: its members that have not ended are not sent any more, and their
   * bytes are erased. This needs the owner's signature, and `chainId` if the group is on
   * several chains.
   */
  cancelGroup(sender: Address, groupId: GroupId, proof: CancelProof, options: RequestOptions & { chainId?: number | undefined } = {}): Promise<CanceledGroup> {
    const init: RequestInit =
      proof.expires === undefined
        ? { headers: { Authorization: `Signature ${proof.signature}` } }
        : {
            headers: { 'Content-Type': 'application/json' },
            body: JSON.stringify({ expires: Number(proof.expires), signature: proof.signature }),
          }
    const path = `/v1/senders/${sender}/groups/${groupId}/cancel`
    return this.#json(path, { chainId: options.chainId }, { ...init, method: 'POST', signal: options.signal ?? null })
  }

  /** The state of the service. A degraded service is no error. */
  health(options: RequestOptions = {}): Promise<Health> {
    return this.#json('/health', {}, { signal: options.signal ?? null }, 503)
  }

  async #post(query: Query, body: object, options: RequestOptions): Promise<Results['results']> {
    const headers = { 'Content-Type': 'application/json' }
    const init = { method: 'POST', body: JSON.stringify(body), headers, signal: options.signal ?? null }
    return (await this.#json<Results>('/v1/transactions', query, init)).results
  }

  async #json<T>(path: string, query: Query, init: RequestInit, alsoStatus?: number): Promise<T> {
    const response = await this.#fetch(path, query, init, alsoStatus)
    return (await response.json()) as T
  }

  async #fetch(path: string, query: Query, init: RequestInit, alsoStatus?: number): Promise<Response> {
    const { apiKey, fetch = globalThis.fetch, headers } = this.#options
    const all = { Accept: 'application/json', ...headers, ...(apiKey ? { 'X-API-Key': apiKey } : {}), ...(init.headers as Record<string, string>) }
    const response = await fetch(this.#base + path + queryOf(query), { ...init, headers: all })
    if (response.ok || response.status === alsoStatus) return response
    throw new WatchtowerError(await problemOf(response), retryAfterMs(response))
  }
}

type Query = Record<string, string | number | boolean | readonly string[] | undefined>

function queryOf(query: Query): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    for (const one of Array.isArray(value) ? value : [value]) params.append(name, String(one))
  }
  const text = params.toString()
  return text && `?${text}`
}

function milliseconds(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : `${Math.ceil(ms)}ms`
}

// Whether a retry may help. A fetch without an answer fails with a TypeError.
function passes(error: unknown): boolean {
  if (error instanceof WatchtowerError) return error.problem.retryable === true || error.problem.status === 429
  return error instanceof TypeError
}

// The pause after a temporary error.
function restAfter(error: unknown): number {
  return Math.max(pauseMs, error instanceof WatchtowerError ? error.retryAfterMs : 0)
}

// The service sends seconds. A date, as a proxy may send it, is ignored.
function retryAfterMs(response: Response): number {
  const seconds = response.headers.get('Retry-After') ?? ''
  return /^\d{1,5}$/.test(seconds) ? Number(seconds) * 1_000 : 0
}

// A proxy before the service sends its own answers.
async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text()
  if (response.headers.get('Content-Type')?.startsWith('application/problem+json')) return JSON.parse(text) as Problem
  const retryable = response.status === 502 || response.status === 503 || response.status === 504
  return { type: 'about:blank', title: `HTTP ${response.status}`, status: response.status, code: 'http', detail: text.slice(0, 200), retryable }
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', abort, { once: true })
  })
}
