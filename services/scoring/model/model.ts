import { hash } from 'node:crypto'
import { z } from 'zod'
import { sortedMembers } from '../../../infra/text.ts'
import document from './model.json' with { type: 'json' }

export const categories = [
  'environment',
  'behavioral',
  'fingerprint',
  'integrity',
  'network',
] as const

/** The thing that a signal observes. Signals of one channel observe the same thing, so they do not confirm each other. */
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
    'The risk that this alone means; of a trust signal what it takes away; 0 of context.',
  ),
  floor: percent
    .nullable()
    .describe('The score is at least this, whatever speaks for the session.'),
})
export type ModelSignal = z.infer<typeof modelSignal>

/** All that makes a score of the signals that fired. */
export const scoringModel = z.strictObject({
  name,
  version: name.describe('Of the standard model that this is, or was made from.'),
  signals: z.record(z.string(), modelSignal),
  proven: z
    .array(z.string())
    .describe(
      'Signals that prove whose program it is. Where one fired, its points are the score, whatever else did.',
    ),
  caps: z
    .strictObject({
      weak: percent.describe('All weak signals together count as at most this.'),
      habits: percent.describe('All moderate ones about input.'),
      trust: percent.describe('What all trust signals take away.'),
      unconfirmed: percent.describe(
        'The score where nothing of another channel confirms what fired.',
      ),
    })
    .describe('The most that counts.'),
  floors: z.strictObject({
    no_snapshot: percent.describe('The least score without a readable snapshot.'),
  }),
  confirmation: z
    .strictObject({
      strong_channels: count.describe('So many channels with a strong signal suffice.'),
      supported: z
        .strictObject({
          strong_channels: count,
          channels: count,
          categories: z.array(z.enum(categories)),
        })
        .describe(
          'So do fewer, if those with a moderate one of these categories make it so many channels.',
        ),
    })
    .describe('What the band of a bot takes, if no signal is definitive.'),
})
export type ScoringModel = z.infer<typeof scoringModel>

/** The model of this release. docs/reference/scoring-model.md says what its numbers mean; bench/detection/fit.ts fits points. */
export const standardModel: ScoringModel = scoringModel.parse(document)

const ids = new WeakMap<ScoringModel, string>()

/** `tidegate-5` for the standard model; any other is named by its content, so that equal ones have one name. */
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

const canonicalText = (model: ScoringModel) => JSON.stringify(sortedMembers(model))
