import { hash } from 'node:crypto'
import { z } from 'zod'
import { sortMembers } from '../../../infra/text.ts'
import document from './model.json' with { type: 'json' }

export const categories = [
  'environment',
  'behavioral',
  'fingerprint',
  'integrity',
  'network',
] as const

/** Subjects of signals. Signals of one channel observe the same thing, so they can't confirm each other. */
const channels = [
  'agent',
  'canvas',
  'app',
  'attestation',
  'clock',
  'completeness',
  'consistency',
  'console',
  'devices',
  'dispatch',
  'extensions',
  'form',
  'frames',
  'freshness',
  'functions',
  'globals',
  'graphics',
  'handshake',
  'headers',
  'hints',
  'history',
  'identity',
  'instrumentation',
  'keyboard',
  'locale',
  'machine',
  'network',
  'plugins',
  'pointer',
  'pressure',
  'protocol',
  'replay',
  'screen',
  'scroll',
  'slowness',
  'switching',
  'touch',
  'user_agent',
  'velocity',
  'webdriver',
  'window',
] as const
export type Channel = (typeof channels)[number]

const percentText = 'expected a whole number from 0 to 100'
const percent = z.int(percentText).min(0, percentText).max(100, percentText)
const countText = 'expected a whole number from 1 to 10'
const count = z.int(countText).min(1, countText).max(10, countText)
const nameText = 'expected 1 to 64 characters'
const name = z.string().min(1, nameText).max(64, nameText)

const modelSignal = z.strictObject({
  role: z.enum(['risk', 'trust', 'context']),
  category: z.enum(categories),
  channel: z.enum(channels),
  strength: z.enum(['weak', 'moderate', 'strong', 'definitive']),
  points: percent.describe(
    'Risk if only this signal fires. For a trust signal, the points it subtracts; 0 for context.',
  ),
  floor: percent
    .nullable()
    .describe('Minimum score if this signal fires, regardless of trust signals.'),
})
export type ModelSignal = z.infer<typeof modelSignal>

/** The weights and rules that turn fired signals into a score. */
export const scoringModel = z.strictObject({
  name,
  version: name.describe('Version of the standard model, or of the one this model was made from.'),
  signals: z.record(z.string(), modelSignal),
  proven: z
    .array(z.string())
    .describe(
      'Signals that prove which program it is. If one fires, its points are the score, regardless of other signals.',
    ),
  caps: z
    .strictObject({
      weak: percent.describe('Maximum of all weak signals together.'),
      habits: percent.describe('Maximum of all moderate input signals together.'),
      trust: percent.describe('Maximum that all trust signals together subtract.'),
      unconfirmed: percent.describe('Maximum score if no other channel confirms the signals.'),
    })
    .describe('Upper limits.'),
  floors: z.strictObject({
    no_snapshot: percent.describe('Minimum score without a readable snapshot.'),
  }),
  confirmation: z
    .strictObject({
      strong_channels: count.describe('Number of channels with a strong signal that is enough.'),
      supported: z
        .strictObject({
          strong_channels: count,
          channels: count,
          categories: z.array(z.enum(categories)),
        })
        .describe(
          'Alternative: fewer channels with a strong signal are enough if channels with a moderate signal of these categories bring the total to `channels`.',
        ),
    })
    .describe('Requirements for the verdict `bot` if no signal is definitive.'),
})
export type ScoringModel = z.infer<typeof scoringModel>

/** The model of this release, explained in docs/reference/scoring-model.md. bench/detection/fit.ts fits its points. */
export const standardModel: ScoringModel = scoringModel.parse(document)

const ids = new WeakMap<ScoringModel, string>()

/** Returns `tidegate-5` for the standard model. Other ids are content hashes, so equal models have the same id. */
export function modelId(model: ScoringModel): string {
  const id = ids.get(model) ?? idOf(model)
  ids.set(model, id)
  return id
}

function idOf(model: ScoringModel): string {
  const text = canonicalText(model)
  if (text === canonicalText(standardModel)) return `${standardModel.name}-${standardModel.version}`
  return `mdl_${hash('sha256', text).slice(0, 12)}`
}

const canonicalText = (model: ScoringModel) => JSON.stringify(sortMembers(model))
