// Keys: the accounts that sign, what they have, and whether they may.
import { html } from '../vendor/htm-preact.js'
import { act, get } from '../api.js'
import { Empty, Hash, Order, State, Table, Time, Trouble, Ways, useRead } from '../elements.js'
import { amount } from '../words.js'

export function Signers() {
  const list = useRead(() => get('operate', '/admin/signers'), [], 5000)
  const rows = list.value?.signers || []
  const order = (s, what, text) => html`<${Order} label=${what} what=${`${text} ${s.address}`} danger=${what !== 'resume'} does=${(reason) => act(text, 'POST', 'operate', `/admin/signers/${s.chain}/${s.address}/${what}`, { reason }).then(list.again)}>
    <p>${what === 'pause' ? 'Nothing is signed with it any more. What is signed goes on.' : what === 'drain' ? 'It takes no new intents, and finishes those that it has.' : 'It signs again.'}</p><//>`
  return html`<h1>Keys</h1><p><${Ways} part="operate" path="/admin/signers" cli="relayer signers list" /></p><${Trouble} of=${list.trouble} again=${list.again} />
    ${list.value && rows.length === 0 ? html`<${Empty}>No key signs here: see signers in the settings.<//>` : html`<${Table} rows=${rows} label="Keys" keyOf=${(s) => s.chain + s.address} columns=${[
      { name: 'address', show: (s) => html`<${Hash} of=${s.address} to=${'/intents?signer=' + s.address} />` }, { name: 'chain', show: (s) => s.chain }, { name: 'state', show: (s) => html`<${State} of=${s.status} title=${s.reason} />` },
      { name: 'balance', class: 'num', show: (s) => html`<span class=${s.balance && BigInt(s.balance) < BigInt(s.threshold || 0) ? 'state bad' : ''}>${s.balance ? amount(s.balance) : 'not seen yet'}</span>` }, { name: 'threshold', class: 'num', show: (s) => amount(s.threshold) },
      { name: 'failures', class: 'num', show: (s) => s.failures }, { name: 'pools', show: (s) => s.pools.join(', ') }, { name: 'since', show: (s) => html`<${Time} at=${s.since} />` }, { name: 'reason', show: (s) => s.reason || '' }, { name: 'by', show: (s) => s.actor || '' },
      { name: 'orders', show: (s) => (s.status === 'serving' ? html`${order(s, 'pause', 'Pause')} ${order(s, 'drain', 'Drain')}` : order(s, 'resume', 'Resume')) },
    ]} />`}`
}
