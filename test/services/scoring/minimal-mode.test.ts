import { describe, expect, it } from 'vitest'
import { profileOf } from '../../../services/scoring/visitors/profile.ts'
import { testSession } from './support/events.ts'
import { decisionAbout, evaluateClient, slugs } from './support/sessions.ts'
import * as clients from './support/snapshots.ts'

const allowsMinimal = () => true
const surface = ['webgl.renderer', 'canvas.hash', 'fonts.detected_count', 'audio.hash']

/** The client's snapshot as the SDK takes it in the minimal mode, whatever it says of the mode. */
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

describe('where the organization allows the minimal mode', () => {
  it.each(people)('%s is human, and nothing that it left out is held against it', (_, client) => {
    const evaluation = evaluateClient(minimal(client), { allowsMinimal })
    expect([evaluation.score.verdict, slugs(evaluation)]).toEqual(['human', slugs(evaluation)])
    expect(evaluation.facts.missing).toEqual([])
    const whole = evaluateClient(client, { allowsMinimal })
    // Only what speaks for a person may be gone, so that nobody gains by it.
    expect(evaluation.score.risk).toBeGreaterThanOrEqual(whole.score.risk)
    const risks = ({ fired }: typeof whole) =>
      fired.filter(({ role }) => role === 'risk').map(({ slug }) => slug)
    expect(risks(whole)).toEqual(expect.arrayContaining(risks(evaluation)))
  })

  it('a decision says what nobody looked at', () => {
    const session = testSession('minimal', { client: minimal(clients.desktopChrome) })
    const decision = decisionAbout(session, { allowsMinimal })
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

  it('a visitor is not found again by likeness', () => {
    const { facts } = evaluateClient(minimal(clients.desktopChrome), { allowsMinimal })
    expect(profileOf(facts)?.distinctive).toBe(false)
  })

  it('all that has to be earned otherwise still has to be', () => {
    const { desktopChrome, proofsOf, withParts } = clients
    const agent = clients.agentOf(desktopChrome)
    const forged = [
      withParts(minimal(desktopChrome), { proofs: { ...proofsOf(agent), answer_mac: null } }),
      withParts(minimal(desktopChrome), { proofs: { engine_answers: [] } }),
      withParts(minimal(desktopChrome), { navigator: { language: null } }),
      { snapshot: { collection: { mode: 'minimal' } } },
    ]
    for (const client of forged)
      expect(evaluateClient(client, { allowsMinimal }).score.verdict).not.toBe('human')
    expect(evaluateClient(minimal(clients.headlessChrome), { allowsMinimal }).score.verdict).toBe(
      'bot',
    )
  })

  it('a whole snapshot of another client is judged as ever', () => {
    const whole = evaluateClient(clients.desktopChrome, { allowsMinimal })
    expect(whole.facts.isMinimal).toBe(false)
    expect(
      evaluateClient(minimal(clients.desktopChrome, 'full'), { allowsMinimal }).facts.missing,
    ).toEqual(surface)
  })
})

describe('where it does not, a script cannot choose the mode', () => {
  it.each([
    ['that says so', 'minimal'],
    ['that says nothing', null],
    ['that says the contrary', 'full'],
  ])('a snapshot without any fingerprint %s is incomplete, and not human', (_, mode) => {
    const evaluation = evaluateClient(minimal(clients.desktopChrome, mode))
    expect(evaluation.facts.missing).toEqual(surface)
    expect(slugs(evaluation)).toContain('telemetry_incomplete')
    expect(evaluation.score.verdict).toBe('inconclusive')
  })

  it('nor what it leaves out', () => {
    const client = clients.withParts(minimal(clients.desktopChrome, null), {
      webgl: { renderer: 'a card' },
    })
    expect(evaluateClient(client).score.verdict).toBe('inconclusive')
  })
})
