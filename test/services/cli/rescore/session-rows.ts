import type { FactRow } from '../../../../services/cli/rescore/rehearse.ts'
import { type ScoringModel, standardModel } from '../../../../services/scoring/model/model.ts'
import { scoreOf } from '../../../../services/scoring/model/score.ts'

/** Returns a session with the decision of the standard model. */
export function factRow({
  signals = '',
  has_snapshot = true,
  ...row
}: Partial<FactRow> = {}): FactRow {
  const evidence = {
    signals: (signals ?? '').split(' ').filter(Boolean),
    hasSnapshot: has_snapshot === true,
  }
  const { risk, verdict } = scoreOf(standardModel, evidence)
  return {
    session_id: 'sid_1',
    organization_id: 'org_1',
    evaluated_at: Date.UTC(2026, 10, 23, 12),
    verdict,
    risk_score: risk,
    model: 'tidegate-6',
    signals,
    has_snapshot,
    browser: 'Chrome',
    country: 'DE',
    page_host: 'shop.example',
    mark: null,
    ...row,
  }
}

/** Returns the standard model with other points for these signals. */
export function modelWith(points: Record<string, number>): ScoringModel {
  const changed = Object.entries(standardModel.signals).map(([slug, signal]) => [
    slug,
    { ...signal, points: points[slug] ?? signal.points },
  ])
  return { ...standardModel, name: 'acme', signals: Object.fromEntries(changed) }
}

/** Returns a generator of numbers from 0 to 1, which depend only on the seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

const hosts = ['shop.example', 'blog.example', 'app.example']
const slugs = Object.keys(standardModel.signals)

/** Yields sessions with up to seven signals, in recurring combinations, and random fields. */
export function* randomRows(count: number, random: () => number): Generator<FactRow> {
  const pick = <T>(options: readonly T[]): T | null =>
    options[Math.floor(random() * options.length)] ?? null
  const decided = Array.from({ length: 2000 }, () => {
    const fired = new Set(Array.from({ length: Math.floor(random() * 7) }, () => pick(slugs)))
    if (random() < 0.2) fired.add('developer_tools_detected')
    const signals = slugs.filter((slug) => fired.has(slug)).join(' ')
    return factRow({ signals, has_snapshot: random() < 0.97 })
  })
  for (let i = 0; i < count; i++) {
    yield {
      ...(pick(decided) ?? factRow()),
      session_id: `sid_${i}`,
      browser: pick(['Chrome', 'Firefox', null]),
      country: pick(['DE', 'FR']),
      page_host: pick(hosts),
      mark: random() < 0.1 ? pick(['bot', 'human', 'legitimate', 'fraud']) : null,
    }
  }
}
