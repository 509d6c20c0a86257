import { expect, test } from 'vitest'
import { noNetwork } from '../../../infra/ip/network.ts'
import { withClientCount } from '../../../infra/ip/records.ts'
import { behaviorSchema } from '../../../schemas/observations.ts'
import { attribute } from '../../../services/scoring/explain/attribution.ts'
import { withHistory } from '../../../services/scoring/signals/evaluate.ts'
import { repeatsOf } from '../../support/session-scored.ts'
import { evaluateClient } from './support/sessions.ts'
import { desktopChrome, headlessChrome } from './support/snapshots.ts'

const hosted = {
  ...noNetwork.lookup('8.8.8.8', 0),
  routing: { asn: '64500', organization: 'Example Cloud' },
}
const labelsOf = (isBot: boolean, anonymity: object) => {
  const { fired, facts } = evaluateClient(headlessChrome)
  const network = { ...hosted, anonymity: { ...hosted.anonymity, ...anonymity } }
  const labels = attribute(fired, { ...facts, network }, isBot)?.labels ?? []
  return labels.map(({ kind, value }) => `${kind}:${value}`)
}

test('labels name the environment, and for a bot also the network', () => {
  const labels = labelsOf(true, { hosting: true, provider: 'Mullvad VPN' })
  expect(labels).toEqual(
    expect.arrayContaining([
      'environment:headless',
      'provider:mullvad_vpn',
      'organization:example_cloud',
    ]),
  )
  expect(labelsOf(true, { hosting: false })).not.toContain('organization:example_cloud')
  const ofNobody = labelsOf(false, { hosting: true, provider: 'Mullvad VPN' })
  expect(ofNobody).toEqual([
    'tool:headless_chrome',
    'environment:headless',
    'environment:virtual_machine',
  ])
})

test.each([
  ['touch:scripted-touch', { touch: { touches: 2, untrusted: 2 } }],
  ['scroll:scripted-scrolling', { scroll: { wheel: 2, untrusted: 2 } }],
  ['clipboard:scripted-clipboard', { clipboard: { pastes: 1, untrusted: 1 } }],
  ['clipboard:pasted-text', { clipboard: { pastes: 1 } }],
])('behaviors contain %s', (expected, sent) => {
  const { facts } = evaluateClient(desktopChrome)
  const observed = (input: object) =>
    attribute([], { ...facts, behavior: behaviorSchema.parse(input) }, false)?.behaviors ?? []
  expect(observed(sent).map(({ channel, value }) => `${channel}:${value}`)).toEqual([expected])
  expect(observed({ keyboard: { keys: 20 }, clipboard: { copies: 3 } })).toEqual([])
})

test("client_count is the number of the address's visitors that day, set by the final decision", () => {
  const own = evaluateClient(desktopChrome)
  const { facts } = withHistory(own, { visitorSessions: 1, repeats: repeatsOf(12), near: null })
  expect(own.facts.network.evidence.client_count).toBeNull()
  expect(facts.network.evidence).toMatchObject({
    client_count: 12,
    operator_tags: ['shared_address'],
  })
})

test('counting clients again keeps a single shared_address tag', () => {
  const { evidence } = noNetwork.lookup('8.8.8.8', 0)
  const tagged = withClientCount({ ...evidence, operator_tags: ['vpn'] }, 10)
  expect(tagged.operator_tags).toEqual(['vpn', 'shared_address'])
  expect(withClientCount(tagged, 11)).toEqual({ ...tagged, client_count: 11 })
  expect(withClientCount(tagged, 9).operator_tags).toEqual(['vpn'])
})
