import { el, icon, icons } from './dom.js'
import { block, line, webAddress } from './text.js'

/** @import { Consent, Network, Service, Variable } from './state.js' */

// The service that each server has: itself. No other can have this id.
const builtIn = 'tidegate'

/**
 * What the service makes for whoever signs up. Of this server itself it is an organization.
 * @param {Service | undefined} service
 */
export function thingOf(service) {
  return service?.id === builtIn ? 'organization' : 'account'
}

/**
 * @type {Record<'head' | 'says' | 'drawing' | 'started' | 'grants' | 'metadata' | 'requester' | 'legal',
 *   (consent: Consent) => HTMLElement | null>}
 */
export const sections = {
  head({ kind, service, account_name }) {
    const name = foreign(service.name, 80)
    const account = foreign(account_name, 100)
    const website = webAddress(service.website)
    const question =
      kind === 'login'
        ? el('h1', { tabindex: -1 }, 'Log in to ', name, '’s dashboard as ', account, '?')
        : el('h1', { tabindex: -1 }, `Create an ${thingOf(service)} at `, name, '?')
    // A screen reader puts spaces around the boxes that names have, so the heading has its text as a label.
    question.setAttribute('aria-label', question.textContent ?? '')
    const from = website ? outside(website, website.host) : foreign(service.website, 120)
    return el(
      'header',
      { class: 'head' },
      logo(service),
      el('p', { class: 'eyebrow' }, kind === 'login' ? 'Dashboard login' : 'Sign-up by an agent'),
      question,
      el('p', { class: 'from' }, from, markOf(service)),
    )
  },

  says({ service }) {
    const text = block(service.description, { lines: 12, columns: 600 })
    if (text.trim() === '') return null
    const quote = el('blockquote', { class: 'about foreign', dir: 'auto' }, text)
    return section('says', heading('says', 'In the service’s own words'), quote)
  },

  drawing({ service: { branding } }) {
    const art = block(branding?.ascii_art, { lines: 60, columns: 160 })
    if (art.trim() === '') return null
    const label = 'Text drawing by the service'
    const box = el(
      'div',
      { class: 'drawing', role: 'img', 'aria-label': label },
      el('pre', { 'aria-hidden': 'true', class: 'foreign' }, art),
    )
    // The keyboard must reach a box that scrolls, and need not stop at one that does not.
    const observer = new ResizeObserver(() => {
      const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight
      if (scrolls) box.tabIndex = 0
      else box.removeAttribute('tabindex')
    })
    observer.observe(box)
    return el('div', { class: 'joined' }, box)
  },

  started({ confirmation_code, requested_by: { network } }) {
    const code = line(confirmation_code, 40)
    return section(
      'started',
      network?.same === true ? null : warning(network),
      code &&
        el(
          'div',
          { class: 'code', role: 'group', 'aria-labelledby': 'code-title' },
          el('span', { class: 'code-title', id: 'code-title' }, 'Confirmation code'),
          el('span', { class: 'digits' }, code),
        ),
      heading('started', 'Did you start this yourself?'),
      el(
        'p',
        { class: 'question' },
        'Approve only if you started this yourself, in a tool that you are using now. This page does not know who you are: anyone with the link can approve. If somebody sent you the link, decline: they would get what you approve.',
      ),
      code &&
        el(
          'p',
          { class: 'comparing' },
          'Your tool shows the same code. Compare them to tell your own requests apart. A matching code does not protect you from a link that somebody sent you: they can send the code too.',
        ),
    )
  },

  grants: (consent) =>
    section('grants', heading('grants', 'If you approve'), grantsOf[consent.kind](consent)),

  metadata({ metadata, service }) {
    const members = Object.entries(metadata ?? {}).slice(0, 20)
    if (members.length === 0) return null
    const rows = members.flatMap(([name, value]) => [
      el('dt', {}, foreign(name, 60)),
      el('dd', {}, foreign(typeof value === 'string' ? value : JSON.stringify(value), 160)),
    ])
    const title = heading('metadata', 'Your agent tells ', foreign(service.name, 80))
    return section('metadata joined', title, el('dl', {}, ...rows))
  },

  requester({ requested_by: { ip_address, user_agent, at, network } }) {
    const time = new Date(at)
    const isTime = !Number.isNaN(time.getTime())
    const requested =
      isTime && time.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })
    const rows = [
      ['IP address', foreign(ip_address ?? 'unknown', 60)],
      ['Network', networkText(network)],
      ['Program', foreign(user_agent ?? 'not given', 200)],
      ['Requested', requested || 'unknown'],
    ]
    const terms = rows.map(([term = '', value]) =>
      el('div', {}, el('dt', {}, term), el('dd', {}, value)),
    )
    return section('requester', heading('requester', 'Who is asking'), el('dl', {}, ...terms))
  },

  legal({ service: { consent } }) {
    const links = Object.entries({ Terms: consent?.terms_url, Privacy: consent?.privacy_url })
      .filter(([, address]) => address)
      .map(([name, address]) => {
        const url = webAddress(address)
        const where = el('span', { class: 'where' }, url ? url.host : foreign(address, 120))
        return el('span', {}, url ? outside(url, name) : name, ' ', where)
      })
    return links.length > 0 ? el('p', { class: 'legal joined' }, ...links) : null
  },
}

/**
 * @param {string} name the class, and with `-title` the id of the heading that names the section
 * @param {...(HTMLElement | '' | null)} children
 */
function section(name, ...children) {
  const [id] = name.split(' ')
  return el('section', { class: name, 'aria-labelledby': `${id}-title` }, ...children)
}

/**
 * @param {string} id
 * @param {...(Node | string)} title
 */
function heading(id, ...title) {
  return el('h2', { id: `${id}-title` }, ...title)
}

/** @param {Service} service */
function markOf({ branding, verified_domain }) {
  if (branding?.verified === true)
    return el('span', { class: 'mark verified' }, icon(icons.verified, 'small'), 'Verified service')
  const text = verified_domain ? 'Website confirmed, service not verified' : 'Not verified'
  return el('span', { class: 'mark unverified' }, icon(icons.unverified, 'small'), text)
}

/** @param {Network | undefined} network of the requester, which is another one, or not known */
function warning(network) {
  return el(
    'div',
    { class: 'warning' },
    el('h2', { id: 'elsewhere-title' }, 'This did not come from your network'),
    el('p', { id: 'elsewhere' }, whence(network)),
  )
}

/** @param {Network | undefined} network */
function whence(network) {
  if (network?.same !== false) return 'The server cannot tell which network this request came from.'
  const origin = originOf(network)
  const from = `It came from a different network than this browser’s${origin && `: ${origin}`}.`
  return `${from} That is normal for a tool that runs in the cloud, but it also happens when somebody else sends you a link.`
}

/**
 * Where the request came from, as far as that is known.
 * @param {Network} network
 */
function originOf({ country, operator }) {
  return [country, operator].flatMap((text) => line(text, 80) || []).join(', ')
}

/** @param {Network | undefined} network */
function networkText(network) {
  if (network?.same === true) return 'same as this browser’s'
  if (network?.same !== false) return 'unknown'
  const origin = originOf(network)
  if (!origin) return 'different from this browser’s'
  // The licence of the data asks for this link.
  const source = outside(new URL('https://db-ip.com'), 'IP Geolocation by DB-IP')
  return el('span', {}, 'different from this browser’s: ', foreign(origin, 160), ' (', source, ')')
}

/** @param {Service} service */
function logo({ name, branding }) {
  const [letter = ''] = line(name, 40)
  const initial = el('span', { class: 'logo', 'aria-hidden': 'true' }, letter.toUpperCase())
  const url = webAddress(branding?.logo_url)
  if (!url) return initial
  const img = el('img', {
    class: 'logo',
    alt: '',
    width: 64,
    height: 64,
    referrerpolicy: 'no-referrer',
  })
  img.addEventListener('error', () => img.replaceWith(initial))
  img.setAttribute('src', url.href)
  return img
}

/**
 * A link that leads away, in a tab of its own that learns nothing of this page.
 * @param {URL} url
 * @param {...(Node | string)} children
 */
function outside(url, ...children) {
  return el(
    'a',
    { href: url.href, target: '_blank', rel: 'noopener noreferrer nofollow' },
    ...children,
  )
}

/** @type {Record<Consent['kind'], (consent: Consent) => HTMLElement>} */
const grantsOf = {
  login({ service, account_name }) {
    const host = webAddress(service.dashboard_login_url)?.host ?? 'its dashboard'
    const account = el('strong', {}, foreign(account_name, 100))
    return el(
      'ul',
      { class: 'points' },
      el('li', {}, 'This browser opens ', el('strong', {}, host), ', logged in as ', account, '.'),
      el('li', {}, 'This covers one login. The next one needs your approval again.'),
    )
  },

  signup({ service, account_name, variables = [] }) {
    const account = el('strong', {}, foreign(account_name, 100))
    const creates = ` creates an ${thingOf(service)} called `
    return el(
      'p',
      {},
      foreign(service.name, 80),
      creates,
      account,
      `. ${receives(service, variables)}`,
    )
  },
}

/**
 * @param {Service} service
 * @param {Variable[]} variables
 */
function receives(service, variables) {
  if (variables.length === 0) return 'Your agent receives no credentials.'
  if (service.id !== builtIn) return 'Your agent receives these once, encrypted:'
  return 'With the secret keys, your agent has full access to it. It receives these once, encrypted:'
}

/**
 * Text of others inside a sentence of ours, which it cannot turn around.
 * @param {unknown} text
 * @param {number} max
 */
function foreign(text, max) {
  return el('bdi', { class: 'foreign' }, line(text, max))
}
