import { el, icon, icons } from './dom.js'
import { multiLine, singleLine, webAddress } from './text.js'

/** @import { Consent, Network, Service, Variable } from './state.js' */

// Reserved id of the service that stands for this server.
const builtInServiceId = 'tidegate'

/**
 * Returns the noun for what a signup creates: an organization at the built-in service, an account elsewhere.
 * @param {Service | undefined} service
 */
export function accountNoun(service) {
  return service?.id === builtInServiceId ? 'organization' : 'account'
}

/**
 * @type {Record<'head' | 'description' | 'asciiArt' | 'started' | 'grants' | 'metadata' | 'requester' | 'legal',
 *   (consent: Consent) => HTMLElement | null>}
 */
export const sections = {
  head({ kind, service, account_name }) {
    const name = untrusted(service.name, 80)
    const account = untrusted(account_name, 100)
    const website = webAddress(service.website)
    const question =
      kind === 'login'
        ? el(
            'h1',
            { tabindex: -1 },
            'Log in to ',
            unbroken(name, '’s'),
            ' dashboard as ',
            unbroken(account, '?'),
          )
        : el('h1', { tabindex: -1 }, `Create an ${accountNoun(service)} at `, unbroken(name, '?'))
    // Screen readers insert spaces around the <bdi> elements, so label the heading with its plain text.
    question.setAttribute('aria-label', question.textContent ?? '')
    const websiteLink = website
      ? externalLink(website, website.host)
      : untrusted(service.website, 120)
    return el(
      'header',
      { class: 'head' },
      logo(service),
      el('p', { class: 'hint' }, kind === 'login' ? 'Dashboard login' : 'Sign-up by an agent'),
      question,
      el('p', { class: 'from' }, websiteLink, verificationBadge(service)),
    )
  },

  description({ service }) {
    const text = multiLine(service.description, { lines: 12, columns: 600 })
    if (text.trim() === '') return null
    const quote = el('blockquote', { class: 'about foreign', dir: 'auto' }, text)
    return section('says', heading('says', 'In the service’s own words'), quote)
  },

  asciiArt({ service: { branding } }) {
    const text = multiLine(branding?.ascii_art, { lines: 60, columns: 160 })
    if (text.trim() === '') return null
    const label = 'Text drawing by the service'
    const box = el(
      'div',
      { class: 'drawing', role: 'img', 'aria-label': label },
      el('pre', { 'aria-hidden': 'true', class: 'foreign' }, text),
    )
    // Focusable while it has scroll bars, so that keyboard users can scroll it.
    const observer = new ResizeObserver(() => {
      const isScrollable = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight
      if (isScrollable) box.tabIndex = 0
      else box.removeAttribute('tabindex')
    })
    observer.observe(box)
    return el('div', { class: 'joined' }, box)
  },

  started({ confirmation_code, requested_by: { network } }) {
    const code = singleLine(confirmation_code, 40)
    return section(
      'started',
      network?.same === true ? null : networkWarning(network),
      code &&
        el(
          'div',
          { class: 'code', role: 'group', 'aria-labelledby': 'code-title' },
          el('span', { class: 'hint', id: 'code-title' }, 'Confirmation code'),
          el('span', { class: 'digits' }, code),
        ),
      heading('started', 'Did you start this yourself?'),
      el(
        'p',
        {},
        'Approve only if you started this yourself, in a tool that you are using now. This page does not know who you are: anyone with the link can approve. If somebody sent you the link, decline: they would get what you approve.',
      ),
      code &&
        el(
          'p',
          { class: 'hint' },
          'Your tool shows the same code. Compare them to tell your own requests apart. A matching code does not protect you from a link that somebody sent you: they can send the code too.',
        ),
    )
  },

  grants: (consent) =>
    section('grants', heading('grants', 'If you approve'), grantContent[consent.kind](consent)),

  metadata({ metadata, service }) {
    const members = Object.entries(metadata ?? {}).slice(0, 20)
    if (members.length === 0) return null
    const rows = members.map(([name, value]) =>
      factRow(
        untrusted(name, 60),
        untrusted(typeof value === 'string' ? value : JSON.stringify(value), 160),
      ),
    )
    const title = heading('metadata', 'Your agent tells ', untrusted(service.name, 80))
    return section('metadata joined', title, el('dl', { class: 'facts' }, ...rows))
  },

  requester({ requested_by: { ip_address, user_agent, at, network } }) {
    const time = new Date(at)
    const isValid = !Number.isNaN(time.getTime())
    const requested =
      isValid && time.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })
    const rows = [
      ['IP address', untrusted(ip_address ?? 'unknown', 60)],
      ['Network', networkText(network)],
      ['Program', untrusted(user_agent ?? 'not given', 200)],
      ['Requested', requested || 'unknown'],
    ]
    const terms = rows.map(([term = '', value]) => factRow(term, value))
    const list = el('dl', { class: 'facts' }, ...terms)
    return section('requester', heading('requester', 'Who is asking'), list)
  },

  legal({ service: { consent } }) {
    const links = Object.entries({ Terms: consent?.terms_url, Privacy: consent?.privacy_url })
      .filter(([, address]) => address)
      .map(([name, address]) => {
        const url = webAddress(address)
        const host = el('span', { class: 'hint' }, url ? url.host : untrusted(address, 120))
        return el('span', {}, url ? externalLink(url, name) : name, ' ', host)
      })
    return links.length > 0 ? el('p', { class: 'legal joined' }, ...links) : null
  },
}

/**
 * @param {string} classes the first one, with `-title`, is the id of the section's heading
 * @param {...(HTMLElement | '' | null)} children
 */
function section(classes, ...children) {
  const [id] = classes.split(' ')
  return el('section', { class: classes, 'aria-labelledby': `${id}-title` }, ...children)
}

/**
 * @param {string} id
 * @param {...(Node | string)} title
 */
function heading(id, ...title) {
  return el('h2', { id: `${id}-title` }, ...title)
}

/**
 * @param {Node | string} term
 * @param {Node | string | undefined} value
 */
function factRow(term, value) {
  return el('div', {}, el('dt', {}, term), el('dd', {}, value))
}

/** @param {Service} service */
function verificationBadge({ branding, verified_domain }) {
  if (branding?.verified === true)
    return el('span', { class: 'badge good' }, icon(icons.verified, 'small'), 'Verified service')
  const text = verified_domain ? 'Website confirmed, service not verified' : 'Not verified'
  return el('span', { class: 'badge warn' }, icon(icons.unverified, 'small'), text)
}

/** @param {Network | undefined} network differs from the browser's, or unknown */
function networkWarning(network) {
  return el(
    'div',
    { class: 'note warn' },
    el('h2', { id: 'elsewhere-title' }, 'This did not come from your network'),
    el('p', { id: 'elsewhere' }, originText(network)),
  )
}

/** @param {Network | undefined} network */
function originText(network) {
  if (network?.same !== false) return 'The server cannot tell which network this request came from.'
  const place = placeOf(network)
  const text = `It came from a different network than this browser’s${place && `: ${place}`}.`
  return `${text} That is normal for a tool that runs in the cloud, but it also happens when somebody else sends you a link.`
}

/**
 * Returns the country and network operator, as far as known.
 * @param {Network} network
 */
function placeOf({ country, operator }) {
  return [country, operator].flatMap((text) => singleLine(text, 80) || []).join(', ')
}

/** @param {Network | undefined} network */
function networkText(network) {
  if (network?.same === true) return 'same as this browser’s'
  if (network?.same !== false) return 'unknown'
  const place = placeOf(network)
  if (!place) return 'different from this browser’s'
  // The license of the data requires this attribution.
  const source = externalLink(new URL('https://db-ip.com'), 'IP Geolocation by DB-IP')
  return el('span', {}, 'different from this browser’s: ', untrusted(place, 160), ' (', source, ')')
}

/** @param {Service} service */
function logo({ name, branding }) {
  const [letter = ''] = singleLine(name, 40)
  const placeholder = el('span', { class: 'logo', 'aria-hidden': 'true' }, letter.toUpperCase())
  const url = webAddress(branding?.logo_url)
  if (!url) return placeholder
  const img = el('img', {
    class: 'logo',
    alt: '',
    width: 64,
    height: 64,
    referrerpolicy: 'no-referrer',
  })
  img.addEventListener('error', () => img.replaceWith(placeholder))
  img.setAttribute('src', url.href)
  return img
}

/**
 * Returns a link that opens in a new tab, without opener and referrer.
 * @param {URL} url
 * @param {...(Node | string)} children
 */
function externalLink(url, ...children) {
  return el(
    'a',
    { href: url.href, target: '_blank', rel: 'noopener noreferrer nofollow' },
    ...children,
  )
}

/** @type {Record<Consent['kind'], (consent: Consent) => HTMLElement>} */
const grantContent = {
  login({ service, account_name }) {
    const host = webAddress(service.dashboard_login_url)?.host ?? 'its dashboard'
    const account = el('strong', {}, untrusted(account_name, 100))
    return el(
      'ul',
      { class: 'points' },
      el('li', {}, 'This browser opens ', el('strong', {}, host), ', logged in as ', account, '.'),
      el('li', {}, 'This covers one login. The next one needs your approval again.'),
    )
  },

  signup({ service, account_name, variables = [] }) {
    const account = el('strong', {}, untrusted(account_name, 100))
    const creates = ` creates an ${accountNoun(service)} called `
    return el(
      'p',
      {},
      untrusted(service.name, 80),
      creates,
      account,
      `. ${credentialsText(service, variables)}`,
    )
  },
}

/**
 * @param {Service} service
 * @param {Variable[]} variables
 */
function credentialsText(service, variables) {
  if (variables.length === 0) return 'Your agent receives no credentials.'
  if (service.id !== builtInServiceId) return 'Your agent receives these once, encrypted:'
  return 'With the secret keys, your agent has full access to it. It receives these once, encrypted:'
}

/**
 * Keeps the suffix on the line on which the name ends.
 * @param {HTMLElement} name
 * @param {string} suffix
 */
function unbroken(name, suffix) {
  return el('span', { class: 'unbroken' }, name, suffix)
}

/**
 * Returns untrusted text, isolated so that its direction does not affect the text around it.
 * @param {unknown} text
 * @param {number} max
 */
function untrusted(text, max) {
  return el('bdi', { class: 'foreign' }, singleLine(text, max))
}
