import type { Db } from '../../../infra/postgres/pool.ts'
import { listModelChanges } from '../../../projections/policies/queries.ts'
import type { SessionScored } from '../../../schemas/events.ts'
import { modelId, type ScoringModel, standardModel } from '../model/model.ts'
import { parseStoredModel } from '../model/parse-model.ts'
import { type ScoreSteps, stepsToScore } from '../model/steps.ts'
import { signalCatalogue } from '../signals/catalogue.ts'

/** Breakdown of a decision's score. */
export interface ExplainedScore {
  /** null = the model that decided is not available. */
  steps: ScoreSteps['steps'] | null
  without_effect: string[]
  signals: { signal: string; name: string; looks_at: string; false_positives: string }[]
}

export function createScoreExplainer(db: Db): (decision: SessionScored) => Promise<ExplainedScore> {
  return async (decision) => explainScore(decision, await findModelOf(db, decision))
}

/** Explains the score with the model that decided. Leaves out the steps if they don't lead to the recorded score. */
export function explainScore(
  decision: SessionScored,
  model: ScoringModel | undefined,
): ExplainedScore {
  const { signals_fired, has_snapshot: hasSnapshot, risk_score } = decision
  const signals = signals_fired.map(({ signal }) => signal)
  const explained = model && stepsToScore(model, { signals, hasSnapshot })
  // The scoring rules may have changed since an earlier release decided.
  const isSame = (explained?.steps.at(-1)?.total ?? 0) === risk_score
  const { steps, without_effect } =
    explained && isSame ? explained : { steps: null, without_effect: [] }
  const fired = signalCatalogue.filter(({ slug }) => signals.includes(slug))
  return {
    steps,
    without_effect,
    signals: fired.map(({ slug, name, looksAt, falsePositives }) => ({
      signal: slug,
      name,
      looks_at: looksAt,
      false_positives: falsePositives,
    })),
  }
}

// Returns undefined for standard models of earlier releases, which are not stored.
async function findModelOf(
  db: Db,
  { organization_id, model }: Pick<SessionScored, 'organization_id' | 'model'>,
): Promise<ScoringModel | undefined> {
  if (model === modelId(standardModel)) return standardModel
  const { own, defaults } = await listModelChanges(db, organization_id)
  const models = [...own, ...defaults].flatMap(({ document }) =>
    document === null ? [] : parseStoredModel(document),
  )
  return models.find((candidate) => modelId(candidate) === model)
}
