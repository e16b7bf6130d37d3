/** The largest accepted difference between a webhook's time and the receiver's, in milliseconds. */
export const webhookTolerance = 5 * 60_000

/** A request's signature or time is invalid. It does not say which. */
export class WebhookError extends Error {
  override name = 'WebhookError'
  constructor() {
    super('not a webhook that can be trusted')
  }
}

export type WebhookOptions = {
  /** The endpoint's secrets (`whsec_…`): one, or several while it is being replaced. A signature with any of them is valid. */
  secrets: readonly string[]
  /** Milliseconds since 1970; the default is the clock's time. */
  now?: number
}

/**
 * Checks a webhook's headers against its body, byte for byte as received, by the Standard
 * Webhooks specification, version 1.0.0. Resolves to the webhook's id. A webhook may be
 * delivered more than once, with the same id, so remember the ids of handled webhooks.
 * Rejects with a `WebhookError`.
 */
export async function verifyWebhook(headers: Headers, body: string | Uint8Array, { secrets, now = Date.now() }: WebhookOptions): Promise<string> {
  if (secrets.length === 0) throw new TypeError('webhooks cannot be checked without a secret')
  const keys = await Promise.all(secrets.map(importSecret))
  const id = headers.get('webhook-id')
  const time = headers.get('webhook-timestamp')
  if (!id || !time || !/^-?\d{1,15}$/.test(time) || Math.abs(now - Number(time) * 1000) > webhookTolerance) throw new WebhookError()
  const head = new TextEncoder().encode(`${id}.${time}.`)
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  const signed = new Uint8Array(head.length + bytes.length)
  signed.set(head)
  signed.set(bytes, head.length)
  for (const text of (headers.get('webhook-signature') ?? '').split(' ')) {
    const signature = text.startsWith('v1,') ? fromBase64(text.slice(3)) : undefined
    if (!signature) continue
    for (const key of keys) if (await crypto.subtle.verify('HMAC', key, signature, signed)) return id
  }
  throw new WebhookError()
}

async function importSecret(secret: string): Promise<CryptoKey> {
  const key = secret.startsWith('whsec_') ? fromBase64(secret.slice(6)) : undefined
  if (!key?.length) throw new TypeError('a webhook\'s secret is "whsec_" and base64')
  return crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
}

/** Undefined unless text is base64 with its padding. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0))
}
