import type { Platform } from '../../schemas/events.ts'
import { type SentObservations, withheldGroups } from '../../schemas/observations.ts'
import { planSession, type TrafficMix } from '../../services/cli/simulate/generate/plan.ts'
import type { Case } from './cases.ts'
import { inventedVisit, read } from './forgeries.ts'
import { addressOf, sendForged } from './forging.ts'

/** Session that a script invents without a browser or app, with the answers recorded in this repository. */
export interface Invention {
  name: string
  platform: Platform
  body(seed: string): SentObservations
  /** User agent of the requests, if it differs from the snapshot's. */
  userAgent?: string
  /** True to also send it to a server that has learned nothing yet. */
  isFresh?: true
}

type Members = Record<string, unknown>
type Groups = Record<string, Members | undefined>

function changed(body: SentObservations, change: (snapshot: Groups) => Groups): SentObservations {
  const snapshot: Groups = JSON.parse(JSON.stringify(body.snapshot))
  return read({ ...body, snapshot: change(snapshot) })
}

const without = (group: string) => (body: SentObservations) =>
  changed(body, ({ [group]: _, ...rest }) => rest)
const saying = (group: string, reason: string) => (body: SentObservations) =>
  changed(body, ({ [group]: _, ...rest }) => ({
    ...rest,
    collection: { mode: 'full', withheld: [{ group, reason }] },
  }))
const replacing = (group: string, members: Members) => (body: SentObservations) =>
  changed(body, (snapshot) => ({ ...snapshot, [group]: { ...snapshot[group], ...members } }))

const chrome = (seed: string): SentObservations => {
  const [first] = inventedVisit(seed)
  if (!first) throw new Error('a visit has a first body')
  return first
}

type Change = (body: SentObservations) => SentObservations

const page = (name: string, change: Change, more: Partial<Invention> = {}): Invention => ({
  name: `page-${name}`,
  platform: 'web',
  body: (seed) => change(chrome(seed)),
  ...more,
})

const groupsOfPages = [
  'navigator',
  'environment',
  'automation',
  'tamper',
  'engine',
  'storage',
  'capabilities',
  ...withheldGroups,
]

const pages: Invention[] = [
  page('complete', (body) => body),
  ...groupsOfPages.map((group) => page(`without-${group}`, without(group), { isFresh: true })),
  ...withheldGroups.map((group) => page(`blocked-${group}`, saying(group, 'blocked'))),
  ...withheldGroups.map((group) => page(`late-${group}`, saying(group, 'late'), { isFresh: true })),
  page('minimal', replacing('collection', { mode: 'minimal' })),
  page(
    'of-the-next-version',
    replacing('navigator', { user_agent: agentOf('Chrome/199.0.0.0 Safari/537.36') }),
  ),
  page('of-another-time-zone', replacing('environment', { timezone: 'Asia/Tokyo' })),
  page('of-a-phone', replacing('navigator', { max_touch_points: 5, ua_data_mobile: true })),
]

function agentOf(end: string): string {
  return `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) ${end}`
}

type AppPlatform = Exclude<Platform, 'web'>

const mixes: Record<AppPlatform, TrafficMix> = {
  ios: { clients: { web: 0, ios: 1, android: 0 }, bots: 0, returning: 0 },
  android: { clients: { web: 0, ios: 0, android: 1 }, bots: 0, returning: 0 },
}
const inventedApp = (seed: string, platform: AppPlatform): SentObservations =>
  planSession(seed, 0, mixes[platform]).batches[0]

const native = (members: Members) => replacing('native', members)
const noChecks = {
  hooks: null,
  code_signing_invalid: null,
  jailbreak_or_root: null,
  simulator_or_emulator: null,
  debugger: null,
}

const changesOfApps: [name: string, change: Change, userAgent?: string][] = [
  ['complete', (body) => body],
  ['of-curl', (body) => body, 'curl/8.5.0'],
  ['of-a-browser', (body) => body, agentOf('Chrome/155.0.0.0 Safari/537.36')],
  [
    'of-two-members',
    (body) => changed(body, ({ native: n }) => ({ native: { device_model: n?.device_model } })),
  ],
  ['without-checks', native(noChecks)],
  ['with-one-check', native({ ...noChecks, hooks: false })],
  ['without-model', native({ device_model: null })],
  ['without-install-id', native({ install_id: null })],
  ['without-bundle', native({ bundle_id: null, app_version: null, app_build: null })],
  ['without-carrier', native({ carrier_name: null, country_iso: null })],
  ['without-environment', without('environment')],
  ['of-the-other-platform', native({ os_name: 'Other OS', device_model: 'iPad14,1' })],
  ['on-a-computer', native({ architecture: 'x86_64' })],
  ['empty', (body) => read({ ...body, snapshot: { native: {} } })],
]

const apps = (['ios', 'android'] as const).flatMap((platform) =>
  changesOfApps.map(
    ([name, change, userAgent]): Invention => ({
      name: `${platform}-${name}`,
      platform,
      body: (seed) => change(inventedApp(seed, platform)),
      ...(userAgent === undefined ? {} : { userAgent }),
      isFresh: true,
    }),
  ),
)

export const inventions: Invention[] = [...pages, ...apps]

const caseOf = (
  kind: 'informed' | 'informed-fresh',
  { name, platform, body, userAgent }: Invention,
): Case => ({
  name: `invention-${kind === 'informed' ? '' : 'fresh-'}${name}`,
  kind,
  family: 'no browser',
  framework: 'raw HTTP',
  version: '',
  isFresh: kind === 'informed-fresh',
  async run({ seed, tidegate }, onOutcome) {
    const of = { tidegate, platform, userAgent, address: addressOf(seed) }
    const handed = await sendForged([body(seed)], { answers: 'known', ...of })
    const judgement = await tidegate.judgement(handed)
    onOutcome({
      ...judgement,
      phase: 'load',
      sessionId: handed.sessionId,
      botd: null,
      fpscanner: null,
    })
  },
})

export const inventionCases: Case[] = [
  ...inventions.map((one) => caseOf('informed', one)),
  ...inventions.filter(({ isFresh }) => isFresh).map((one) => caseOf('informed-fresh', one)),
]
