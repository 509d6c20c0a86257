import { isPrivateEgress } from '../../../infra/ip/operators.ts'
import type { Snapshot } from '../../../schemas/observations.ts'
import type { Facts } from '../session/facts.ts'
import { inBrowser, signals, snapshot } from './signal.ts'

export const protocolSignals = signals({
  unreadable_observations: {
    name: 'Unreadable observations',
    looksAt: 'an accepted body is not the agreed JSON within its limits',
    falsePositives: 'a defective client build',
    fires: ({ unreadable }) => unreadable > 0,
  },
  conflicting_replay: {
    name: 'Conflicting replay',
    looksAt: 'a second, different body under a sequence number that was already used',
    falsePositives: 'a page restored from a duplicate of a browser profile',
    fires: ({ conflicts }) => conflicts > 0,
  },
  session_identity_changed: {
    name: 'Browser changed within the session',
    looksAt: 'user agent, platform or graphics card differ between two snapshots of a session',
    falsePositives: 'switching to the desktop site, a second graphics card',
    fires: ({ identityChanges }) => identityChanges > 0,
  },
  kept_id_of_another_device: {
    name: 'Id of another device',
    looksBack: true,
    looksAt:
      'the continuity id or resume token was issued to a device of another system, and none of graphics, canvas, sound and fonts is the same',
    falsePositives: 'a browser profile that was moved to a computer of another system',
    fires: ({ isCopied }) => isCopied,
  },
})

function zoneDiffers({ snapshot, network }: Facts): boolean {
  const here = snapshot?.environment.timezone
  const there = network.location?.timezone
  return !!here && !!there && here.split('/')[0] !== there.split('/')[0]
}

/** Not where people come through VPNs, relays and gateways of companies, whoever hosts those. */
export function isHosted({ anonymity, routing }: Facts['network']): boolean {
  return anonymity.hosting && !anonymity.vpn && !anonymity.relay && !isPrivateEgress(routing.asn)
}

export const networkSignals = signals({
  hosting_network: {
    name: 'Hosting network',
    looksAt:
      'the address belongs to a hosting provider, and to no known VPN, relay or gateway of companies',
    falsePositives:
      'VPN exits and office gateways that no list has, remote desktops in a data centre',
    fires: ({ network }) => isHosted(network),
  },
  vpn_associated_ip: {
    name: 'VPN-associated IP',
    looksAt: 'the address belongs to a VPN or relay',
    falsePositives: 'no risk: privacy is not automation',
    fires: ({ network: { anonymity: a } }) => a.vpn || a.relay,
  },
  anonymous_proxy: {
    name: 'Anonymous proxy or Tor exit',
    looksAt: 'the address is an open proxy or a Tor exit',
    falsePositives: 'people who need anonymity',
    fires: ({ network: { anonymity: a } }) => a.proxy || a.tor || a.residential_proxy,
  },
  timezone_location_mismatch: {
    name: 'Time zone of another continent',
    looksAt: "the browser's time zone against that of the address",
    falsePositives: 'travellers, VPNs',
    fires: inBrowser(
      (s, facts) =>
        /\//.test(s.environment.timezone ?? '') && !facts.privacyTool && zoneDiffers(facts),
    ),
  },
  browser_with_tool_handshake: {
    name: 'A browser that speaks TLS like a tool',
    looksAt:
      'the user agent names a browser, and JA4 is that of a library: of Go, Python, curl, Node or Java',
    falsePositives:
      'proxies of offices that open TLS with such a library, until browsers of several engines came by it',
    fires: ({ handshake }) =>
      handshake.known?.kind === 'tool' && handshake.alignment === 'mismatch',
  },
})

type Native = NonNullable<Snapshot['native']>
const app = (test: (native: Native) => boolean) =>
  snapshot((s) => s.native !== null && test(s.native))

const checksOf = (n: Native) => [
  n.hooks,
  n.code_signing_invalid,
  n.jailbreak_or_root,
  n.simulator_or_emulator,
  n.debugger,
]

/** What the iOS and Android SDKs report about the device and the app. */
export const nativeSignals = signals({
  native_hooks: {
    name: 'Hooked app',
    looksAt: 'instrumentation such as Frida or Xposed inside the app',
    falsePositives: 'security testing',
    fires: app((n) => n.hooks === true),
  },
  native_emulator: {
    name: 'Simulator or emulator',
    looksAt: 'the app runs in a simulator or emulator',
    falsePositives: 'developers, Android on Chromebooks',
    fires: app((n) => n.simulator_or_emulator === true),
  },
  native_code_signing_invalid: {
    name: 'Changed app',
    looksAt: 'the signature of the app is not valid',
    falsePositives: 'development builds',
    fires: app((n) => n.code_signing_invalid === true),
  },
  native_jailbreak_or_root: {
    name: 'Jailbroken or rooted device',
    looksAt: 'signs of a jailbreak or of root',
    falsePositives: 'enthusiasts',
    fires: app((n) => n.jailbreak_or_root === true),
  },
  native_debugger: {
    name: 'Debugger attached to the app',
    looksAt: 'a debugger is attached',
    falsePositives: 'developers',
    fires: app((n) => n.debugger === true),
  },
  native_observations_missing: {
    name: 'App without a device',
    looksAt: 'the snapshot of an app has no `native` observations, or none with a device model',
    falsePositives: 'none; every app knows its device',
    fires: snapshot(
      (s, { platform }) => platform !== 'web' && (s.native?.device_model ?? null) === null,
    ),
  },
  native_checks_missing: {
    name: 'App that checked nothing',
    looksAt:
      'an app names its device, but reports no check: hooks, signature, root, emulator, debugger',
    falsePositives: 'none; every SDK of apps reports some',
    fires: app((n) => n.device_model !== null && checksOf(n).every((check) => check === null)),
  },
  browser_user_agent_in_app: {
    name: "A browser's user agent from an app",
    looksAt: 'the requests of an app carry the `User-Agent` of a browser',
    falsePositives: 'apps that send it on purpose',
    fires: ({ platform, headerUserAgent }) =>
      platform !== 'web' && /^Mozilla\//i.test(headerUserAgent),
  },
})
