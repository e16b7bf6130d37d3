import { type Connection, isTemporary, milliseconds, type Query, type RequestOptions, restAfter } from './connection.js'
import { backoff, pause } from './pause.js'

// How long one request waits; the next one continues the wait. Proxies commonly cut a
// connection after a minute of silence.
const roundMs = 50_000
// How long an answer may take after its wait, or after the timeout of the whole.
const answerMs = 30_000
const lateMs = 5_000

type Waited = { waited?: { reached: boolean; because?: string } }

/**
 * Asks for something until a wait has ended: the status is reached or can no longer be reached,
 * or the timeout is over. Temporary failures are waited out.
 */
export async function waitFor<T extends Waited>(
  connection: Connection,
  path: string,
  query: Query,
  { timeout = Number.POSITIVE_INFINITY, signal }: RequestOptions & { timeout?: number | undefined },
): Promise<T> {
  const deadline = Date.now() + timeout
  const left = () => Math.max(deadline - Date.now(), 0)
  for (let tried = 1; ; tried++) {
    let rest = 0
    const waitMs = Math.min(left(), roundMs)
    try {
      const found = await connection.json<T>({
        path,
        query: { ...query, timeout: milliseconds(waitMs) },
        signal,
        waitMs,
        tries: 1, // the loop tries again
        tryMs: Math.min(answerMs, left() - waitMs + lateMs),
      })
      const { waited } = found
      if (!waited || waited.reached || waited.because === 'ended' || left() === 0) return found
      if (waited.because === 'timeout') {
        tried = 0
        continue
      }
    } catch (error) {
      if (signal?.aborted || !isTemporary(error) || left() === 0) throw error
      rest = restAfter(error)
    }
    await pause(Math.min(Math.max(rest, backoff(tried)), left()), signal)
  }
}
