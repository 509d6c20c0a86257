import type { DocumentState } from '../documents.ts'
import type { Facts } from '../facts.ts'
import { systemOfHint } from './consistency.ts'
import { browser, type Signal } from './signal.ts'

const base = { family: 'headers', role: 'risk', category: 'network' } as const

const hint = (document: DocumentState, name: string) => document.client_hints[name] ?? null

function hintsDiffer({ document, agent }: Facts): boolean {
  if (!document || agent.system === 'other') return false
  const platform = systemOfHint(hint(document, 'sec-ch-ua-platform'))
  if (platform !== undefined && platform !== agent.system) return true
  return hint(document, 'sec-ch-ua-mobile') === '?1' && agent.formFactor === 'desktop'
}

/** The first language of Accept-Language, lower case, without region. */
function headerLanguage({ document }: Facts): string | null {
  const first = document?.accept_language?.split(/[,;]/)[0]?.trim().toLowerCase() ?? ''
  return /^[a-z]{2,3}\b/.test(first) ? (first.split('-')[0] ?? null) : null
}

function languageDiffers(facts: Facts): boolean {
  const header = headerLanguage(facts)
  const languages = facts.snapshot?.navigator.languages.map((one) => one.toLowerCase().split('-')[0]) ?? []
  return header !== null && languages.length > 0 && !languages.includes(header)
}

/** Every browser of the last years sends these with a fetch; a proxy rarely removes both. */
function headersMissing({ document }: Facts): boolean {
  if (!document || document.header_order.length === 0) return false
  const names = document.header_order.map((name) => name.toLowerCase())
  return !names.includes('accept-language') && !names.includes('accept-encoding')
}

/** Request headers against what the page says. */
export const headerSignals: Signal[] = [
  {
    ...base,
    slug: 'user_agent_header_mismatch',
    name: 'Request and page name different browsers',
    strength: 'strong',
    score: 42,
    looksAt: 'the User-Agent header against `navigator.userAgent`',
    falsePositives: 'user agent switchers that change only one of them',
    fires: browser(
      (s, f) =>
        !!s.navigator.user_agent && f.headerUserAgent !== '' && s.navigator.user_agent !== f.headerUserAgent,
    ),
  },
  {
    ...base,
    slug: 'client_hints_mismatch',
    name: 'Client hints contradict the user agent',
    strength: 'strong',
    score: 40,
    looksAt: 'Sec-CH-UA-Platform and Sec-CH-UA-Mobile against the user agent string',
    falsePositives: 'desktop-site mode on Android (touch devices are not looked at)',
    fires: browser((s, facts) => (s.navigator.max_touch_points ?? 0) === 0 && hintsDiffer(facts)),
  },
  {
    ...base,
    slug: 'accept_language_mismatch',
    name: 'Request language is not one of the page',
    strength: 'weak',
    score: 8,
    looksAt: 'the first language of Accept-Language against `navigator.languages`',
    falsePositives: 'privacy settings, proxies that rewrite headers',
    fires: browser((_, facts) => !facts.privacyTool && languageDiffers(facts)),
  },
  {
    ...base,
    slug: 'sparse_request_headers',
    name: 'Headers that every browser sends are missing',
    strength: 'weak',
    score: 12,
    looksAt: 'neither Accept-Language nor Accept-Encoding in the request that opened the document',
    falsePositives: 'corporate proxies',
    fires: browser((_, facts) => facts.platform === 'web' && headersMissing(facts)),
  },
]
