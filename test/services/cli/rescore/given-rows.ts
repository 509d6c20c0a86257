import type { FactRow } from '../../../../services/cli/rescore/rehearse.ts'
import { type ScoringModel, standardModel } from '../../../../services/scoring/model/model.ts'
import { scoreOf } from '../../../../services/scoring/model/score.ts'

/** A session as the standard model decides it. */
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

/** The standard model with other points of some signals. */
export function modelWith(points: Record<string, number>): ScoringModel {
  const changed = Object.entries(standardModel.signals).map(([slug, signal]) => [
    slug,
    { ...signal, points: points[slug] ?? signal.points },
  ])
  return { ...standardModel, name: 'acme', signals: Object.fromEntries(changed) }
}

/** Numbers from 0 to 1, the same ones for a seed (mulberry32). */
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

/** Sessions of a few signals each, which many share, with all that a rehearsal groups them by. */
export function* randomRows(count: number, random: () => number): Generator<FactRow> {
  const one = <T>(some: readonly T[]): T | null => some[Math.floor(random() * some.length)] ?? null
  const decided = Array.from({ length: 2000 }, () => {
    const fired = new Set(Array.from({ length: Math.floor(random() * 7) }, () => one(slugs)))
    if (random() < 0.2) fired.add('developer_tools_detected')
    const signals = slugs.filter((slug) => fired.has(slug)).join(' ')
    return factRow({ signals, has_snapshot: random() < 0.97 })
  })
  for (let i = 0; i < count; i++) {
    yield {
      ...(one(decided) ?? factRow()),
      session_id: `sid_${i}`,
      browser: one(['Chrome', 'Firefox', null]),
      country: one(['DE', 'FR']),
      page_host: one(hosts),
      mark: random() < 0.1 ? one(['bot', 'human', 'legitimate', 'fraud']) : null,
    }
  }
}
