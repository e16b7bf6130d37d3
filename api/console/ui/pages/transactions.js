// All transactions that delivery keeps.
import { html, useEffect } from '../vendor/htm-preact.js'
import { get } from '../api.js'
import { Hash, State, Time, Ways } from '../elements.js'
import { tell, use } from '../state.js'
import { go, route } from '../route.js'
import { Export, Filter, List, useList, useNews } from './live.js'

const states = ['queued', 'broadcasting', 'retry_scheduled', 'executed', 'stale_by_nonce', 'expired', 'invalid', 'canceled_locally']

export function Transactions() {
  const { query: q } = use(route)
  const asked = { chainId: q.get('chainId'), sender: q.get('sender'), groupId: q.get('groupId'), status: q.getAll('status'), limit: 200 }
  const list = useList({ part: 'delivery', path: '/v1/transactions', member: 'transactions', asked })
  const news = useNews('delivery', '/v1/events', list.rows[0]?.txHash)
  const open = (t) => go(`/transactions/${t.chainId}/${t.txHash}`)
  useEffect(() => {
    const hash = q.get('hash')
    if (hash) get('delivery', '/v1/transactions/' + hash).then((t) => location.replace('#/transactions/' + t.chainId + '/' + hash), (e) => tell(hash.slice(0, 10) + '…: ' + e.message, true))
  }, [q.get('hash')])
  const columns = [
    { name: 'hash', show: (t) => html`<${Hash} of=${t.txHash} to=${`/transactions/${t.chainId}/${t.txHash}`} />` },
    { name: 'state', show: (t) => html`<${State} of=${t.violated ? 'violated' : t.status} />${t.finalized ? ' final' : ''}` },
    { name: 'chain', show: (t) => t.chainId }, { name: 'sender', show: (t) => html`<${Hash} of=${t.sender} />` },
    { name: 'nonce', class: 'num', show: (t) => t.nonce },
    { name: 'waits for', show: (t) => (t.waitingForNonce !== undefined ? 'nonce ' + t.waitingForNonce : t.parked ? 'its turn' : t.accountHeldAt ? 'its account' : t.nextActionAt ? html`<${Time} at=${t.nextActionAt} chain=${t.chainId} />` : '') },
    { name: 'attempts', class: 'num', show: (t) => t.attempts }, { name: 'accepted', show: (t) => html`<${Time} at=${t.acceptedAt} chain=${t.chainId} />` },
    { name: 'last outcome', show: (t) => t.note || t.lastError || '' },
  ]
  return html`<h1>Transactions</h1>
    <${List} list=${list} news=${news} columns=${columns} open=${open} label="Transactions, newest first" keyOf=${(t) => t.chainId + t.txHash}
      empty=${html`<p>No transaction matches.</p><p>Submit one: <code>watchtower tx submit 0x…</code></p>`}>
      <${Filter} name="status" label="state" options=${states} /><${Filter} name="sender" label="sender" /><${Filter} name="groupId" label="group" /><${Filter} name="chainId" label="chain" />
      <${Export} name="transactions" rows=${list.rows} columns=${['chainId', 'txHash', 'status', 'finalized', 'sender', 'nonceKey', 'nonce', 'attempts', 'acceptedAt', 'note']} />
      <${Ways} part="delivery" path="/v1/transactions" cli="watchtower tx list" />
    <//>`
}
