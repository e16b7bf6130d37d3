// One transaction: where it stands, why it waits, and everything that happened to it.
import { html, useEffect, useState } from '../vendor/htm-preact.js'
import { act, follow, get, query } from '../api.js'
import { Facts, Hash, Order, State, Time, Trouble, Ways, useRead } from '../elements.js'
import { amount } from '../words.js'
import { Countdown, Timeline } from './timeline.js'

const ended = ['executed', 'stale_by_nonce', 'expired', 'invalid', 'canceled_locally']

// why says why a transaction waits, and what ends that.
function why(t) {
  if (ended.includes(t.status)) {
    if (!t.finalized && t.status !== 'invalid' && t.status !== 'canceled_locally') return 'The block that decided it is not final yet. If the chain replaces that block, the transaction goes on.'
    return ''
  }
  if (t.waitingForNonce !== undefined) return `The chain wants nonce ${t.waitingForNonce} of this key first, and this one is ${t.nonce}. It ends when a transaction with nonce ${t.waitingForNonce} lands: submit that one, or wait for it if it is in work.`
  if (t.parked) return 'Many transactions of the same key with lower nonces go first. It ends as they land.'
  if (t.accountHeldAt) return 'A node said that the payer cannot pay, or that the access key may not sign. One transaction at a time is tried. It ends when the account has funds, or the key is authorized.'
  if (t.groupPending) return 'An access key signed, and the chain has not confirmed it: ' + t.groupPending.reason
  if (t.status === 'queued') return 'It is not due yet: its window opens at the time below.'
  return 'It was handed to nodes, and no block has it yet. It is sent again at the time below.'
}

export function Transaction({ of: [chainId, hash] }) {
  const path = `/v1/transactions/${hash}`
  const shown = useRead(() => get('delivery', path + query({ chainId })), [hash, chainId], 4000)
  const trail = useRead(() => get('delivery', path + '/events' + query({ chainId })), [hash, chainId, shown.value?.version])
  const [picked, pick] = useState(null)
  useEffect(() => follow('delivery', '/v1/events' + query({ txHash: hash, chainId }), () => shown.again()), [hash])
  const t = shown.value
  if (!t) return html`<${Trouble} of=${shown.trouble} again=${shown.again} />`
  const cause = why(t)
  const over = ended.includes(t.status)
  return html`<h1>Transaction <${Hash} of=${t.txHash} /></h1>
    <p><${State} of=${t.violated ? 'violated' : t.status} /> ${t.finalized ? 'final' : ''} ${t.canceled ? 'canceled by its owner' : ''}
      <${Ways} part="delivery" path=${path} cli=${'watchtower tx get ' + hash} />
      ${!over && html`<${Order} label="mark as stale" what="Record that its nonce is used up" reason=${false} does=${() => act('Look at the nonce', 'DELETE', 'delivery', path + query({ chainId })).then(shown.again)}>
        <p>The service asks the chain. Only if the chain is past this nonce, the transaction becomes stale.</p><//>`}</p>
    ${cause && html`<div class="why">${cause} <span class="dim"><${Countdown} to=${t.eligibleAt} name="opens" /> <${Countdown} to=${t.nextActionAt} name="next attempt" /> <${Countdown} to=${t.expiresAt} name="closes" /></span></div>`}
    <div class="panel"><${Facts} of=${[
      ['chain', t.chainId], ['sender', html`<${Hash} of=${t.sender} to=${'/transactions?sender=' + t.sender} />`], ['signature', t.signature], ['nonce', t.nonce], ['nonce key', t.nonceKey],
      ['group', t.groupId && html`<${Hash} of=${t.groupId} to=${'/groups/' + t.sender + '/' + t.groupId} />`], ['fee payer', t.feePayer && html`<${Hash} of=${t.feePayer} />`],
      ['accepted', html`<${Time} at=${t.acceptedAt} chain=${t.chainId} />`], ['attempts', t.attempts], ['last outcome', t.note || t.lastError],
      ['gas', t.gas && amount(t.gas)], ['max fee', t.fees?.maxFeePerGas && amount(t.fees.maxFeePerGas)], ['bytes', t.payloadErased ? 'erased' : undefined],
      ['block', t.block && html`${amount(t.block.number)} <${Hash} of=${t.block.hash} />`], ['receipt', t.receipt && (t.receipt.status ? 'succeeded' : 'reverted') + ', gas ' + amount(t.receipt.gasUsed)],
    ]} /></div>
    <${Attempts} of=${t} />
    ${t.calls && html`<div class="panel"><h2>Calls</h2>${t.calls.map((c, i) => html`<h3>${i + 1}: ${c.to ? html`<${Hash} of=${c.to} />` : 'creates a contract'} ${c.value !== '0' ? amount(c.value) : ''}</h3>${c.input !== '0x' && html`<${Input} of=${c.input} />`}`)}</div>`}
    <div class="panel"><h2>What happened</h2><${Trouble} of=${trail.trouble} again=${trail.again} />
      <${Timeline} events=${trail.value?.events || []} onPick=${pick} />
      ${picked && html`<${Then} events=${trail.value.events} at=${picked} />`}</div>
    <${Neighbors} of=${t} />`
}

// known selectors of ERC-20 and Tempo's TIP-20, with the names of their words.
const known = { '0xa9059cbb': ['transfer', 'to', 'amount'], '0x23b872dd': ['transferFrom', 'from', 'to', 'amount'], '0x095ea7b3': ['approve', 'spender', 'amount'], '0x95777d59': ['transferWithMemo', 'to', 'amount', 'memo'], '0x40c10f19': ['mint', 'to', 'amount'] }
export function Input({ of }) {
  const [name, ...parts] = known[of.slice(0, 10)] || []
  const words = of.slice(10).match(/.{64}/g) || []
  return html`${name && html`<p>${name}(${parts.map((p, i) => { const w = words[i] || ''; return p + ' ' + (p === 'amount' ? amount(BigInt('0x' + (w || '0'))) : p === 'memo' ? '0x' + w : '0x' + w.slice(24)) }).join(', ')})</p>`}<pre>${of}</pre>`
}

function Attempts({ of: t }) {
  if (!t.lastAttempt) return null
  return html`<div class="panel"><h2>Attempts</h2><table><thead><tr><th>endpoint</th><th>answer</th><th>cause</th><th class="num">took</th><th>message</th></tr></thead>
    <tbody>${t.lastAttempt.answers.map((a) => html`<tr><td>${a.endpoint}</td><td><${State} of=${a.class} /></td><td>${a.cause || ''}</td><td class="num">${a.ms} ms</td><td class="wide">${a.code ? a.code + ' ' : ''}${a.message || ''}</td></tr>`)}</tbody></table>
    <p class="dim">Attempt ${t.lastAttempt.attempt}, the last one recorded. Outcomes: ${t.attemptsSummary.map((o) => `${o.outcome} (last at ${o.attempt})`).join(', ')}</p></div>`
}

// Then shows what was known at an event.
function Then({ events, at }) {
  const until = events.slice(0, events.indexOf(at) + 1)
  const state = { status: 'queued' }
  for (const e of until) {
    if (e.name.startsWith('tx.broadcast')) Object.assign(state, { status: 'broadcasting', attempts: e.data.attempt })
    if (e.name.startsWith('tx.mined')) Object.assign(state, { status: 'executed', block: e.data.receipt.block.number, receipt: e.data.receipt.status })
    if (e.name.startsWith('tx.reorged')) Object.assign(state, { status: 'broadcasting', block: undefined, receipt: undefined })
    if (e.name.startsWith('tx.stale')) state.status = 'stale_by_nonce'
    if (e.name.startsWith('tx.expired')) state.status = 'expired'
    if (e.name.startsWith('tx.finalized')) state.finalized = true
    if (e.name.startsWith('tx.canceled')) state.status = 'canceled_locally'
    if (e.name.startsWith('tx.rejected')) state.status = 'invalid'
  }
  return html`<div class="why">As of event ${at.version}: <${State} of=${state.status} /> ${state.finalized ? 'final ' : ''}${state.attempts ? state.attempts + ' attempts ' : ''}${state.block ? 'block ' + state.block : ''}</div>`
}

// Neighbors are the transactions of the same nonce key around this one.
function Neighbors({ of: t }) {
  const near = useRead(() => get('delivery', '/v1/transactions' + query({ chainId: t.chainId, sender: t.sender, limit: 200 })), [t.sender])
  const all = (near.value?.transactions || []).filter((o) => o.nonceKey === t.nonceKey).sort((a, b) => a.nonce - b.nonce)
  const at = all.findIndex((o) => o.txHash === t.txHash)
  const shown = all.slice(Math.max(at - 5, 0), at + 6)
  if (shown.length < 2) return null
  return html`<div class="panel"><h2>Same nonce key</h2><ul>${shown.map((o) => html`<li>${o.txHash === t.txHash ? 'this one' : html`<${Hash} of=${o.txHash} to=${`/transactions/${o.chainId}/${o.txHash}`} />`} nonce ${o.nonce} <${State} of=${o.status} /></li>`)}</ul></div>`
}
