import { beforeAll, describe, expect, it } from 'vitest'
import results from '../../bench/detection/results.json' with { type: 'json' }
import { readAddresses } from '../../infra/ip/data/read.ts'
import { type NetworkSource, openNetwork } from '../../infra/ip/network.ts'
import { standardModel } from '../../services/scoring/model/model.ts'
import { scoreOf } from '../../services/scoring/model/score.ts'
import { evaluateClient } from '../services/scoring/support/sessions.ts'
import { desktopChrome } from '../services/scoring/support/snapshots.ts'

// People of the detection matrix come from 127.0.0.1, about which nothing is known. Here the same moments come from
// addresses that people have.

const people = results.rows.filter(
  ({ kind, signals_fired }) => kind === 'person' && signals_fired.length > 0,
)

let network: NetworkSource
beforeAll(async () => {
  const addresses = await readAddresses()
  network = await openNetwork({ addresses: () => addresses })
})

const slugsAt = (ip: string) =>
  evaluateClient(desktopChrome, { network: network.lookup(ip, 0) }).fired.map(({ slug }) => slug)

function verdictOf({ signals_fired }: (typeof people)[number], extra: string[]): string {
  const signals = [...signals_fired.map(({ signal }) => signal), ...extra]
  return scoreOf(standardModel, { signals, hasSnapshot: true }).verdict
}

describe('a person of the matrix', () => {
  it.each([
    ['a home line', '91.64.0.1', []],
    ['a home line in IPv6', '2601:646::1', []],
    ['a carrier', '172.56.1.1', []],
    ['a carrier in India', '49.36.1.1', []],
    ['a gateway of a company', '165.225.1.1', []],
    ['Apple’s relay', '104.28.32.1', ['vpn_associated_ip']],
    ['a VPN', '23.144.160.67', ['vpn_associated_ip']],
    ['a network that serves pages, as of WARP', '104.16.0.1', []],
    ['Tor', '185.220.101.1', ['anonymous_proxy']],
  ])('at %s has the same verdict', (_, ip, signals) => {
    const extra = slugsAt(ip).filter((slug) => !slugsAt('127.0.0.1').includes(slug))
    expect(extra).toEqual(signals)
    expect(people.length).toBeGreaterThan(150)
    const moved = people.filter((person) => verdictOf(person, extra) !== verdictOf(person, []))
    expect(moved.map(({ name, case: one }) => [name, one])).toEqual([])
  })

  it('behind a proxy that opens TLS with a library is no bot, unless the user agent was switched, too', () => {
    const bots = people.filter(
      (person) => verdictOf(person, ['browser_with_tool_handshake']) === 'bot',
    )
    expect(new Set(bots.map(({ case: one }) => one.replace('-throttled', '')))).toEqual(
      new Set(['person-chromium-user-agent-switcher']),
    )
  })
})
