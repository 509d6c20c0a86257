/** Scoring model, as in `document` of `GET /v1/scoring/model`. */
export interface ModelDocument {
  signals: Record<string, DocumentSignal>
  proven: string[]
  caps: { weak: number; habits: number; trust: number; unconfirmed: number }
  floors: { no_snapshot: number }
  confirmation: {
    strong_channels: number
    supported: { strong_channels: number; channels: number; categories: string[] }
  }
}

interface DocumentSignal {
  role: string
  category: string
  channel: string
  strength: string
  points: number
  floor: number | null
}

/** Columns of `read.session_facts` that determine the score. */
export interface ScoredRow {
  signals: string[]
  has_snapshot: boolean
}

export function plainScore(
  document: ModelDocument,
  row: ScoredRow,
): { risk_score: number; verdict: string } {
  const risk_score = Math.round(plainRisk(document, row))
  return {
    risk_score,
    verdict: risk_score >= 70 ? 'bot' : risk_score >= 40 ? 'inconclusive' : 'human',
  }
}

/**
 * Returns the score before rounding, computed as docs/guide/scoring.md describes, without code of the scoring service.
 */
export function plainRisk(document: ModelDocument, row: ScoredRow): number {
  const { caps, floors, confirmation } = document
  const proven = row.signals.find((slug) => document.proven.includes(slug))
  if (proven !== undefined) return document.signals[proven]?.points ?? 0
  // Remaining probability, per group of signals, that the session is not a bot.
  const doubt = { weak: 1, habits: 1, others: 1 }
  let [trust, definitive, floor] = [0, 0, row.has_snapshot ? 0 : floors.no_snapshot]
  const strong = new Set<string>()
  const supporting = new Set<string>()
  for (const slug of row.signals) {
    const signal = document.signals[slug]
    if (!signal) continue
    const { role, category, channel, strength, points } = signal
    if (role === 'trust') trust += points
    if (role !== 'risk') continue
    floor = Math.max(floor, signal.floor ?? 0)
    if (strength === 'definitive') definitive = Math.max(definitive, points)
    else if (strength === 'weak') doubt.weak *= 1 - points / 100
    else if (strength === 'moderate' && category === 'behavioral') doubt.habits *= 1 - points / 100
    else doubt.others *= 1 - points / 100
    if (strength === 'strong') strong.add(channel)
    if (strength === 'moderate' && confirmation.supported.categories.includes(category))
      supporting.add(channel)
  }
  const left =
    Math.max(doubt.weak, 1 - caps.weak / 100) *
    Math.max(doubt.habits, 1 - caps.habits / 100) *
    doubt.others
  const evidence = Math.max(0, 100 - 100 * left - Math.min(trust, caps.trust))
  const { strong_channels, channels } = confirmation.supported
  const isConfirmed =
    strong.size >= confirmation.strong_channels ||
    (strong.size >= strong_channels && new Set([...strong, ...supporting]).size >= channels)
  const counted = isConfirmed ? evidence : Math.min(evidence, caps.unconfirmed)
  return Math.max(counted, definitive, floor)
}
