// One intent: where it stands, why it waits, its attempts, and everything that happened to it.
import { html, useEffect } from '../vendor/htm-preact.js'
import { act, follow, get, query } from '../api.js'
import { Facts, Hash, Order, State, Time, Trouble, Ways, useRead } from '../elements.js'
import { href } from '../route.js'
import { amount } from '../words.js'
import { Timeline } from './timeline.js'
import { Input } from './transaction.js'

// ends says what ends each reason to wait.
const ends = {
  halted: 'Signing is halted. It ends when an operator resumes it.', 'signer-stopped': 'The key is paused or drained. It ends when an operator resumes it.',
  'budget-spent': 'The day’s budget is spent. It ends at the next day (UTC), or when an operator raises the limit.', 'budget-over-limit': 'It alone is above a budget’s limit. It ends when an operator raises the limit.',
  'behind-another': 'Another intent with the same ordering key goes first.', 'lane-full': 'The lane has as many nonces in flight as it may. It ends as they land.',
  'lane-stalled': 'The lane stands still: see its diagnosis.', 'market-above-ceiling': 'Gas costs more than the intent’s ceiling. It ends when gas is cheaper.',
}

export function Intent({ of: [id] }) {
  const path = '/v1/intents/' + id
  const shown = useRead(() => get('relay', path), [id], 4000)
  const trail = useRead(() => get('relay', path + '/events'), [id, shown.value?.sequence])
  useEffect(() => follow('relay', '/v1/events' + query({ intent: id }), () => shown.again()), [id])
  const i = shown.value
  if (!i) return html`<${Trouble} of=${shown.trouble} again=${shown.again} />`
  const over = ['completed', 'failed', 'canceled'].includes(i.status)
  const fee = i.attempts.at(-1)?.maxFeePerGas
  return html`<h1>Intent <${Hash} of=${i.id} /></h1>
    <p><${State} of=${i.status} /> ${i.outcome?.reason || ''} ${i.outcome?.detail || ''}
      <${Ways} part="relay" path=${path} cli=${'relayer intents get ' + id} />
      ${!over && html`<${Order} danger label="cancel" what="Cancel this intent" does=${(reason) => act('Cancel', 'POST', 'relay', path + '/cancel', { reason }).then(shown.again)}><p>If nothing was signed it is canceled at once. Otherwise a no-op competes for its nonce.</p><//>`}
      ${!over && fee && html`<${Order} label="speed up" what="Pay more for this intent" reason=${false} does=${() => act('Speed up', 'POST', 'relay', path + '/speed-up', { feePerGas: String((BigInt(fee) * 5n) / 4n) }).then(shown.again)}><p>The next attempt offers at least ${amount((BigInt(fee) * 5n) / 4n)} a unit of gas, a quarter more than now.</p><//>`}</p>
    ${i.waitingFor && html`<div class="why"><strong>${i.waitingFor.code}</strong> ${ends[i.waitingFor.code] || ''} ${i.waitingFor.detail || ''} ${i.waitingSince && html`<span class="dim">since <${Time} at=${i.waitingSince} /></span>`}</div>`}
    ${i.stopping && html`<div class="why">It is being stopped: ${i.stopping.reason} ${i.stopping.detail || ''}</div>`}
    <div class="panel"><${Facts} of=${[
      ['key', i.key], ['client', i.client], ['chain', i.chainId], ['signer', (i.place || i.signer) && html`<${Hash} of=${i.place?.signer || i.signer} />`], ['pool', i.pool],
      ['nonce', i.place && html`<a href=${href(`/lanes/${i.chainId}/${i.place.signer}/${i.place.nonceKey}`)}>${i.place.nonce}</a>`], ['ordering key', i.orderingKey], ['subject', i.subject],
      ['requested', html`<${Time} at=${i.requestedAt} chain=${i.chainId} />`], ['deadline', i.deadline ? html`<${Time} at=${i.deadline} />` : undefined], ['confirmations', i.confirmations?.length],
      ['receipt', i.receipt && `block ${amount(i.receipt.block.number)}, ${i.receipt.status ? 'succeeded' : 'reverted'}, gas ${amount(i.receipt.gasUsed)}`],
      ...Object.entries(i.metadata || {}).map(([k, v]) => [k, v]),
    ]} /></div>
    <div class="panel"><h2>Attempts</h2><table><thead><tr><th class="num">no.</th><th>kind</th><th>transaction</th><th class="num">max fee</th><th class="num">tip</th><th>at</th></tr></thead>
      <tbody>${i.attempts.map((a) => html`<tr><td class="num">${a.attempt}</td><td>${a.kind}</td><td><${Hash} of=${a.txHash} to=${`/transactions/${i.chainId}/${a.txHash}`} /></td><td class="num">${amount(a.maxFeePerGas)}</td><td class="num">${amount(a.maxPriorityFeePerGas)}</td><td><${Time} at=${a.at} chain=${i.chainId} /></td></tr>`)}</tbody></table>
      ${i.attempts.length === 0 && html`<p class="dim">Nothing was signed yet.</p>`}</div>
    <div class="panel"><h2>Calls</h2>${i.calls.map((c, n) => html`<h3>${n + 1}: ${c.to ? html`<${Hash} of=${c.to} />` : 'creates a contract'} ${c.value && c.value !== '0' ? amount(c.value) : ''}</h3>${c.data && c.data !== '0x' && html`<${Input} of=${c.data} />`}`)}</div>
    <div class="panel"><h2>What happened</h2><${Trouble} of=${trail.trouble} again=${trail.again} /><${Timeline} events=${trail.value?.events || []} /></div>`
}
