import type { Snapshot } from '../../../schemas/observations.ts'
import type { Facts } from '../session/facts.ts'
import { inBrowser, signals, snapshot } from './signal.ts'

export const protocolSignals = signals(
  { role: 'risk', category: 'integrity' },
  {
    unreadable_observations: {
      channel: 'protocol',
      name: 'Unreadable observations',
      strength: 'strong',
      score: 45,
      looksAt: 'an accepted body is not the agreed JSON within its limits',
      falsePositives: 'a defective client build',
      fires: ({ unreadable }) => unreadable > 0,
    },
    conflicting_replay: {
      channel: 'protocol',
      name: 'Conflicting replay',
      strength: 'strong',
      score: 48,
      looksAt: 'a second, different body under a sequence number that was already used',
      falsePositives: 'a page restored from a duplicate of a browser profile',
      fires: ({ conflicts }) => conflicts > 0,
    },
    session_identity_changed: {
      channel: 'identity',
      name: 'Browser changed within the session',
      strength: 'moderate',
      score: 28,
      looksAt: 'user agent, platform or graphics card differ between two snapshots of a session',
      falsePositives: 'switching to the desktop site, a second graphics card',
      fires: ({ identityChanges }) => identityChanges > 0,
    },
    kept_id_of_another_device: {
      channel: 'history',
      name: 'Id of another device',
      strength: 'strong',
      score: 45,
      looksBack: true,
      looksAt:
        'the continuity id or resume token was issued to a device of another system, and none of graphics, canvas, sound and fonts is the same',
      falsePositives: 'a browser profile that was moved to a computer of another system',
      fires: ({ isCopied }) => isCopied,
    },
  },
)

function zoneDiffers({ snapshot, network }: Facts): boolean {
  const here = snapshot?.environment.timezone
  const there = network.location?.timezone
  return !!here && !!there && here.split('/')[0] !== there.split('/')[0]
}

export const networkSignals = signals(
  { role: 'risk', category: 'network' },
  {
    hosting_network: {
      channel: 'network',
      name: 'Hosting network',
      strength: 'moderate',
      score: 22,
      looksAt: 'the address belongs to a hosting provider',
      falsePositives: 'VPN exits, office gateways, remote desktops in a data centre',
      fires: ({ network }) => network.anonymity.hosting,
    },
    vpn_associated_ip: {
      channel: 'network',
      name: 'VPN-associated IP',
      role: 'context',
      strength: 'weak',
      score: 0,
      looksAt: 'the address belongs to a VPN or relay',
      falsePositives: 'no risk: privacy is not automation',
      fires: ({ network: { anonymity: a } }) => a.vpn || a.relay,
    },
    anonymous_proxy: {
      channel: 'network',
      name: 'Anonymous proxy or Tor exit',
      strength: 'weak',
      score: 12,
      looksAt: 'the address is an open proxy or a Tor exit',
      falsePositives: 'people who need anonymity',
      fires: ({ network: { anonymity: a } }) => a.proxy || a.tor || a.residential_proxy,
    },
    timezone_location_mismatch: {
      channel: 'network',
      name: 'Time zone of another continent',
      strength: 'weak',
      score: 8,
      looksAt: "the browser's time zone against that of the address",
      falsePositives: 'travellers, VPNs',
      fires: inBrowser(
        (s, facts) => /\//.test(s.environment.timezone ?? '') && !facts.privacyTool && zoneDiffers(facts),
      ),
    },
  },
)

type Native = NonNullable<Snapshot['native']>
const app = (test: (native: Native) => boolean) => snapshot((s) => s.native !== null && test(s.native))

const checksOf = (n: Native) => [
  n.hooks,
  n.code_signing_invalid,
  n.jailbreak_or_root,
  n.simulator_or_emulator,
  n.debugger,
]

/** What the iOS and Android SDKs report about the device and the app. */
export const nativeSignals = signals(
  { role: 'risk', category: 'integrity' },
  {
    native_hooks: {
      channel: 'instrumentation',
      name: 'Hooked app',
      strength: 'strong',
      score: 58,
      looksAt: 'instrumentation such as Frida or Xposed inside the app',
      falsePositives: 'security testing',
      fires: app((n) => n.hooks === true),
    },
    native_emulator: {
      channel: 'app',
      name: 'Simulator or emulator',
      category: 'environment',
      strength: 'strong',
      score: 45,
      looksAt: 'the app runs in a simulator or emulator',
      falsePositives: 'developers, Android on Chromebooks',
      fires: app((n) => n.simulator_or_emulator === true),
    },
    native_code_signing_invalid: {
      channel: 'app',
      name: 'Changed app',
      strength: 'strong',
      score: 50,
      looksAt: 'the signature of the app is not valid',
      falsePositives: 'development builds',
      fires: app((n) => n.code_signing_invalid === true),
    },
    native_jailbreak_or_root: {
      channel: 'app',
      name: 'Jailbroken or rooted device',
      strength: 'moderate',
      score: 25,
      looksAt: 'signs of a jailbreak or of root',
      falsePositives: 'enthusiasts',
      fires: app((n) => n.jailbreak_or_root === true),
    },
    native_debugger: {
      channel: 'app',
      name: 'Debugger attached to the app',
      strength: 'moderate',
      score: 25,
      looksAt: 'a debugger is attached',
      falsePositives: 'developers',
      fires: app((n) => n.debugger === true),
    },
    native_observations_missing: {
      channel: 'completeness',
      name: 'App without a device',
      strength: 'strong',
      score: 60,
      looksAt: 'the snapshot of an app has no `native` observations, or none with a device model',
      falsePositives: 'none; every app knows its device',
      fires: snapshot((s, { platform }) => platform !== 'web' && (s.native?.device_model ?? null) === null),
    },
    native_checks_missing: {
      channel: 'completeness',
      name: 'App that checked nothing',
      strength: 'moderate',
      score: 35,
      atLeast: 45,
      looksAt: 'an app names its device, but reports no check: hooks, signature, root, emulator, debugger',
      falsePositives: 'none; every SDK of apps reports some',
      fires: app((n) => n.device_model !== null && checksOf(n).every((check) => check === null)),
    },
    app_unattested: {
      channel: 'attestation',
      name: 'App that nothing attests',
      strength: 'weak',
      score: 2,
      atLeast: 40,
      looksAt: 'nothing of Apple or Google attests the app, so that a script may have made all of it up',
      falsePositives: 'every app, until attestation is there',
      fires: ({ platform }) => platform !== 'web',
    },
    browser_user_agent_in_app: {
      channel: 'app',
      name: "A browser's user agent from an app",
      strength: 'strong',
      score: 60,
      looksAt: 'the requests of an app carry the `User-Agent` of a browser',
      falsePositives: 'apps that send it on purpose',
      fires: ({ platform, headerUserAgent }) => platform !== 'web' && /^Mozilla\//i.test(headerUserAgent),
    },
  },
)
