import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RuntimeIntegrity } from '../../../schemas/events.ts'
import { nativeDetailOf } from '../../../services/scoring/device.ts'
import { evidenceOf } from '../../../services/scoring/explain/evidence.ts'
import { runtimeIntegrityOf } from '../../../services/scoring/explain/findings.ts'
import { type Evaluation, withHistory } from '../../../services/scoring/signals/evaluate.ts'
import { repeatsOf } from '../../support/session-scored.ts'
import { evaluateClient } from './support/sessions.ts'
import { androidChrome, type Client, desktopChrome, desktopFirefox } from './support/snapshots.ts'

type Sent = Record<string, Record<string, unknown>>
type Member = [group: string, name: string, value: unknown]

// Values of which each makes some name of the runtime's integrity something else than clean, in some browser.
const hostile: Member[] = [
  ['automation', 'webdriver_own_property', true],
  ['automation', 'cdp_runtime', true],
  ['tamper', 'patched_functions', ['Permissions.query', 'Screen.width']],
  ['tamper', 'foreign_primitives', ['JSON.stringify', 'Reflect.get', 'navigator.vendor']],
  ['tamper', 'navigator_own_properties', ['platform']],
  ['tamper', 'realm_differences', ['frame.vendor']],
  ['tamper', 'iframe_srcdoc_proxy', true],
  ['tamper', 'chrome_runtime_faked', true],
  ['tamper', 'webgl_parameter_mismatch', true],
  ['tamper', 'timezone_mismatch', true],
  ['tamper', 'brave', true],
  ['navigator', 'plugins_genuine', false],
  ['navigator', 'product_sub', '19990101'],
  ['navigator', 'platform', 'PlayStation 5'],
  ['navigator', 'hardware_concurrency', 200],
  ['navigator', 'max_touch_points', 0],
  ['environment', 'pointer_coarse', false],
  ['canvas', 'noise_detected', true],
  ['audio', 'noise_detected', true],
  ['audio', 'voice_count', 0],
  ['fonts', 'detected_count', 0],
  ['media', 'device_count', 0],
  ['webgl', 'renderer', 'Google SwiftShader'],
  ['engine', 'name', 'JavaScriptCore'],
  ['worker', 'platform', 'Linux x86_64'],
  ['worker', 'user_agent', 'Mozilla/5.0 of another'],
  ['iframe', 'platform', 'Linux x86_64'],
  ['iframe', 'user_agent', 'Mozilla/5.0 of another'],
]
const groups = [...new Set(hostile.map(([group]) => group))]
const members = hostile
  .filter(([, , value]) => !Array.isArray(value))
  .map(([group, name]) => [group, name])

const clients: Client[] = [desktopChrome, desktopFirefox, androidChrome]

function copyOf({ snapshot, ...rest }: Client) {
  const sent: Sent = structuredClone(Object(snapshot))
  return { ...rest, snapshot: sent }
}

function judged(client: Client, isCounted: boolean) {
  const own = evaluateClient(client)
  const repeats = isCounted ? repeatsOf(1) : null
  const { facts, fired }: Evaluation = withHistory(own, { visitorSessions: 1, repeats, near: null })
  const runtime_integrity = runtimeIntegrityOf(fired, facts)
  const described = { ...nativeDetailOf(facts), visitor: null, runtime_integrity }
  return { integrity: runtime_integrity, unchecked: evidenceOf(facts, described).unchecked }
}

function add({ snapshot }: { snapshot: Sent }, [group, name, value]: Member): void {
  snapshot[group] = { ...snapshot[group], [name]: value }
  // The SDK looks for imitations of what is there.
  if (name === 'chrome_runtime_faked')
    snapshot.environment = { ...snapshot.environment, has_chrome_object: true }
}

const namesOf = (integrity: RuntimeIntegrity) => Object.entries(integrity)

describe('a name of the integrity of the runtime', () => {
  it('never is clean, unless it is unchecked, because what would speak against it was not sent', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...clients),
        fc.subarray(hostile, { maxLength: 4 }),
        fc.subarray(members, { maxLength: 4 }),
        fc.subarray(groups, { maxLength: 2 }),
        fc.boolean(),
        (client, bad, leftOut, wholeGroups, isCounted) => {
          const sent = copyOf(client)
          for (const one of bad) add(sent, one)
          const before = judged(sent, isCounted)
          for (const [group = '', name = ''] of leftOut) delete sent.snapshot[group]?.[name]
          for (const group of wholeGroups) delete sent.snapshot[group]
          const after = judged(sent, isCounted)
          const hidden = namesOf(after.integrity).filter(
            ([name, level]) => level === 'clean' && Object(before.integrity)[name] !== 'clean',
          )
          expect(after.unchecked).toEqual(expect.arrayContaining(hidden.map(([name]) => name)))
        },
      ),
      { numRuns: 200 },
    )
  })

  it('is not unchecked in whole snapshots of browsers', () => {
    for (const client of clients) {
      const unchecked = judged(client, true).unchecked.filter((name) => !name.includes('.'))
      expect([client, unchecked]).toEqual([client, []])
    }
  })

  it('says nothing of replays where nobody counted what others sent', () => {
    expect(judged(desktopChrome, false).unchecked).toContain('replay_suspected')
  })
})
