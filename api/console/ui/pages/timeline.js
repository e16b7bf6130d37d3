// The life of one thing, from its events: pauses folded, each event raw and in words.
import { html, useEffect, useState } from '../vendor/htm-preact.js'
import { Time } from '../elements.js'
import { now, use } from '../state.js'
import { ago, seconds, short, span } from '../words.js'

const answersOf = (d) => (d.answers || []).map((a) => `${a.endpoint}: ${a.class}${a.cause ? ', ' + a.cause : ''}${a.message ? ' (' + a.message + ')' : ''}`).join('; ')
const blockOf = (b) => (b ? `block ${b.number} ${short(b.hash)}` : '')

// told says an event in a sentence.
const told = {
  'tx.accepted.v1': (d) => `accepted${d.client ? ' from ' + d.client : ''}, ${d.bytes} bytes, nonce ${d.nonce}`,
  'tx.broadcast.v1': (d) => `attempt ${d.attempt}: ${answersOf(d)}`,
  'tx.mined.v1': (d) => `in ${blockOf(d.receipt.block)}, ${d.receipt.status ? 'succeeded' : 'reverted'}, gas ${d.receipt.gasUsed}`,
  'tx.finalized.v1': (d) => `${d.verdict} is final, by ${blockOf(d.by)}`,
  'tx.reorged.v1': (d) => `left the chain: ${blockOf(d.was)} was replaced by ${blockOf(d.now)}`,
  'tx.stale_by_nonce.v1': (d) => `another transaction used its nonce: the chain wants ${d.current} now, as of ${blockOf(d.block)}`,
  'tx.expired.v1': (d) => `its window closed, as of ${blockOf(d.block)}`,
  'tx.rejected.v1': (d) => `no node will ever take it: ${answersOf(d) || d.detail || ''}`,
  'tx.payload_erased.v1': () => 'its signed bytes were erased',
  'tx.resubmitted.v1': (d) => `submitted again${d.client ? ' by ' + d.client : ''}`,
  TxAccepted: (d) => `accepted${d.nonce !== undefined ? ', nonce ' + d.nonce : ''}`,
  TxSubmitted: (d) => `attempt ${d.attempt}: signed and handed over, ${short(d.hash)}`,
  TxReplaced: (d) => `attempt ${d.attempt}: ${short(d.hash)} takes its place, and pays more`,
  TxReceiptUpdated: (d) => `in ${blockOf(d.receipt?.block || d.block)}`,
  TxConfirmed: (d) => (d.done ? 'completed: its block is final' : `confirmed by ${(d.confirmations || []).map(blockOf).join(', ')}${d.newFork ? ', on a new fork' : ''}`),
  TxFailed: (d) => `ended: ${d.reason || ''} ${d.detail || ''}`,
}
const say = (e) => (told[e.name || e.type] || (() => ''))(e.data || {}) || (e.name || e.type).replace(/^tx\.|\.v\d+$/g, '').replaceAll('_', ' ')

// fold is how long nothing must happen for a pause to be shown as one.
const fold = 5

export function Timeline({ events, onPick }) {
  const [chosen, choose] = useState(-1)
  const items = []
  events.forEach((e, i) => {
    const gap = i > 0 ? seconds(e.at) - seconds(events[i - 1].at) : 0
    if (gap > fold) items.push({ pause: gap })
    items.push({ event: e, i })
  })
  const pick = (i) => { const at = i === chosen ? -1 : i; choose(at); onPick?.(at < 0 ? null : events[at]) }
  return html`<ol class="timeline">${items.map(({ event: e, pause, i }) => pause
    ? html`<li class="pause">nothing for ${span(pause)}</li>`
    : html`<li class=${i === chosen ? 'chosen' : ''}><button type="button" class="small" aria-expanded=${i === chosen} onClick=${() => pick(i)}>${e.version ?? e.sequence}</button> <strong>${(e.name || e.type).replace(/\.v\d+$/, '')}</strong> ${say(e)} <span class="dim"><${Time} at=${e.at} /></span>
      ${i === chosen && html`<pre>${JSON.stringify(e, null, 2)}</pre>`}</li>`)}</ol>`
}

// Countdown shows the time to a moment.
export function Countdown({ to, name }) {
  const at = use(now)
  if (!to) return null
  return html`<span title=${name}>${name} ${ago(to, at)}</span>`
}

// useEscape calls a function on Escape.
export function useEscape(does) {
  useEffect(() => {
    const press = (e) => e.key === 'Escape' && does()
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
}
