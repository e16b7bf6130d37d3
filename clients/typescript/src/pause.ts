/** The pause before the second try, unless the service demands a longer one; it doubles from try to try. */
const firstMs = 200
const mostMs = 10_000

/** A pause before the next try, in milliseconds, with jitter so that clients do not retry in step. */
export function backoff(tried: number): number {
  const full = Math.min(firstMs * 2 ** Math.min(tried - 1, 16), mostMs)
  return full / 2 + (Math.random() * full) / 2
}

/** Resolves after some milliseconds, or rejects with the signal's reason. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
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
