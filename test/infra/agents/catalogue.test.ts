import { expect, test } from 'vitest'
import {
  agentOfUserAgent,
  agentPurposes,
  catalogue,
  hasReverseDnsName,
  ipListOf,
} from '../../../infra/agents/catalogue.ts'
import { dataSources } from '../../../infra/ip/data/sources.ts'
import { families } from '../../../services/cli/simulate/generate/families.ts'
import people from '../../fixtures/recorded/people.json' with { type: 'json' }

const chrome = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0'

const bot = (name: string) => `Mozilla/5.0 (compatible; ${name}; +http://bot.example)`
const inChrome = (name: string) => `Mozilla/5.0 ${chrome}; compatible; ${name}; +http://bot.example`

test.each([
  ['facebookexternalhit/1.1 (+http://www.facebook.com/x)', 'meta', 'facebookexternalhit'],
  ['Mozilla/5.0+(compatible; UptimeRobot/2.0; http://x)', 'uptimerobot', 'UptimeRobot'],
  ['Googlebot-Image/1.0', 'google', 'Googlebot-Image'],
  [inChrome('Googlebot/2.1'), 'google', 'Googlebot'],
  [inChrome('ClaudeBot/1.0'), 'anthropic', 'ClaudeBot'],
  [bot('BINGBOT/2.0'), 'microsoft', 'bingbot'],
  ['WhatsApp/2.23.20.0', 'meta', 'WhatsApp'],
  ['Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0', 'apple', 'iMessage'],
])('%s is found', (userAgent, provider, product) => {
  // First by search, then from the cache.
  for (let times = 0; times < 2; times++)
    expect(agentOfUserAgent(userAgent)).toMatchObject({ provider, product })
})

const inApps = [
  `Mozilla/5.0 (Linux; Android 14; wv) ${chrome} Mobile Safari/537.36 [FB_IAB/FB4A;FBAV/440.0.0.0;]`,
  `Mozilla/5.0 (iPhone) AppleWebKit/605.1.15 Mobile/15E148 [FBAN/FBIOS;FBAV/440.0] MetaIAB Facebook`,
  'Mozilla/5.0 (iPhone) AppleWebKit/605.1.15 Mobile/15E148 [Pinterest/iOS]',
  'Mozilla/5.0 (iPhone) AppleWebKit/605.1.15 Mobile/15E148 [LinkedInApp]/9.30',
  'Mozilla/5.0 (iPhone) AppleWebKit/605.1.15 Mobile/15E148 Twitter for iPhone/10.2',
  `Mozilla/5.0 (Macintosh) ${chrome} Slack/4.40.0 Electron/32.0.0 Safari/537.36`,
  `Mozilla/5.0 (Windows NT 10.0) ${chrome} Notion/4.1 Electron/32.0.0 Safari/537.36`,
  `Mozilla/5.0 (Windows NT 10.0) ${chrome} WhatsApp/2.2420 Electron/32.0.0 Safari/537.36`,
  `Mozilla/5.0 (Windows NT 10.0) ${chrome} Code/1.94.0 Electron/32.0.0 Safari/537.36`,
  'Mozilla/5.0 (iPhone) AppleWebKit/605.1.15 Mobile/15E148 NAVER(inapp; search; 1000; 12.5.2)',
  'Mozilla/5.0 (iPhone) AppleWebKit/605.1.15 Mobile/15E148 DaumApps/7.3 DaumDevice/mobile',
  'Mozilla/5.0 (Windows NT 6.1) AppleWebKit/535.11 Chrome/17.0 Safari/535.11 SE 2.X MetaSr 1.0 SogouMobileBrowser/5',
  `Mozilla/5.0 (Windows NT 10.0) ${chrome} Safari/537.36 coc_coc_browser/120.0`,
  `Mozilla/5.0 (Linux; Android 10; CUBOT X30) ${chrome} Mobile Safari/537.36`,
  `Mozilla/5.0 (Linux; Android 9; KFMAWI) Silk/120.3 like ${chrome} Safari/537.36`,
  'okhttp/4.12.0',
  'curl/8.5.0',
]

test('browsers, apps and libraries are not agents', () => {
  const recorded = Object.values(people).map(({ headers }) => headers['User-Agent'])
  const made = families.map(([{ userAgent }]) => userAgent.replaceAll('{v}', '140'))
  const all = [...recorded, ...made, ...inApps, '']
  expect(all.filter((userAgent) => agentOfUserAgent(userAgent) !== null)).toEqual([])
})

test('each name is found, also with a version behind it', () => {
  const lost = catalogue.flatMap((entry) =>
    entry.names.filter((name) => {
      const plain = name.replace('^', '')
      const userAgent = plain === name ? `Mozilla/5.0 (compatible; ${name}1.0)` : `${plain}1.0`
      return !agentOfUserAgent(userAgent)?.names.includes(name)
    }),
  )
  expect(lost).toEqual([])
})

test('names are lower-case and unique, and each agent has a purpose and a unique id', () => {
  const names = catalogue.flatMap((entry) => entry.names)
  expect(names.filter((name) => name !== name.toLowerCase() || name.trim() !== name)).toEqual([])
  expect(new Set(names).size).toBe(names.length)
  expect(new Set(catalogue.map(({ id }) => id)).size).toBe(catalogue.length)
  expect(catalogue.every(({ purpose }) => agentPurposes.includes(purpose))).toBe(true)
})

test('only the first 1000 characters of a user agent are searched', () => {
  expect(agentOfUserAgent(`${'a '.repeat(600)} Googlebot/2.1`)).toBeNull()
})

test('a reverse-DNS name must match the pattern of the operator', () => {
  const google = agentOfUserAgent('Googlebot/2.1')
  const bing = agentOfUserAgent('bingbot/2.0')
  const meta = agentOfUserAgent('facebookexternalhit/1.1')
  if (!google || !bing || !meta) throw new Error('the catalogue lacks a well-known agent')
  expect(hasReverseDnsName(google, 'crawl-66-249-66-1.googlebot.com')).toBe(true)
  expect(hasReverseDnsName(google, 'crawl-66-249-66-1.googlebot.com.example')).toBe(false)
  expect(hasReverseDnsName(google, 'crawl-66-249-66-1-googlebot.com')).toBe(false)
  expect(hasReverseDnsName(google, 'evil.googlebot.com')).toBe(false)
  expect(hasReverseDnsName(bing, 'MSNBOT-157-55-39-1.search.msn.com')).toBe(true)
  expect(hasReverseDnsName(bing, 'search.msn.com')).toBe(false)
  expect(hasReverseDnsName(meta, 'crawl-66-249-66-1.googlebot.com')).toBe(false)
})

test('a name within a longer word does not match', () => {
  expect(agentOfUserAgent('GPTBot/1.2')?.product).toBe('GPTBot')
  expect(agentOfUserAgent('GPTBotany/1.2')).toBeNull()
  expect(agentOfUserAgent('Claude-Username/1.0')).toBeNull()
  expect(agentOfUserAgent('Claude-User/1.0')).not.toBeNull()
  expect(agentOfUserAgent('MyGPTBot/1.2')).toBeNull()
})

test('each downloadable IP list of crawlers verifies an agent', () => {
  const verifying = new Set(catalogue.map(ipListOf))
  const fetched = dataSources.filter(({ group }) => group === 'bots').map(({ title }) => title)
  expect(fetched.length).toBeGreaterThan(5)
  expect(fetched.filter((list) => !verifying.has(list))).toEqual([])
})
