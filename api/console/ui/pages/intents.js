// All intents that the relay keeps.
import { html, useState } from '../vendor/htm-preact.js'
import { act } from '../api.js'
import { Hash, Order, State, Time, Ways } from '../elements.js'
import { use } from '../state.js'
import { go, route } from '../route.js'
import { Export, Filter, List, useList, useNews } from './live.js'

const states = ['waiting', 'assigned', 'submitted', 'canceling', 'mined', 'completed', 'failed', 'canceled']
const open_ = (i) => ['waiting', 'assigned', 'submitted'].includes(i.status)

export function Intents() {
  const { query: q } = use(route)
  const asked = { limit: 200, status: q.getAll('status') }
  for (const name of ['client', 'chainId', 'signer', 'pool', 'key', 'hash', 'subject', 'target']) asked[name] = q.get(name)
  const list = useList({ part: 'relay', path: '/v1/intents', member: 'intents', asked })
  const news = useNews('relay', '/v1/events', list.rows[0]?.id)
  const [picked, pick] = useState(new Set())
  const toggle = (id) => pick((was) => { const next = new Set(was); if (!next.delete(id)) next.add(id); return next })
  const columns = [
    { name: 'pick', show: (i) => open_(i) && html`<input type="checkbox" aria-label=${'pick ' + i.id} checked=${picked.has(i.id)} onChange=${() => toggle(i.id)} />` },
    { name: 'intent', show: (i) => html`<${Hash} of=${i.id} to=${'/intents/' + i.id} />` },
    { name: 'state', show: (i) => html`<${State} of=${i.status} />` },
    { name: 'key', show: (i) => i.key }, { name: 'client', show: (i) => i.client || '' }, { name: 'chain', show: (i) => i.chainId },
    { name: 'signer', show: (i) => (i.place || i.signer ? html`<${Hash} of=${i.place?.signer || i.signer} />` : i.pool ? 'pool ' + i.pool : '') },
    { name: 'nonce', class: 'num', show: (i) => i.place?.nonce ?? '' }, { name: 'attempts', class: 'num', show: (i) => i.attempts.length },
    { name: 'subject', show: (i) => i.subject || '' }, { name: 'requested', show: (i) => html`<${Time} at=${i.requestedAt} chain=${i.chainId} />` },
    { name: 'ended by', show: (i) => i.outcome?.reason || '' },
  ]
  const cancel = async (reason) => {
    for (const id of picked) await act('Cancel ' + id.slice(0, 10) + '…', 'POST', 'relay', '/v1/intents/' + id + '/cancel', { reason }).catch(() => {})
    pick(new Set())
    list.again()
  }
  return html`<h1>Intents</h1>
    <${List} list=${list} news=${news} columns=${columns} open=${(i) => go('/intents/' + i.id)} label="Intents, newest first" keyOf=${(i) => i.id}
      empty=${html`<p>No intent matches.</p><p>Create one: <code>relayer intents create --chain 42431 --signer 0x… --to 0x… --value 1</code></p>`}>
      <${Filter} name="status" label="state" options=${states} /><${Filter} name="client" label="client" /><${Filter} name="signer" label="signer" /><${Filter} name="pool" label="pool" /><${Filter} name="key" label="key" /><${Filter} name="subject" label="subject" /><${Filter} name="hash" label="hash" />
      ${picked.size > 0 && html`<${Order} danger label=${`cancel ${picked.size}`} what=${`Cancel ${picked.size} intents`} does=${cancel}><p>An intent that was signed may still land: a no-op competes for its nonce.</p><//>`}
      <${Export} name="intents" rows=${list.rows} columns=${['id', 'status', 'key', 'client', 'chainId', 'signer', 'pool', 'subject', 'txHash', 'requestedAt']} />
      <${Ways} part="relay" path="/v1/intents" cli="relayer intents list" />
    <//>`
}
