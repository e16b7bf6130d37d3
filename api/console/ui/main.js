// The console: signs in, draws the frame and the page of the address.
import { html, render, useEffect, useState } from './vendor/htm-preact.js'
import { get, signIn, signOut, whoami } from './api.js'
import { halted, heads, notices, session, tell, theme, times, use } from './state.js'
import { go, href, route } from './route.js'
import { Trouble } from './elements.js'
import { Overview } from './pages/overview.js'
import { Transactions } from './pages/transactions.js'
import { Transaction } from './pages/transaction.js'
import { Intents } from './pages/intents.js'
import { Intent } from './pages/intent.js'
import { Groups, Group } from './pages/groups.js'
import { Lanes, Lane } from './pages/lanes.js'
import { Signers } from './pages/signers.js'
import { Webhooks, Webhook } from './pages/webhooks.js'
import { Readers } from './pages/readers.js'
import { Stream } from './pages/stream.js'
import { Safeguards } from './pages/safeguards.js'
import { Settings } from './pages/settings.js'

// Pages: path, name in the menu, part that it needs, letter after g.
const pages = [
  ['/', 'Overview', '', 'o', Overview],
  ['/transactions', 'Transactions', 'delivery', 't', Transactions],
  ['/intents', 'Intents', 'relay', 'i', Intents],
  ['/groups', 'Groups', 'delivery', 'g', Groups],
  ['/lanes', 'Lanes', 'relay', 'l', Lanes],
  ['/signers', 'Keys', 'relay', 'k', Signers],
  ['/webhooks', 'Webhooks', 'relay', 'w', Webhooks],
  ['/safeguards', 'Safeguards', 'relay', 's', Safeguards],
  ['/readers', 'Read models', '', 'r', Readers],
  ['/stream', 'Events', 'delivery', 'e', Stream],
  ['/settings', 'Settings', '', 'c', Settings],
]
const details = [
  [/^\/transactions\/(\w+)\/(0x\w+)$/, Transaction], [/^\/intents\/(0x\w+)$/, Intent], [/^\/groups\/(0x\w+)\/(0x\w+)$/, Group],
  [/^\/lanes\/(.+)$/, Lane], [/^\/webhooks\/(\w+)$/, Webhook],
]

const offered = (s) => pages.filter(([, , part]) => !part || s.parts.includes(part))

function Page() {
  const { path } = use(route)
  for (const [, name, , , View] of pages.filter((p) => p[0] === path)) {
    document.title = name + ' · Watchtower'
    return html`<${View} />`
  }
  for (const [form, View] of details) {
    const found = path.match(form)
    if (found) return html`<${View} key=${path} of=${found.slice(1).map(decodeURIComponent)} />`
  }
  return html`<div class="empty"><h1>There is no page ${path}</h1><a href="#/">To the overview</a></div>`
}

function SignIn() {
  const [key, setKey] = useState('')
  const [trouble, setTrouble] = useState(null)
  const submit = async (e) => {
    e.preventDefault()
    setTrouble(null)
    try { await signIn(key) } catch (problem) { setTrouble(problem) }
  }
  const s = use(session)
  return html`<main class="login"><h1>Watchtower</h1>
    <p>Sign in with an API key that has the scope <code>audit</code> to look, or <code>admin</code> to act.</p>
    <form onSubmit=${submit}><label>API key<input type="password" autocomplete="current-password" required value=${key} onInput=${(e) => setKey(e.target.value)} style=${{ width: '100%' }} /></label>
    <${Trouble} of=${trouble} /><p><button class="main">Sign in</button></p></form>
    <p class="dim">No key yet: <code>${s.program.name} keys create --name console --scopes audit,admin</code></p></main>`
}

function Search() {
  const find = (e) => {
    e.preventDefault()
    const asked = e.target.q.value.trim()
    if (/^0x[0-9a-fA-F]{64}$/.test(asked)) go('/transactions?hash=' + asked)
    else if (/^0x[0-9a-fA-F]{32}$/.test(asked)) go('/intents/' + asked)
    else if (/^0x[0-9a-fA-F]{40}$/.test(asked)) go('/transactions?sender=' + asked)
    else go('/intents?key=' + encodeURIComponent(asked))
  }
  return html`<form role="search" onSubmit=${find}><input id="search" name="q" type="search" placeholder="hash, sender, intent, key  ( / )" aria-label="Find a transaction, a sender or an intent" size="30" /></form>`
}

const choices = { theme: ['auto', 'light', 'dark'], times: ['relative', 'absolute', 'block'] }
function Choice({ name, label, of }) {
  const value = use(of)
  return html`<label class="dim">${label} <select onChange=${(e) => { of.value = e.target.value }}>${choices[name].map((c) => html`<option selected=${c === value}>${c}</option>`)}</select></label>`
}

const keysHelp = [['/', 'find'], ['j, k', 'next, previous row'], ['Enter', 'open the row'], ['g then t, i, …', 'go to a page'], ['p', 'pause live rows'], ['?', 'this help']]
function useKeyboard(s, setHelp) {
  useEffect(() => {
    let goes = false
    const press = (e) => {
      if (e.target.matches('input, select, textarea') || e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return
      if (goes) {
        goes = false
        const to = offered(s).find((p) => p[3] === e.key)
        if (to) return go(to[0])
      }
      if (e.key === 'g') goes = true
      else if (e.key === '/') { e.preventDefault(); document.getElementById('search')?.focus() }
      else if (e.key === '?') setHelp(true)
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [s])
}

function Help({ close }) {
  return html`<dialog open aria-label="Keys"><h2>Keys</h2><dl class="facts">${keysHelp.map(([k, what]) => html`<div><dt><kbd>${k}</kbd></dt><dd>${what}</dd></div>`)}</dl>
    <p>Pages: ${pages.map((p) => html`<span><kbd>g ${p[3]}</kbd> ${p[1]} </span>`)}</p><div class="buttons"><button onClick=${close} autofocus>close</button></div></dialog>`
}

// watch keeps what every page shows: halts, and the chains' heads.
function useWatch(s) {
  useEffect(() => {
    const look = async () => {
      if (document.hidden) return
      try {
        if (s.parts.includes('relay')) halted.value = (await get('operate', '/admin/safeguards')).halts
        const health = await get('delivery', '/health')
        const seen = { ...heads.value }
        for (const h of health.heads || []) {
          const before = seen[h.chainId]
          if (before && h.head > before.number) seen[h.chainId] = { number: h.head, time: health.now, every: Math.max((health.now - before.time) / (h.head - before.number), 0.05) }
          else if (!before) seen[h.chainId] = { number: h.head, time: health.now }
        }
        heads.value = seen
      } catch { /* the page itself says what fails */ }
    }
    look()
    const timer = setInterval(look, 10000)
    return () => clearInterval(timer)
  }, [s])
}

function Shell() {
  const s = use(session), at = use(route), stops = use(halted)
  const [help, setHelp] = useState(false)
  useKeyboard(s, setHelp)
  useWatch(s)
  return html`<div class="shell">
    <nav class="side" aria-label="Pages"><div class="name">Watchtower <span class="dim">${s.program.name === 'relayer' ? 'relayer' : ''}</span></div>
      ${offered(s).map(([path, name]) => html`<a href=${href(path)} aria-current=${at.path === path || (path !== '/' && at.path.startsWith(path + '/')) ? 'page' : null}>${name}</a>`)}</nav>
    <div>
      ${stops.length > 0 && html`<div class="halt" role="alert">Halted: ${stops.map((h) => h.scope.kind + (h.scope.chain ? ' ' + h.scope.chain : '') + (h.scope.client ? ' ' + h.scope.client : '') + ' by ' + h.actor + ', ' + h.reason).join('; ')}. <a href="#/safeguards">Safeguards</a></div>`}
      <main><header class="top"><${Search} /><span class="grow"></span><${Choice} name="times" label="times" of=${times} /><${Choice} name="theme" label="colours" of=${theme} />
        <button onClick=${() => setHelp(true)} aria-label="Keys">?</button>
        ${s.signed ? html`<span class="dim">${s.key}${s.acts ? '' : ' (looks only)'}</span><button onClick=${() => signOut().catch((e) => tell(e.message, true))}>sign out</button>` : html`<span class="dim">no keys: everybody here may act</span>`}</header>
        <${Page} /></main>
    </div>
    ${help && html`<${Help} close=${() => setHelp(false)} />`}
  </div>`
}

function App() {
  const s = use(session), said = use(notices)
  return html`${!s ? html`<p class="boot">Loading …</p>` : s.signed || s.keyless ? html`<${Shell} />` : html`<${SignIn} />`}
    <div class="notices" role="status">${said.map((n) => html`<div key=${n.id} class=${n.bad ? 'bad' : ''}>${n.text}</div>`)}</div>`
}

whoami().catch((e) => tell('The service does not answer: ' + e.message, true))
render(html`<${App} />`, document.getElementById('app'))
