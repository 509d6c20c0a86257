import { type CommandDeps, type DecidedEvent, newId } from '../../../infra/event-store/decide.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import { findOrganization } from '../../../projections/organizations/queries.ts'
import { listModelChanges } from '../../../projections/policies/queries.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { decideBack, decideSwitch, type ModelCommand, type ModelState } from './decide.ts'
import type { ScoringModel } from './model.ts'

type Deps = Pick<CommandDeps, 'decide' | 'clock' | 'random'>

export interface ChangeRequest extends Pick<ModelCommand, 'effectiveAt' | 'reason'> {
  /** null = everybody who has no model of their own. */
  organizationId: string | null
}

/** `modelId` null: the organization has that of everybody again. */
export interface ModelChanged {
  modelId: string | null
  effectiveAt: number
}

/**
 * Makes it the model of an organization, or of everybody. undefined where it is so already. ApiError: see
 * `decideSwitch`.
 */
export function switchModel(
  deps: Deps,
  { model, ...request }: ChangeRequest & { model: ScoringModel },
): Promise<ModelChanged | undefined> {
  return change(deps, request, (state, command) => decideSwitch(state, { model, ...command }))
}

/** Back to the model before the newest change; once more leads forth again. ApiError: see `decideBack`. */
export function switchModelBack(
  deps: Deps,
  request: ChangeRequest,
): Promise<ModelChanged | undefined> {
  return change(deps, request, decideBack)
}

async function change(
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
    // Whoever waited for a lock is late.
    decide: (state) => decideChange(state, { ...request, eventId, now: clock() }),
  })
  if (event?.type !== 'ScoringModelChanged') return undefined
  return { modelId: event.data.model_id, effectiveAt: event.data.effective_at }
}

// An organization's are decided in turn with everything else about it.
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
