import { type Connection, isTemporary, problemOf, type Query, restAfter, retryAfterMs } from './connection.js'
import { WatchtowerError } from './errors.js'
import { parse } from './json.js'
import { linesOf } from './lines.js'
import { backoff, pause } from './pause.js'
import { Silence } from './silence.js'

// The silence after which an event stream counts as dead. The services write at least every 15
// seconds.
const silenceMs = 60_000
// The least pause before a stream is taken up again.
const pauseMs = 1_000

/** A line of a stream: an event, or a mark up to which nothing is missing. */
type Line = { position: number; end?: boolean }

/**
 * Yields the lines of `/v1/events` that are events. Any failure of the connection is waited out,
 * and the stream is resumed after the last line. It ends at a line with `end`, when the signal is
 * aborted, or with the error of a service that refuses.
 */
export async function* follow<E extends Line>(
  connection: Connection,
  { after, ...query }: Query & { after?: number | undefined },
  isEvent: (line: E | Line) => line is E,
  signal: AbortSignal | undefined,
): AsyncGenerator<E, void, undefined> {
  for (let tried = 1; !signal?.aborted; tried++) {
    let rest = 0
    const silence = new Silence(silenceMs, signal)
    const lines = open(connection, { ...query, after }, silence.signal)
    try {
      for (;;) {
        // Only the connection's failures are caught: those of the caller's loop never arrive here.
        const next = await lines.next().catch((error: unknown) => {
          if (error instanceof WatchtowerError && !isTemporary(error)) throw error
          rest = restAfter(error)
          return undefined
        })
        if (!next || next.done) break
        silence.break() // while the caller handles the event
        const line = parse<E | Line>(next.value)
        tried = 1
        after = line.position
        if (isEvent(line)) yield line
        else if (line.end) return
        silence.begin()
      }
    } catch (error) {
      if (signal?.aborted) return
      throw error
    } finally {
      silence.close()
      await lines.return()
    }
    await pause(Math.max(rest, pauseMs, backoff(tried)), signal).catch(() => {}) // aborted: the loop ends
  }
}

async function* open(connection: Connection, query: Query, signal: AbortSignal): AsyncGenerator<string, void, undefined> {
  const response = await connection.send({ path: '/v1/events', query, headers: { Accept: 'application/x-ndjson' } }, signal)
  if (!response.ok) throw new WatchtowerError(problemOf(response, await response.text()), retryAfterMs(response))
  if (response.body) yield* linesOf(response.body)
}
