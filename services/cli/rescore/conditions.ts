import { type EventSource, readEvents } from '../../../infra/event-store/read-events.ts'
import {
  eventTopics,
  type OrganizationDataPolicyChanged,
  type ScoringModelChanged,
} from '../../../schemas/events.ts'
import { modelInForce } from '../../scoring/model/in-force.ts'
import { modelId, type ScoringModel, standardModel } from '../../scoring/model/model.ts'
import { storedModel } from '../../scoring/model/own-model.ts'
import type { FindModel } from './compare.ts'
import type { Conditions } from './judge.ts'

export interface KnownConditions {
  /** For an organization's decisions at a time, by this release. */
  at(organizationId: string, time: number): Conditions
  modelOf: FindModel
}

type PolicyChange = Pick<
  OrganizationDataPolicyChanged,
  'organization_id' | 'allows_minimal_mode' | 'changed_at'
>
type ModelChange = Pick<ScoringModelChanged, 'organization_id' | 'model_id' | 'document' | 'effective_at'>

/** From the log: read models of another release may have other columns. */
export async function readConditions(source: EventSource): Promise<KnownConditions> {
  const policies: PolicyChange[] = []
  const models: (ModelChange & { model: ScoringModel })[] = []
  await readEvents(source, {
    topic: eventTopics.OrganizationDataPolicyChanged,
    handle(events) {
      for (const { type, data } of events) {
        if (type === 'OrganizationDataPolicyChanged') policies.push(data)
        if (type === 'ScoringModelChanged') models.push({ ...data, model: modelIn(data) })
      }
    },
  })
  const policiesOf = Map.groupBy(policies, (one) => one.organization_id)
  const modelsOf = Map.groupBy(models, (one) => one.organization_id)
  const known = knownModels(models)
  return {
    modelOf: (id) => known.get(id),
    at(organizationId, time) {
      const changes = { own: modelsOf.get(organizationId) ?? [], everybody: modelsOf.get(null) ?? [] }
      const policy = policiesOf.get(organizationId)?.findLast(({ changed_at }) => changed_at <= time)
      return {
        model: modelInForce(changes, time).change?.model ?? standardModel,
        allowsMinimal: policy?.allows_minimal_mode ?? false,
      }
    },
  }
}

const modelIn = ({ document }: ModelChange) => (document === null ? standardModel : storedModel(document))

/** Under the id of the change, and under that which the model has since it judges signals of a later release, too. */
export function knownModels(
  changes: Pick<ModelChange, 'model_id' | 'document'>[],
): Map<string, ScoringModel> {
  const own = changes.flatMap(({ model_id: id, document }) => {
    if (id === null || document === null) return []
    const model = storedModel(document)
    return [id, modelId(model)].map((name) => [name, model] as const)
  })
  return new Map([[modelId(standardModel), standardModel], ...own])
}
