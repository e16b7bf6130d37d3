// What runs here, and who may use it.
import { html } from '../vendor/htm-preact.js'
import { act, get } from '../api.js'
import { Copied, Facts, Order, State, Table, Time, Trouble, useRead } from '../elements.js'
import { session, use } from '../state.js'
import { span } from '../words.js'

export function Settings() {
  const s = use(session)
  const health = useRead(() => get('delivery', '/health'), [])
  const keys = useRead(() => get('operate', '/admin/keys'), [])
  const level = useRead(() => get('operate', '/admin/log-level'), [])
  const h = health.value
  return html`<h1>Settings</h1><${Trouble} of=${health.trouble || keys.trouble || level.trouble} />
    ${h && html`<div class="panel"><h2>Program</h2><${Facts} of=${[['program', s.program.name], ['version', h.version], ['commit', h.build?.gitSha], ['built', h.build?.buildTimestamp], ['running for', span(h.uptimeSeconds)], ['chains', h.chains.join(', ')], ['endpoints', h.rpcEndpoints], ['deployment', h.deployment]]} /></div>
    <div class="panel"><h2>In force</h2><${Facts} of=${Object.entries({ ...pairs('scheduler', h.scheduler), ...pairs('watcher', h.watcher), ...pairs('broadcaster', h.broadcaster), ...pairs('api', h.api) })} />
      <p>All settings with their origins: <code>${s.program.name} config show</code> <${Copied} text=${s.program.name + ' config show'} label="copy" /></p></div>`}
    ${level.value && html`<div class="panel"><h2>Log level</h2><p>${level.value.level} ${['debug', 'info', 'warn'].filter((l) => l !== level.value.level).map((l) => html`<${Order} label=${l} what=${'Log at ' + l} reason=${false} does=${() => act('Log level', 'PUT', 'operate', '/admin/log-level', { level: l }).then(level.again)}><p>Until this process is started again.</p><//> `)}</p></div>`}
    ${keys.value && html`<div class="panel"><h2>API keys</h2><${Table} rows=${keys.value.keys} label="API keys" keyOf=${(k) => k.id} columns=${[
      { name: 'name', show: (k) => k.name }, { name: 'client', show: (k) => k.client }, { name: 'scopes', show: (k) => k.scopes.join(', ') }, { name: 'state', show: (k) => html`<${State} of=${k.revokedAt ? 'canceled' : 'active'} title=${k.reason} />` },
      { name: 'senders', class: 'num', show: (k) => k.senders?.length || '' }, { name: 'made', show: (k) => html`<${Time} at=${k.createdAt} />` }, { name: 'ends', show: (k) => html`<${Time} at=${k.expiresAt} />` },
      { name: 'orders', show: (k) => !k.revokedAt && html`<${Order} danger label="revoke" what=${'Revoke the key ' + k.name} reason=${false} does=${() => act('Revoke', 'DELETE', 'operate', '/admin/keys/' + k.id).then(keys.again)}><p>It gives no access from the next moment on, at any replica.</p><//>` },
    ]} /></div>`}
    <div class="panel"><h2>Licence</h2><p>Apache 2.0. The pages use Preact and htm, signals and uPlot: see <a href="vendor/LICENSES.txt">their licences</a>.</p></div>`
}

const pairs = (of, members) => Object.fromEntries(Object.entries(members || {}).map(([k, v]) => [of + ' ' + k, String(v)]))
