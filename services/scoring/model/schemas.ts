import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'
import { scoringModel } from './model.ts'

export const modelSchema = z
  .strictObject({
    object: z.literal('scoring_model'),
    id: z.string().describe('As decisions name it.'),
    is_standard: z.boolean().describe('Whether it is the one that this release brings.'),
    effective_at: timestamp.nullable().describe('Null where it was never another.'),
    document: scoringModel,
  })
  .meta({ id: 'ScoringModel' })

export const currentModelSchema = modelSchema
  .extend({ next: modelSchema.nullable().describe('That of a change which is still to come.') })
  .meta({ id: 'CurrentScoringModel' })

export type ScoringModelAnswer = z.output<typeof currentModelSchema>
