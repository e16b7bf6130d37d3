import type { Connection, RequestOptions } from './connection.js'
import type { DeadPage, Redelivery, Tried, Webhook, WebhooksPage } from './contract/relay.js'
import { stringify } from './json.js'

/** A webhook delivery that was given up. */
export type DeadNotice = DeadPage['notices'][number]

/** Names a webhook delivery. */
export type NoticeId = NonNullable<Redelivery['notices']>[number]

/** A client's webhooks: their state, their secrets, and the deliveries that were given up. */
export class Webhooks {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** All webhooks that the client may see, by id; pages are fetched as they are needed. */
  async *list(options: RequestOptions = {}): AsyncGenerator<Webhook, void, undefined> {
    for (let after: string | undefined; ; ) {
      const page = await this.#connection.json<WebhooksPage>({ path: '/v1/webhooks', query: { after, limit: 200 }, ...options })
      yield* page.webhooks
      after = page.webhooks.at(-1)?.id
      if (!page.hasMore || after === undefined) return
    }
  }

  /** The state of one webhook, without its secrets. */
  get(id: string, options: RequestOptions = {}): Promise<Webhook> {
    return this.#connection.json({ path: pathOf(id), ...options })
  }

  /** The client's webhook of a URL, with the secrets that sign its deliveries. Nothing is changed. */
  own(url: string, options: RequestOptions = {}): Promise<Webhook> {
    return this.#connection.json({ method: 'POST', path: '/v1/webhooks', body: stringify({ url }), ...options })
  }

  /** Has the service send one test message to a URL, and returns the result. */
  try(url: string, options: RequestOptions = {}): Promise<Tried> {
    return this.#connection.json({ method: 'POST', path: '/v1/webhooks/try', body: stringify({ url }), waitMs: 30_000, ...options })
  }

  /** The deliveries that were given up; pages are fetched as they are needed. */
  async *dead(id: string, options: RequestOptions = {}): AsyncGenerator<DeadNotice, void, undefined> {
    for (let last: DeadNotice | undefined; ; ) {
      const query = { intent: last?.intent, sequence: last?.sequence, limit: 200 }
      const page = await this.#connection.json<DeadPage>({ path: `${pathOf(id)}/dead`, query, ...options })
      yield* page.notices
      last = page.notices.at(-1)
      if (!page.hasMore || !last) return
    }
  }

  /** Sends the named deliveries again; without names, all that were given up. */
  redeliver(id: string, notices?: readonly NoticeId[], options: RequestOptions = {}): Promise<Webhook> {
    const named = notices?.map(({ intent, sequence }) => ({ intent, sequence }))
    return this.#command(id, 'redeliver', options, stringify({ notices: named }))
  }

  /** Enables a webhook and clears its failures. */
  enable(id: string, options: RequestOptions = {}): Promise<Webhook> {
    return this.#command(id, 'enable', options)
  }

  /** Disables a webhook: its deliveries are given up. */
  disable(id: string, options: RequestOptions = {}): Promise<Webhook> {
    return this.#command(id, 'disable', options)
  }

  #command(id: string, name: string, options: RequestOptions, body?: string): Promise<Webhook> {
    return this.#connection.json({ method: 'POST', path: `${pathOf(id)}/${name}`, ...(body && { body }), ...options })
  }
}

function pathOf(id: string): string {
  return `/v1/webhooks/${encodeURIComponent(id)}`
}
