import type { Facts } from '../facts.ts'
import { browser, type Signal } from './signal.ts'

const base = { family: 'network', role: 'risk', category: 'network' } as const

function zoneDiffers({ snapshot, network }: Facts): boolean {
  const here = snapshot?.environment.timezone
  const there = network.location?.timezone
  return !!here && !!there && here.split('/')[0] !== there.split('/')[0]
}

/** Where the session came from, as far as the configured databases know. */
export const networkSignals: Signal[] = [
  {
    ...base,
    slug: 'hosting_network',
    name: 'Hosting network',
    strength: 'moderate',
    score: 22,
    looksAt: 'the address belongs to a hosting provider, where a configured database says so',
    falsePositives: 'VPN exits, office gateways, remote desktops in a data centre',
    fires: ({ network }) => network.anonymity.hosting,
  },
  {
    ...base,
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
    ...base,
    slug: 'anonymous_proxy',
    name: 'Anonymous proxy or Tor exit',
    strength: 'weak',
    score: 12,
    looksAt: 'the address is an open proxy or a Tor exit, where a configured database says so',
    falsePositives: 'people who need anonymity',
    fires: ({ network: { anonymity: a } }) => a.proxy || a.tor || a.residential_proxy,
  },
  {
    ...base,
    slug: 'timezone_location_mismatch',
    name: 'Time zone of another continent',
    strength: 'weak',
    score: 8,
    looksAt: "the browser's time zone against that of the address",
    falsePositives: 'travellers, VPNs, UTC clocks (not counted)',
    fires: browser(
      (s, facts) => /\//.test(s.environment.timezone ?? '') && !facts.privacyTool && zoneDiffers(facts),
    ),
  },
]
