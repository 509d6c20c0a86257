import { el, icon } from './dom.js'
import { icons } from './icons.js'
import { block, line, webAddress } from './text.js'

/** @typedef {import('./state.js').Consent} Consent */

/**
 * What the service makes for whoever signs up. Of this server itself it is an organization.
 * @param {import('./state.js').Service | undefined} service
 */
export function thingOf(service) {
  return service?.id === builtIn ? 'organization' : 'account'
}

/** The service that each server has: itself. No other can have this id. */
const builtIn = 'tidegate'

/**
 * Who the service is and what is asked.
 * @param {Consent} consent
 */
export function serviceHead({ kind, service, account_name }) {
  const name = foreign(service.name, 80)
  const account = foreign(account_name, 100)
  const question =
    kind === 'login'
      ? el('h1', { tabindex: -1 }, 'Log in to ', name, '’s dashboard as ', account, '?')
      : el('h1', { tabindex: -1 }, `Create an ${thingOf(service)} at `, name, '?')
  return el(
    'header',
    { class: 'head' },
    logo(service),
    el('p', { class: 'eyebrow' }, kind === 'login' ? 'Dashboard login' : 'Sign-up by an agent'),
    question,
    el('p', { class: 'from' }, website(service.website), mark(service.branding?.verified === true)),
    el('p', { class: 'about foreign', dir: 'auto' }, block(service.description, { lines: 12, columns: 600 })),
  )
}

/** @param {import('./state.js').Service} service */
function logo({ name, branding }) {
  const initial = el(
    'span',
    { class: 'logo', 'aria-hidden': 'true' },
    [...line(name, 40)][0]?.toUpperCase() ?? '',
  )
  const url = webAddress(branding?.logo_url)
  if (!url) return initial
  const img = el('img', { class: 'logo', alt: '', width: 64, height: 64, referrerpolicy: 'no-referrer' })
  img.addEventListener('error', () => img.replaceWith(initial))
  img.setAttribute('src', url.href)
  return img
}

/** @param {boolean} verified */
function mark(verified) {
  return el(
    'span',
    { class: `mark ${verified ? 'verified' : 'unverified'}` },
    icon(verified ? icons.verified : icons.unverified, 'small'),
    verified ? 'Verified service' : 'Not verified',
  )
}

/** @param {unknown} address */
function website(address) {
  const url = webAddress(address)
  return url ? outside(url, url.host) : foreign(address, 120)
}

/**
 * A link that leads away, in a tab of its own that learns nothing of this page.
 * @param {URL} url
 * @param {...(Node | string)} children
 */
function outside(url, ...children) {
  return el('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer nofollow' }, ...children)
}

/** @param {import('./state.js').Service} service */
export function asciiArt({ branding }) {
  const art = block(branding?.ascii_art, { lines: 60, columns: 160 })
  if (art.trim() === '') return null
  const label = 'A drawing by the service, made of characters'
  const box = el(
    'div',
    { class: 'drawing', role: 'img', 'aria-label': label },
    el('pre', { 'aria-hidden': 'true', class: 'foreign' }, art),
  )
  new ResizeObserver(() => reachable(box)).observe(box)
  return el('div', { class: 'joined' }, box)
}

/**
 * A box that scrolls must be reached by the keyboard, and one that does not would be a stop for nothing.
 * @param {HTMLElement} box
 */
function reachable(box) {
  const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight
  if (scrolls) box.tabIndex = 0
  else box.removeAttribute('tabindex')
}

/** @param {Consent} consent */
export function codeSection({ confirmation_code }) {
  return el(
    'section',
    { class: 'code joined', 'aria-labelledby': 'code-title' },
    el('h2', { id: 'code-title' }, 'Compare this code'),
    el('p', { class: 'digits' }, line(confirmation_code, 40)),
    el(
      'p',
      {},
      'The terminal in which this began shows the same. If it differs, or you did not start this, decline.',
    ),
  )
}

/** @param {Consent} consent */
export function grantsSection(consent) {
  const { kind, service, account_name } = consent
  const parts = kind === 'login' ? loginGrants(service, account_name) : signupGrants(service, account_name)
  return el(
    'section',
    { class: 'grants', 'aria-labelledby': 'grants-title' },
    el('h2', { id: 'grants-title' }, 'If you approve'),
    ...parts,
  )
}

/**
 * @param {import('./state.js').Service} service
 * @param {string} accountName
 */
function loginGrants(service, accountName) {
  const host = webAddress(service.dashboard_login_url)?.host ?? 'its dashboard'
  return [
    el(
      'ul',
      { class: 'points' },
      el(
        'li',
        {},
        'This browser goes to ',
        el('strong', {}, host),
        ', logged in as ',
        el('strong', {}, foreign(accountName, 100)),
        '.',
      ),
      el('li', {}, 'That is for this one login; the next one needs your approval again.'),
    ),
  ]
}

/**
 * @param {import('./state.js').Service} service
 * @param {string} accountName
 */
function signupGrants(service, accountName) {
  const values = valuesOf(service)
  return [
    el(
      'p',
      {},
      foreign(service.name, 80),
      ` creates an ${thingOf(service)} called `,
      el('strong', {}, foreign(accountName, 100)),
      `. ${receives(service, values)}`,
    ),
    values.length > 0 ? el('ul', { class: 'values' }, ...values.map(valueItem)) : null,
  ]
}

/**
 * @param {import('./state.js').Service} service
 * @param {Value[]} values
 */
function receives(service, values) {
  if (values.length === 0) return 'Your agent receives no credentials.'
  if (service.id !== builtIn) return 'Your agent receives, encrypted and once:'
  return 'With the secret keys your agent may do everything in it. It receives, encrypted and once:'
}

/**
 * @typedef {{ key: string, name: string, secret: boolean }} Value
 * @param {import('./state.js').Service} service
 * @returns {Value[]}
 */
function valuesOf({ id, env_vars, dashboard_login_url }) {
  const own = Array.isArray(env_vars) ? env_vars.slice(0, 60) : []
  if (!dashboard_login_url) return own
  const key = `${line(id, 32).toUpperCase().replaceAll('-', '_')}_GATE_AGENT_TOKEN`
  const name = 'Agent token: asks for dashboard logins. You approve each.'
  return [...own, { key, name, secret: true }]
}

/** @param {Value} value */
function valueItem({ key, name, secret }) {
  return el(
    'li',
    {},
    el('code', { class: 'foreign' }, line(key, 128)),
    el('span', { class: 'meaning foreign', dir: 'auto' }, line(name, 200)),
    el('span', { class: secret === true ? 'secret' : 'open' }, secret === true ? 'Secret' : 'Not secret'),
  )
}

/**
 * What the agent tells the service along with it, as plain text; null for nothing.
 * @param {Consent} consent
 */
export function metadataSection({ metadata, service }) {
  const members = Object.entries(metadata ?? {}).slice(0, 20)
  if (members.length === 0) return null
  const rows = members.flatMap(([name, value]) => [
    el('dt', {}, foreign(name, 60)),
    el('dd', {}, foreign(typeof value === 'string' ? value : JSON.stringify(value), 160)),
  ])
  return el(
    'section',
    { class: 'told joined', 'aria-labelledby': 'told-title' },
    el('h2', { id: 'told-title' }, 'Your agent tells ', foreign(service.name, 80)),
    el('dl', {}, ...rows),
  )
}

/** @param {Consent} consent */
export function requesterSection({ requested_by: { ip_address, user_agent, at } }) {
  const time = new Date(at)
  const known = !Number.isNaN(time.getTime())
  const rows = [
    ['Address', foreign(ip_address ?? 'unknown', 60)],
    ['Program', foreign(user_agent ?? 'did not say', 200)],
    [
      'Asked',
      known ? time.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' }) : 'unknown',
    ],
  ]
  return el(
    'section',
    { class: 'asking', 'aria-labelledby': 'asking-title' },
    el('h2', { id: 'asking-title' }, 'Who is asking'),
    el('dl', {}, ...rows.map(([term = '', value]) => el('div', {}, el('dt', {}, term), el('dd', {}, value)))),
  )
}

/** @param {import('./state.js').Service} service */
export function legalLinks({ consent }) {
  const links = [legalLink('Terms', consent?.terms_url), legalLink('Privacy', consent?.privacy_url)]
  return links.some(Boolean) ? el('p', { class: 'legal joined' }, ...links) : null
}

/**
 * @param {string} name
 * @param {unknown} address
 */
function legalLink(name, address) {
  if (!address) return null
  const url = webAddress(address)
  const shown = url ? outside(url, name) : name
  return el('span', {}, shown, ' ', el('span', { class: 'where' }, url ? url.host : foreign(address, 120)))
}

/**
 * Text of others inside a sentence of ours, which it cannot turn around.
 * @param {unknown} text
 * @param {number} max
 */
function foreign(text, max) {
  return el('bdi', { class: 'foreign' }, line(text, max))
}
