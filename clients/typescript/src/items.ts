import type { Problem } from './errors.js'
import { backoff, pause } from './pause.js'

type Item = { ok: boolean; problem?: Problem }

/**
 * Sends items, and sends items with a temporary problem again. Results are in the
 * items' order; an item that fails to the end has its last problem.
 */
export async function sendItems<I, R extends Item>(
  items: readonly I[],
  send: (items: readonly I[]) => Promise<R[]>,
  { tries, signal }: { tries: number; signal?: AbortSignal | undefined },
): Promise<R[]> {
  const results: R[] = []
  let open = items.map((_, place) => place)
  for (let tried = 1; open.length > 0; tried++) {
    const sent = open
    // A failure of a later try is no failure of the items that were accepted before.
    const answers = await send(sent.map((place) => items[place]!)).catch((error: unknown) => {
      if (tried === 1) throw error
      return undefined
    })
    if (!answers) break
    if (answers.length !== sent.length) throw new Error(`${answers.length} results for ${sent.length} items`)
    for (const [i, place] of sent.entries()) results[place] = answers[i]!
    open = sent.filter((_, i) => answers[i]!.problem?.retryable)
    if (tried >= tries) break
    if (open.length > 0) await pause(backoff(tried), signal)
  }
  return results
}
