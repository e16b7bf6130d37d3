// Groups of a sender: their members, and how to stop one.
import { html, useState } from '../vendor/htm-preact.js'
import { get } from '../api.js'
import { Copied, Empty, Facts, Hash, State, Table, Time, Trouble, Ways, useRead } from '../elements.js'
import { use } from '../state.js'
import { go, route, setQuery } from '../route.js'
import { amount } from '../words.js'

export function Groups() {
  const { query: q } = use(route)
  const sender = q.get('sender')
  const list = useRead(() => (sender ? get('delivery', `/v1/senders/${sender}/groups`) : null), [sender])
  const rows = list.value?.groups || []
  const find = (e) => { e.preventDefault(); setQuery({ sender: e.target.sender.value.trim() }) }
  return html`<h1>Groups</h1>
    <form class="bar" onSubmit=${find}><label>sender<input name="sender" size="44" value=${sender || ''} required /></label><button class="main">show</button></form>
    <${Trouble} of=${list.trouble} again=${list.again} />
    ${!sender ? html`<${Empty}>A group is the transactions of one sender that share a nonce key. Whose groups?<//>` : rows.length === 0 ? list.value && html`<${Empty}>This sender has no group.<//>` : html`<${Table} rows=${rows} label="Groups" onOpen=${(g) => go(`/groups/${sender}/${g.groupId}`)} keyOf=${(g) => g.groupId} columns=${[
      { name: 'group', show: (g) => html`<${Hash} of=${g.groupId} to=${`/groups/${sender}/${g.groupId}`} />` }, { name: 'memo', show: (g) => g.display?.memo || '' }, { name: 'chain', show: (g) => g.chainId },
      { name: 'starts', show: (g) => html`<${Time} at=${g.startAt} />` }, { name: 'ends', show: (g) => html`<${Time} at=${g.endAt} />` }, { name: 'next payment', show: (g) => html`<${Time} at=${g.nextPaymentAt} />` },
    ]} />`}`
}

export function Group({ of: [sender, id] }) {
  const path = `/v1/senders/${sender}/groups/${id}`
  const shown = useRead(() => get('delivery', path), [sender, id], 5000)
  const health = useRead(() => get('delivery', '/health'), [])
  const [until, setUntil] = useState(3600)
  const g = shown.value
  if (!g) return html`<${Trouble} of=${shown.trouble} again=${shown.again} />`
  const plan = g.cancelPlan
  const typed = {
    domain: { name: 'Tempo Watchtower', version: '1', chainId: g.chainId },
    primaryType: 'CancelGroup', message: { deployment: health.value?.deployment, sender, groupId: id, expires: Math.floor(Date.now() / 1000) + until },
  }
  return html`<h1>Group <${Hash} of=${id} /></h1><p><${Ways} part="delivery" path=${path} cli=${`watchtower groups get ${sender} ${id}`} /></p>
    <div class="panel"><${Facts} of=${[['sender', html`<${Hash} of=${sender} />`], ['chain', g.chainId], ['nonce key', g.nonceKey], ['memo', g.display?.memo], ['starts', html`<${Time} at=${g.startAt} />`], ['ends', html`<${Time} at=${g.endAt} />`]]} /></div>
    <div class="panel"><h2>To stop it</h2>
      <p>Nobody can stop a signed transaction but its owner: use up the nonces ${plan.nonces.length ? html`<strong>${plan.nonces[0]} to ${plan.nonces.at(-1)}</strong>` : 'of the members'} of the nonce key on the chain, or let the owner sign a cancel, which makes this service stop sending.</p>
      <p>The chain wants nonce ${plan.currentNonce === null ? 'unknown: ' + (plan.reason || '') : plan.currentNonce}. ${plan.alreadyInvalidated ? 'It is past all members: nothing can land any more.' : ''}</p>
      <p><label>The owner’s signature holds for <select onChange=${(e) => setUntil(Number(e.target.value))}><option value="3600">an hour</option><option value="86400" selected=${until === 86400}>a day</option></select></label>
        <${Copied} text=${`watchtower groups cancel-message ${sender} ${id} --chain ${g.chainId} --expires ${typed.message.expires}`} label="copy the command that prints the typed data" /></p></div>
    <div class="panel"><h2>Members</h2><${Table} rows=${g.members} label="Members" onOpen=${(m) => go(`/transactions/${g.chainId}/${m.txHash}`)} keyOf=${(m) => m.txHash} columns=${[
      { name: 'hash', show: (m) => html`<${Hash} of=${m.txHash} to=${`/transactions/${g.chainId}/${m.txHash}`} />` }, { name: 'state', show: (m) => html`<${State} of=${m.status} />` }, { name: 'nonce', class: 'num', show: (m) => amount(m.nonce) },
      { name: 'opens', show: (m) => html`<${Time} at=${m.eligibleAt} />` }, { name: 'closes', show: (m) => html`<${Time} at=${m.expiresAt} />` }, { name: 'waits for', show: (m) => (m.waitingForNonce !== undefined ? 'nonce ' + m.waitingForNonce : '') },
    ]} /></div>`
}
