import { describe, expect, it } from 'vitest'
import { profileOf } from '../../../services/scoring/visitors/profile.ts'
import { testSession } from './support/events.ts'
import { decisionAbout, evaluateClient, slugs } from './support/sessions.ts'
import * as clients from './support/snapshots.ts'

const allowsMinimalMode = () => true
const surface = ['webgl.renderer', 'canvas.hash', 'fonts.detected_count', 'audio.hash']

/** Returns the client without the parts that minimal mode omits. `mode`: the mode that it reports. */
function minimal(client: clients.Client, mode: string | null = 'minimal'): clients.Client {
  const leftOut = ['canvas', 'webgl', 'webgpu', 'audio', 'fonts', 'media']
  const kept = Object.entries(client.snapshot).filter(([group]) => !leftOut.includes(group))
  const agent = clients.agentOf(client)
  return clients.withParts(
    { ...client, snapshot: Object.fromEntries(kept) },
    {
      collection: { mode },
      worker: { webgl_renderer: null },
      iframe: { webgl_renderer: null },
      tamper: { webgl_parameter_mismatch: null },
      proofs: clients.proofsOf(agent),
    },
  )
}

const people = Object.entries({
  'desktop Chrome': clients.desktopChrome,
  'desktop Safari': clients.desktopSafari,
  'desktop Firefox': clients.desktopFirefox,
  'a hardened Firefox': clients.resistingFirefox,
  Brave: clients.brave,
  'an iPhone': clients.iphoneSafari,
  'Chrome on Android': clients.androidChrome,
})

describe('if the organization allows minimal mode', () => {
  it.each(people)('%s is human, without penalty for missing parts', (_, client) => {
    const evaluation = evaluateClient(minimal(client), { allowsMinimalMode })
    expect([evaluation.score.verdict, slugs(evaluation)]).toEqual(['human', slugs(evaluation)])
    expect(evaluation.facts.missing).toEqual([])
    const whole = evaluateClient(client, { allowsMinimalMode })
    // Only trust signals may disappear, so that nobody benefits from the mode.
    expect(evaluation.score.risk).toBeGreaterThanOrEqual(whole.score.risk)
    const risks = ({ fired }: typeof whole) =>
      fired.filter(({ role }) => role === 'risk').map(({ slug }) => slug)
    expect(risks(whole)).toEqual(expect.arrayContaining(risks(evaluation)))
  })

  it('a decision lists the unchecked fields', () => {
    const session = testSession('minimal', { client: minimal(clients.desktopChrome) })
    const decision = decisionAbout(session, { allowsMinimalMode })
    const { evidence, runtime_integrity, client_telemetry } = decision
    expect(evidence?.missing).toEqual([])
    const telemetry = ['canvas', 'graphics', 'audio', 'fonts', 'media']
    expect(evidence?.unchecked).toEqual(
      expect.arrayContaining([
        'virtualization_suspected',
        ...telemetry.map((one) => `client_telemetry.${one}`),
      ]),
    )
    expect(runtime_integrity.virtualization_suspected).toBe('clean')
    expect(client_telemetry.canvas.hash).toBeNull()
  })

  it('a visitor is not matched by fingerprint', () => {
    const { facts } = evaluateClient(minimal(clients.desktopChrome), { allowsMinimalMode })
    expect(profileOf(facts)?.distinctive).toBe(false)
  })

  it('other required evidence is still required', () => {
    const { desktopChrome, proofsOf, withParts } = clients
    const agent = clients.agentOf(desktopChrome)
    const forged = [
      withParts(minimal(desktopChrome), { proofs: { ...proofsOf(agent), answer_mac: null } }),
      withParts(minimal(desktopChrome), { proofs: { engine_answers: [] } }),
      withParts(minimal(desktopChrome), { navigator: { language: null } }),
      { snapshot: { collection: { mode: 'minimal' } } },
    ]
    for (const client of forged)
      expect(evaluateClient(client, { allowsMinimalMode }).score.verdict).not.toBe('human')
    expect(
      evaluateClient(minimal(clients.headlessChrome), { allowsMinimalMode }).score.verdict,
    ).toBe('bot')
  })

  it('a complete snapshot, or one that claims full mode, is judged as usual', () => {
    const whole = evaluateClient(clients.desktopChrome, { allowsMinimalMode })
    expect(whole.facts.isMinimal).toBe(false)
    expect(
      evaluateClient(minimal(clients.desktopChrome, 'full'), { allowsMinimalMode }).facts.missing,
    ).toEqual(surface)
  })
})

describe('if the organization does not allow minimal mode', () => {
  it.each([
    ['that claims minimal mode', 'minimal'],
    ['that claims no mode', null],
    ['that claims full mode', 'full'],
  ])('a snapshot without fingerprints %s is incomplete and inconclusive', (_, mode) => {
    const evaluation = evaluateClient(minimal(clients.desktopChrome, mode))
    expect(evaluation.facts.missing).toEqual(surface)
    expect(slugs(evaluation)).toContain('telemetry_incomplete')
    expect(evaluation.score.verdict).toBe('inconclusive')
  })

  it('a script cannot choose which parts to leave out', () => {
    const client = clients.withParts(minimal(clients.desktopChrome, null), {
      webgl: { renderer: 'a card' },
    })
    expect(evaluateClient(client).score.verdict).toBe('inconclusive')
  })
})
