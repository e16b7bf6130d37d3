import { isUnclear, NoAnswerError, type Problem, WatchtowerError } from './errors.js'
import { parse } from './json.js'
import { backoff, pause } from './pause.js'
import { Silence } from './silence.js'

export type ClientOptions = {
  /** An API key, if the service requires one. */
  apiKey?: string | undefined
  /** Sent with every request. */
  headers?: Record<string, string> | undefined
  /** Replaces the global fetch. */
  fetch?: typeof globalThis.fetch | undefined
  /** Most tries of one request; the default is 6. `wait` and `follow` have no limit. */
  tries?: number | undefined
  /** How long one try may take, in milliseconds, beside the wait that it asks for; the default is 30,000. */
  timeout?: number | undefined
}

/** Options of every request. */
export type RequestOptions = { signal?: AbortSignal | undefined }

export type Query = Record<string, string | number | bigint | boolean | readonly string[] | undefined>

/** One request. It must be safe to repeat. */
export type Request = RequestOptions & {
  method?: 'GET' | 'POST' | 'DELETE'
  path: string
  query?: Query
  headers?: Record<string, string | undefined>
  /** JSON. */
  body?: string
  /** How long the service may wait before it answers, at the caller's request, in milliseconds. */
  waitMs?: number | undefined
  /** A status that is no error, beside those of success. */
  alsoStatus?: number
  /** Most tries, and the milliseconds of each beside the wait, if they differ from the client's. */
  tries?: number
  tryMs?: number
}

const triesDefault = 6
const tryMs = 30_000
// A service that demands a longer pause is obeyed by giving up: the caller knows better whether
// to wait for minutes.
const restMostMs = 60_000

/** A service's HTTP interface. Every error of `fetch` is an unknown outcome, and the request is repeated. */
export class Connection {
  readonly #base: string
  readonly #options: ClientOptions

  /** Throws a `TypeError` if url is no URL. */
  constructor(url: string, options: ClientOptions) {
    this.#base = url.replace(/\/+$/, '')
    new URL(url, globalThis.location?.href) // a page may name its own service by a path
    this.#options = options
  }

  /** How many times a request may be sent. */
  get tries(): number {
    return this.#options.tries ?? triesDefault
  }

  /** The answer's body, of JSON. */
  async json<T>(request: Request): Promise<T> {
    return (await this.answer(request, parse<T>)).body
  }

  /** The answer's body, as text. */
  async text(request: Request): Promise<string> {
    return (await this.answer(request, (text) => text)).body
  }

  /** The answer, after as many tries as it takes and the options allow. */
  async answer<T>(request: Request, read: (text: string) => T): Promise<{ headers: Headers; body: T }> {
    for (let tried = 1, unanswered = false; ; tried++) {
      let failure: WatchtowerError | NoAnswerError
      try {
        return await this.#try(request, read, unanswered)
      } catch (error) {
        if (request.signal?.aborted) throw request.signal.reason
        failure = error instanceof WatchtowerError ? error : new NoAnswerError(nameOf(request), tried, error)
      }
      unanswered ||= failure.outcome === 'unknown'
      const rest = restAfter(failure)
      if (!isTemporary(failure) || tried >= (request.tries ?? this.tries) || rest > restMostMs) throw failure
      await pause(Math.max(rest, backoff(tried)), request.signal)
    }
  }

  async #try<T>(request: Request, read: (text: string) => T, unanswered: boolean): Promise<{ headers: Headers; body: T }> {
    const silence = new Silence((request.tryMs ?? this.#options.timeout ?? tryMs) + (request.waitMs ?? 0), request.signal)
    try {
      const response = await this.send(request, silence.signal)
      const text = await response.text()
      if (response.ok || response.status === request.alsoStatus) return { headers: response.headers, body: read(text) }
      throw new WatchtowerError(problemOf(response, text), retryAfterMs(response), unanswered)
    } finally {
      silence.close()
    }
  }

  /** Sends a request once. */
  send(request: Request, signal: AbortSignal): Promise<Response> {
    const { apiKey, fetch = globalThis.fetch, headers } = this.#options
    const all: Record<string, string> = { Accept: 'application/json', ...headers }
    if (apiKey) all['X-API-Key'] = apiKey
    for (const [name, value] of Object.entries(request.headers ?? {})) if (value !== undefined) all[name] = value
    // Without a body too: the services refuse a POST that any web page could send.
    if (request.method === 'POST') all['Content-Type'] = 'application/json'
    // A redirect is not followed: it would hand the API key to another host.
    const init: RequestInit = { method: request.method ?? 'GET', headers: all, signal, redirect: 'manual' }
    if (request.body !== undefined) init.body = request.body
    return fetch(this.#base + request.path + queryOf(request.query ?? {}), init)
  }
}

/** Whether the same request may succeed later. */
export function isTemporary(error: unknown): boolean {
  if (!(error instanceof WatchtowerError)) return error instanceof NoAnswerError
  const { status, retryable } = error.problem
  return retryable === true || status === 429 || (isUnclear(status) && status !== 500)
}

/** The pause that the service demands, in milliseconds; 0 for none. */
export function restAfter(error: unknown): number {
  return error instanceof WatchtowerError ? error.retryAfterMs : 0
}

/** The problem in an answer. A proxy before the service sends its own answers. */
export function problemOf(response: Response, text: string): Problem {
  if (response.headers.get('Content-Type')?.startsWith('application/problem+json')) return parse<Problem>(text)
  const { status } = response
  // A browser shows a redirect as status 0.
  const redirects = status < 400
  const detail = redirects ? 'a redirect, which is not followed because the API key would go to another host' : text.slice(0, 200)
  return { type: 'about:blank', title: `HTTP ${status}`, status, code: redirects ? 'redirect' : 'http', detail }
}

/** The pause in Retry-After. The service sends seconds; a date, as a proxy may send it, is ignored. */
export function retryAfterMs(response: Response): number {
  const seconds = response.headers.get('Retry-After') ?? ''
  return /^\d{1,5}$/.test(seconds) ? Number(seconds) * 1_000 : 0
}

/** A duration as the services read it. */
export function milliseconds(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : `${Math.ceil(ms)}ms`
}

/** The cursor of the next page in a Link header (RFC 8288). */
export function nextCursor(headers: Headers): string | undefined {
  const target = /<([^>]*)>;\s*rel="next"/.exec(headers.get('Link') ?? '')?.[1]
  return target === undefined ? undefined : (new URL(target, 'http://service').searchParams.get('cursor') ?? undefined)
}

function nameOf(request: Request): string {
  return `${request.method ?? 'GET'} ${request.path}`
}

function queryOf(query: Query): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    for (const one of Array.isArray(value) ? value : [value]) params.append(name, String(one))
  }
  const text = params.toString()
  return text && `?${text}`
}
