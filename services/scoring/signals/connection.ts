import { isPrivateEgress } from '../../../infra/ip/operators.ts'
import type { Snapshot } from '../../../schemas/observations.ts'
import type { Facts } from '../session/facts.ts'
import { defineSignals, ifBrowser, ifSnapshot } from './signal.ts'

export const protocolSignals = defineSignals({
  unreadable_observations: {
    name: 'Unreadable observations',
    looksAt: 'an accepted body is not valid observation JSON, or exceeds its limits',
    falsePositives: 'a defective client build',
    fires: ({ unreadable }) => unreadable > 0,
  },
  conflicting_replay: {
    name: 'Conflicting replay',
    looksAt: 'a different body was sent with an already used sequence number',
    falsePositives: 'a page restored from a copied browser profile',
    fires: ({ conflicts }) => conflicts > 0,
  },
  session_identity_changed: {
    name: 'Browser changed within the session',
    looksAt: 'user agent, platform or graphics card differ between two snapshots of a session',
    falsePositives: 'switching to the desktop site, a second graphics card',
    fires: ({ identityChanges }) => identityChanges > 0,
  },
  kept_id_of_another_device: {
    name: 'Stored id of another device',
    usesHistory: true,
    looksAt:
      'the continuity id or resume token was issued to a device with another operating system, and graphics, canvas, audio and fonts all differ',
    falsePositives: 'a browser profile that was moved to another operating system',
    fires: ({ hasCopiedId }) => hasCopiedId,
  },
})

function continentDiffers({ snapshot, network }: Facts): boolean {
  const browserZone = snapshot?.environment.timezone
  const networkZone = network.location?.timezone
  return !!browserZone && !!networkZone && browserZone.split('/')[0] !== networkZone.split('/')[0]
}

/** Returns true for a hosting network, but not for hosted VPNs, relays and corporate gateways, which people use. */
export function isHosted({ anonymity, routing }: Facts['network']): boolean {
  return anonymity.hosting && !anonymity.vpn && !anonymity.relay && !isPrivateEgress(routing.asn)
}

export const networkSignals = defineSignals({
  hosting_network: {
    name: 'Hosting network',
    looksAt:
      'the address belongs to a hosting provider, but not to a known VPN, relay or corporate gateway',
    falsePositives: 'unlisted VPN exits and office gateways, remote desktops in a data center',
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
    looksAt: 'the address is a proxy or a Tor exit',
    falsePositives: 'people who need anonymity',
    fires: ({ network: { anonymity: a } }) => a.proxy || a.tor || a.residential_proxy,
  },
  timezone_location_mismatch: {
    name: 'Time zone of another continent',
    looksAt: "the browser's time zone and the location of the address are on different continents",
    falsePositives: 'travelers, VPNs',
    fires: ifBrowser(
      (s, facts) =>
        /\//.test(s.environment.timezone ?? '') && !facts.privacyTool && continentDiffers(facts),
    ),
  },
  browser_with_tool_handshake: {
    name: 'Browser with the TLS fingerprint of a tool',
    looksAt:
      'the user agent names a browser, but the JA4 TLS fingerprint is that of Go, Python, curl, Node or Java',
    falsePositives:
      'TLS-intercepting office proxies built on such a library, until browsers with several engines have used them',
    fires: ({ handshake }) =>
      handshake.client?.kind === 'tool' && handshake.alignment === 'mismatch',
  },
})

type Native = NonNullable<Snapshot['native']>
const ifApp = (test: (native: Native) => boolean) =>
  ifSnapshot((s) => s.native !== null && test(s.native))

const checksOf = (n: Native) => [
  n.hooks,
  n.code_signing_invalid,
  n.jailbreak_or_root,
  n.simulator_or_emulator,
  n.debugger,
]

/** Signals from the device and app checks of the iOS and Android SDKs. */
export const nativeSignals = defineSignals({
  native_hooks: {
    name: 'Hooked app',
    looksAt: 'instrumentation such as Frida or Xposed in the app',
    falsePositives: 'security testing',
    fires: ifApp((n) => n.hooks === true),
  },
  native_emulator: {
    name: 'Simulator or emulator',
    looksAt: 'the app runs in a simulator or emulator',
    falsePositives: 'developers, Android on Chromebooks',
    fires: ifApp((n) => n.simulator_or_emulator === true),
  },
  native_code_signing_invalid: {
    name: 'App signature invalid',
    looksAt: 'the signature of the app is not valid',
    falsePositives: 'development builds',
    fires: ifApp((n) => n.code_signing_invalid === true),
  },
  native_jailbreak_or_root: {
    name: 'Jailbroken or rooted device',
    looksAt: 'signs of a jailbreak or of root',
    falsePositives: 'people who modify their own phone',
    fires: ifApp((n) => n.jailbreak_or_root === true),
  },
  native_debugger: {
    name: 'Debugger attached to the app',
    looksAt: 'a debugger is attached',
    falsePositives: 'developers',
    fires: ifApp((n) => n.debugger === true),
  },
  native_observations_missing: {
    name: 'App without device data',
    looksAt: 'the snapshot of an app has no `native` observations, or no device model',
    falsePositives: 'none; every app knows its device model',
    fires: ifSnapshot(
      (s, { platform }) => platform !== 'web' && (s.native?.device_model ?? null) === null,
    ),
  },
  native_checks_missing: {
    name: 'App without integrity checks',
    looksAt:
      'the app names its device, but reports none of the checks for hooks, signature, root, emulator and debugger',
    falsePositives: 'none; every mobile SDK reports some',
    fires: ifApp((n) => n.device_model !== null && checksOf(n).every((check) => check === null)),
  },
  browser_user_agent_in_app: {
    name: 'Browser user agent sent by an app',
    looksAt: "the app's requests have the `User-Agent` of a browser",
    falsePositives: 'apps that set it on purpose',
    fires: ({ platform, headerUserAgent }) =>
      platform !== 'web' && /^Mozilla\//i.test(headerUserAgent),
  },
})
