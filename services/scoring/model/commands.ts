import { type CommandDeps, type DecidedEvent, newId } from '../../../infra/event-store/decide.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import { findOrganization } from '../../../projections/organizations/queries.ts'
import { listModelChanges } from '../../../projections/policies/queries.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { decideRevert, decideSwitch, type ModelCommand, type ModelState } from './decide.ts'
import type { ScoringModel } from './model.ts'

type Deps = Pick<CommandDeps, 'decide' | 'clock' | 'random'>

export interface ChangeRequest extends Pick<ModelCommand, 'effectiveAt' | 'reason'> {
  /** null = the default model, for organizations without a model of their own. */
  organizationId: string | null
}

export interface ModelChanged {
  /** null = the organization uses the default model again. */
  modelId: string | null
  effectiveAt: number
}

/**
 * Sets the model of an organization, or the default model. Returns undefined if nothing changes. Throws like
 * `decideSwitch`.
 */
export function switchModel(
  deps: Deps,
  { model, ...request }: ChangeRequest & { model: ScoringModel },
): Promise<ModelChanged | undefined> {
  return changeModel(deps, request, (state, command) => decideSwitch(state, { model, ...command }))
}

/** Reverts the newest change. A second call reverts the revert. Throws like `decideRevert`. */
export function revertModel(deps: Deps, request: ChangeRequest): Promise<ModelChanged | undefined> {
  return changeModel(deps, request, decideRevert)
}

async function changeModel(
  { decide, clock, random }: Deps,
  { organizationId, ...request }: ChangeRequest,
  decideChange: (state: ModelState, command: ModelCommand) => DecidedEvent[],
): Promise<ModelChanged | undefined> {
  const eventId = newId('evt', { random, now: clock() })
  const [event] = await decide({
    ...streamOf(organizationId),
    load: async (tx: Tx) => ({
      organization: organizationId === null ? null : await findOrganization(tx, organizationId),
      changes: await listModelChanges(tx, organizationId),
    }),
    // Read the clock again, because `decide` may have waited for a lock.
    decide: (state) => decideChange(state, { ...request, eventId, now: clock() }),
  })
  if (event?.type !== 'ScoringModelChanged') return undefined
  return { modelId: event.data.model_id, effectiveAt: event.data.effective_at }
}

// Changes of an organization's model are serialized with all other commands about the organization.
function streamOf(organizationId: string | null) {
  const common = { topic: eventTopics.ScoringModelChanged, projection: 'policies' }
  if (organizationId === null)
    return { ...common, key: 'everybody', locks: ['scoring-model:everybody'] }
  const organizations = { projection: 'organizations', topic: eventTopics.OrganizationCreated }
  return {
    ...common,
    key: organizationId,
    locks: [`organization:${organizationId}`],
    alsoReads: [{ ...organizations, key: organizationId }],
  }
}
