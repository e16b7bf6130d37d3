import type { Problem as DeliveryProblem } from './contract/delivery.js'

/** An RFC 9457 problem, as both services send it. */
export type Problem = DeliveryProblem

/**
 * Whether a request that failed may have been carried out. `refused`: it was not.
 * `unknown`: it may have been; repeat the same request, with the same key, to find out.
 */
export type RequestOutcome = 'refused' | 'unknown'

/** An error answer. Branch on `problem.code`: it never changes. */
export class WatchtowerError extends Error {
  override readonly name = 'WatchtowerError'
  /** Whether the request may have been carried out: by an earlier try without an answer, or by a service that failed at it. */
  readonly outcome: RequestOutcome
  constructor(
    readonly problem: Problem,
    /** The wait that the service demands before a retry, in milliseconds; 0 for none. */
    readonly retryAfterMs: number = 0,
    /** Whether an earlier try of the same request got no usable answer. */
    unanswered = false,
  ) {
    super(`${problem.code}: ${problem.detail ?? problem.title}`)
    this.outcome = unanswered || isUnclear(problem.status) ? 'unknown' : 'refused'
  }
}

/**
 * No try of a request got a usable answer: the connection failed or was cut, or the answer
 * took too long or was no JSON. `cause` is the last error. Repeating the request is safe.
 */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError'
  readonly outcome: RequestOutcome = 'unknown'
  constructor(
    request: string,
    /** How many times the request was sent. */
    readonly tries: number,
    cause: unknown,
  ) {
    super(`no answer to ${request} after ${tries} ${tries === 1 ? 'try' : 'tries'}: ${cause instanceof Error ? cause.message : cause}`, { cause })
  }
}

/** Whether a service, or a proxy before it, may have failed after the request was carried out. */
export function isUnclear(status: number): boolean {
  return status === 408 || status >= 500
}
