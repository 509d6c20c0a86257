import type { Snapshot } from '../../../schemas/observations.ts'
import { type Facts, inBrowser, type Signal, snapshot } from '../facts.ts'

const protocolBase = { family: 'protocol', role: 'risk', category: 'integrity' } as const

function answersWrong({ proofs }: Snapshot, { document }: Facts): boolean {
  if (!document) return false
  return wrong(proofs.challenge, document.challenge) || wrong(proofs.timing_nonce, document.timing_nonce)
}

function wrong(answer: string | null, expected: string): boolean {
  return answer !== null && expected !== '' && answer !== expected
}

/** Every SDK gives both texts back, and needs nothing for it. */
function answersNothing({ proofs }: Snapshot, { document, platform }: Facts): boolean {
  if (platform !== 'web' || !document || document.challenge === '') return false
  return proofs.challenge === null || proofs.timing_nonce === null
}

function missingGroups(s: Snapshot): number {
  return [
    s.navigator.user_agent === null,
    s.environment.screen_width === null && s.environment.inner_width === null,
    s.navigator.language === null && s.navigator.languages.length === 0,
    s.environment.timezone === null,
    s.automation.webdriver === null && s.engine.name === null && s.engine.eval_length === null,
  ].filter(Boolean).length
}

export const protocolSignals: Signal[] = [
  {
    ...protocolBase,
    slug: 'unreadable_observations',
    name: 'Unreadable observations',
    strength: 'strong',
    score: 45,
    looksAt: 'an accepted body that is not the agreed JSON within the limits of docs/collect-protocol.md',
    falsePositives: 'a defective client build',
    fires: ({ unreadable }) => unreadable > 0,
  },
  {
    ...protocolBase,
    slug: 'conflicting_replay',
    name: 'Conflicting replay',
    strength: 'strong',
    score: 48,
    looksAt: 'a second, different body under a sequence number that was already used',
    falsePositives: 'a page restored from a duplicate of a browser profile',
    fires: ({ conflicts }) => conflicts > 0,
  },
  {
    ...protocolBase,
    slug: 'stale_snapshot',
    name: 'Snapshot answers another document',
    strength: 'strong',
    score: 55,
    looksAt: 'the proofs of a snapshot are not those that its document was given',
    falsePositives: 'none known',
    fires: snapshot(answersWrong),
  },
  {
    ...protocolBase,
    slug: 'proofs_missing',
    name: 'Snapshot answers no document',
    strength: 'strong',
    score: 60,
    looksAt: 'the snapshot of a page has no `challenge` or no `timing_nonce`, which it is only to give back',
    falsePositives: 'none known; every SDK sends them',
    fires: snapshot(answersNothing),
  },
  {
    ...protocolBase,
    slug: 'telemetry_incomplete',
    name: 'Incomplete telemetry',
    strength: 'moderate',
    score: 42,
    looksAt:
      'a browser snapshot with three or more of user agent, screen, language, time zone, engine missing',
    falsePositives: 'very old browsers, blocked scripts; it never makes a bot',
    fires: snapshot((s) => s.native === null && missingGroups(s) >= 3),
  },
  {
    ...protocolBase,
    slug: 'session_identity_changed',
    name: 'Browser changed within the session',
    strength: 'moderate',
    score: 28,
    looksAt: 'user agent, platform or graphics card differ between two snapshots of a session',
    falsePositives: 'switching to the desktop site, a second graphics card',
    fires: ({ identityChanges }) => identityChanges > 0,
  },
]

const networkBase = { family: 'network', role: 'risk', category: 'network' } as const

function zoneDiffers({ snapshot, network }: Facts): boolean {
  const here = snapshot?.environment.timezone
  const there = network.location?.timezone
  return !!here && !!there && here.split('/')[0] !== there.split('/')[0]
}

export const networkSignals: Signal[] = [
  {
    ...networkBase,
    slug: 'hosting_network',
    name: 'Hosting network',
    strength: 'moderate',
    score: 22,
    looksAt: 'the address belongs to a hosting provider, where a configured database says so',
    falsePositives: 'VPN exits, office gateways, remote desktops in a data centre',
    fires: ({ network }) => network.anonymity.hosting,
  },
  {
    ...networkBase,
    slug: 'vpn_associated_ip',
    name: 'VPN-associated IP',
    role: 'context',
    strength: 'weak',
    score: 0,
    looksAt: 'the address belongs to a VPN or relay, where a configured database says so',
    falsePositives: 'not evidence of risk: privacy is not automation',
    fires: ({ network: { anonymity: a } }) => a.vpn || a.relay,
  },
  {
    ...networkBase,
    slug: 'anonymous_proxy',
    name: 'Anonymous proxy or Tor exit',
    strength: 'weak',
    score: 12,
    looksAt: 'the address is an open proxy or a Tor exit, where a configured database says so',
    falsePositives: 'people who need anonymity',
    fires: ({ network: { anonymity: a } }) => a.proxy || a.tor || a.residential_proxy,
  },
  {
    ...networkBase,
    slug: 'timezone_location_mismatch',
    name: 'Time zone of another continent',
    strength: 'weak',
    score: 8,
    looksAt: "the browser's time zone against that of the address",
    falsePositives: 'travellers, VPNs, UTC clocks (not counted)',
    fires: inBrowser(
      (s, facts) => /\//.test(s.environment.timezone ?? '') && !facts.privacyTool && zoneDiffers(facts),
    ),
  },
]

const nativeBase = { family: 'native', role: 'risk', category: 'integrity' } as const

type Native = NonNullable<Snapshot['native']>
const app = (test: (native: Native) => boolean) => snapshot((s) => s.native !== null && test(s.native))

/** What the iOS and Android SDKs report about the device and the app. */
export const nativeSignals: Signal[] = [
  {
    ...nativeBase,
    // What is put into an app, not what it is built as or runs on: each confirms the other.
    family: 'instrumentation',
    slug: 'native_hooks',
    name: 'Hooked app',
    strength: 'strong',
    score: 58,
    looksAt: 'instrumentation such as Frida or Xposed inside the app',
    falsePositives: 'security testing',
    fires: app((n) => n.hooks === true),
  },
  {
    ...nativeBase,
    slug: 'native_emulator',
    name: 'Simulator or emulator',
    category: 'environment',
    strength: 'strong',
    score: 45,
    looksAt: 'the app runs in a simulator or emulator',
    falsePositives: 'developers, Android on Chromebooks',
    fires: app((n) => n.simulator_or_emulator === true),
  },
  {
    ...nativeBase,
    slug: 'native_code_signing_invalid',
    name: 'Changed app',
    strength: 'strong',
    score: 50,
    looksAt: 'the signature of the app is not valid',
    falsePositives: 'development builds',
    fires: app((n) => n.code_signing_invalid === true),
  },
  {
    ...nativeBase,
    slug: 'native_jailbreak_or_root',
    name: 'Jailbroken or rooted device',
    strength: 'moderate',
    score: 25,
    looksAt: 'signs of a jailbreak or of root',
    falsePositives: 'enthusiasts',
    fires: app((n) => n.jailbreak_or_root === true),
  },
  {
    ...nativeBase,
    slug: 'native_debugger',
    name: 'Debugger attached to the app',
    strength: 'moderate',
    score: 25,
    looksAt: 'a debugger is attached',
    falsePositives: 'developers',
    fires: app((n) => n.debugger === true),
  },
  {
    ...nativeBase,
    slug: 'native_observations_missing',
    name: 'App without a device',
    strength: 'strong',
    score: 60,
    looksAt: 'the snapshot of an app has no `native` observations, or none with a device model',
    falsePositives: 'none known; every app knows its device',
    fires: snapshot((s, { platform }) => platform !== 'web' && (s.native?.device_model ?? null) === null),
  },
  {
    ...nativeBase,
    slug: 'browser_user_agent_in_app',
    name: "A browser's user agent from an app",
    strength: 'strong',
    score: 60,
    looksAt: 'the requests of an app carry the `User-Agent` of a browser',
    falsePositives: 'apps that send it on purpose',
    fires: ({ platform, headerUserAgent }) => platform !== 'web' && /^Mozilla\//i.test(headerUserAgent),
  },
]
