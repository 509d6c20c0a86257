import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'
import { scoringModel } from './model.ts'

export const modelSchema = z
  .strictObject({
    object: z.literal('scoring_model'),
    id: z.string().describe('Model id, as in `scoring.model` of sessions.'),
    is_standard: z.boolean().describe('True if this is the standard model of the release.'),
    effective_at: timestamp
      .nullable()
      .describe('Time when the model took effect. Null if the model was never changed.'),
    document: scoringModel,
  })
  .meta({ id: 'ScoringModel' })

export const currentModelSchema = modelSchema
  .extend({
    next: modelSchema.nullable().describe('Model of a scheduled change; null if there is none.'),
    signal_names: z
      .record(z.string(), z.string())
      .describe('Display names of all signals of this release, by signal.'),
  })
  .meta({ id: 'CurrentScoringModel' })

export type ScoringModelResponse = z.output<typeof currentModelSchema>
