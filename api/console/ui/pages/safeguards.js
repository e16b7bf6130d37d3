// Safeguards: what stops or limits signing.
import { html, useState } from '../vendor/htm-preact.js'
import { act, get } from '../api.js'
import { Empty, Order, Table, Time, Trouble, Ways, useRead } from '../elements.js'
import { halted } from '../state.js'
import { amount } from '../words.js'

const scopeOf = (s) => s.kind + (s.chain ? ' ' + s.chain : '') + (s.client !== undefined && s.kind === 'client' ? ' ' + (s.client || '(no key)') : '')

export function Safeguards() {
  const shown = useRead(async () => { const s = await get('operate', '/admin/safeguards'); halted.value = s.halts; return s }, [], 5000)
  const signers = useRead(() => get('operate', '/admin/signers'), [])
  const chains = [...new Set((signers.value?.signers || []).map((s) => s.chain))]
  const [kind, setKind] = useState('deployment')
  const [which, setWhich] = useState('')
  const scope = kind === 'chain' ? { kind, chain: Number(which || chains[0]) } : kind === 'client' ? { kind, client: which } : { kind }
  const s = shown.value
  if (!s) return html`<${Trouble} of=${shown.trouble} again=${shown.again} />`
  return html`<h1>Safeguards</h1><p><${Ways} part="operate" path="/admin/safeguards" cli="relayer safeguards show" /></p><${Trouble} of=${shown.trouble} />
    <div class="panel"><h2>Halt</h2><div class="bar"><label>what<select onChange=${(e) => setKind(e.target.value)}>${Object.entries({ deployment: 'everything', chain: 'one chain', client: 'one client' }).map(([k, text]) => html`<option value=${k} selected=${k === kind}>${text}</option>`)}</select></label>
      ${kind === 'chain' && html`<select aria-label="chain" onChange=${(e) => setWhich(e.target.value)}>${chains.map((c) => html`<option selected=${String(c) === which}>${c}</option>`)}</select>`}${kind === 'client' && html`<input aria-label="client" value=${which} onInput=${(e) => setWhich(e.target.value)} />`}
      <${Order} danger label="halt" what=${'Halt signing: ' + scopeOf(scope)} does=${(reason) => act('Halt', 'POST', 'operate', '/admin/safeguards/halt', { scope, reason }).then(shown.again)}><p>From the next moment on nothing is signed for it. What is signed goes on, and keeps its nonce.</p><//></div>
      ${s.halts.length === 0 ? html`<p class="dim">Nothing is halted.</p>` : html`<ul>${s.halts.map((h) => html`<li><strong>${scopeOf(h.scope)}</strong> by ${h.actor}, ${h.reason}, <${Time} at=${h.since} /> <${Order} label="resume" what=${'Resume signing: ' + scopeOf(h.scope)} does=${(reason) => act('Resume', 'POST', 'operate', '/admin/safeguards/resume', { scope: h.scope, reason }).then(shown.again)} /></li>`)}</ul>`}</div>
    <div class="panel"><h2>Allowed targets</h2>${s.targets.length === 0 ? html`<p class="dim">Every target is allowed.</p>` : html`<${Table} rows=${s.targets} label="Allowed targets" columns=${[{ name: 'for', show: (t) => scopeOf(t.scope) }, { name: 'targets', class: 'wide', show: (t) => (t.targets || []).map((x) => (typeof x === 'string' ? x : x.to + (x.selector ? ' ' + x.selector : ''))).join(', ') || 'none' }]} />`}</div>
    <div class="panel"><h2>Rates</h2>${s.rates.length === 0 ? html`<p class="dim">No rate is set.</p>` : html`<${Table} rows=${s.rates} label="Rates" columns=${[{ name: 'for', show: (r) => scopeOf(r.scope) }, { name: 'each second', class: 'num', show: (r) => r.perSecond }, { name: 'burst', class: 'num', show: (r) => r.burst }]} />`}</div>
    ${chains.map((c) => html`<${Budget} chain=${c} />`)}`
}

function Budget({ chain }) {
  const shown = useRead(() => get('operate', '/admin/budgets/' + chain), [chain], 10000)
  const b = shown.value
  if (!b) return html`<${Trouble} of=${shown.trouble} again=${shown.again} />`
  return html`<div class="panel"><h2>Budget of chain ${chain}, today</h2><p>Used: fees ${amount(b.used.fee)}, value ${amount(b.used.value)}.</p>
    ${b.limits.length === 0 ? html`<${Empty}>No limit is set: <code>relayer budgets set</code><//>` : html`<${Table} rows=${b.limits} label="Limits" columns=${[{ name: 'of', show: (l) => (l.account.kind || '') + ' ' + (l.account.client || l.account.signer || l.account.subject || '') }, { name: 'fee limit', class: 'num', show: (l) => amount(l.limit.fee) }, { name: 'fee used', class: 'num', show: (l) => amount(l.used?.fee) }, { name: 'value limit', class: 'num', show: (l) => amount(l.limit.value) }, { name: 'value used', class: 'num', show: (l) => amount(l.used?.value) }]} />`}</div>`
}
