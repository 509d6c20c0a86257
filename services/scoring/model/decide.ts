import { requireUsableOrganization } from '../../../infra/access/organization.ts'
import { checkAll } from '../../../infra/errors/check-all.ts'
import { ApiError, invalidField } from '../../../infra/errors/errors.ts'
import {
  type DecidedEvent,
  decidedEvent,
  type EventIdAndTime,
} from '../../../infra/event-store/decide.ts'
import { characterCount, isOneLine } from '../../../infra/text.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { ScoringModelRow } from '../../../projections/policies/tables.ts'
import { changeInEffect, type ModelChanges, modelInForce } from './in-force.ts'
import { modelId, type ScoringModel, standardModel } from './model.ts'

export interface ModelState {
  /** null if the command is about the default model. */
  organization: OrganizationRow | undefined | null
  changes: ModelChanges<ScoringModelRow>
}

export interface ModelCommand extends EventIdAndTime {
  /** Epoch milliseconds. Default: the earliest time by which all processes have read the change. */
  effectiveAt?: number | undefined
  reason: string
}

type Target = Pick<ScoringModelRow, 'model_id' | 'document'>

// Processes are notified of a change, and poll every 15 seconds in case a notification is lost.
const minNoticeMs = 30_000

/** Throws 404 if there is no such organization, and 422 if the time is too soon or the reason invalid. */
export function decideSwitch(
  state: ModelState,
  { model, ...command }: ModelCommand & { model: ScoringModel },
): DecidedEvent[] {
  const { change: latest, since } = modelInForce(state.changes, Infinity)
  return decideChange(state, command, {
    target: targetOf(model),
    latest: latest ?? standardTarget,
    since,
  })
}

/** Reverts the newest change. Throws like `decideSwitch`, and 409 if there is no change. */
export function decideRevert(state: ModelState, command: ModelCommand): DecidedEvent[] {
  const { own, defaults } = state.changes
  const changes = state.organization === null ? defaults : own
  const latest = changes.at(-1)
  if (!latest)
    throw new ApiError('request.conflict', { message: 'There is no earlier model to go back to.' })
  const previous = changeInEffect(changes.slice(0, -1), Math.min(latest.effective_at, command.now))
  const initial = state.organization === null ? standardTarget : { model_id: null, document: null }
  return decideChange(state, command, {
    target: previous ?? initial,
    latest,
    since: latest.effective_at,
  })
}

function targetOf(model: ScoringModel): Target {
  const id = modelId(model)
  return { model_id: id, document: id === modelId(standardModel) ? null : JSON.stringify(model) }
}

const standardTarget = targetOf(standardModel)

function decideChange(
  { organization }: ModelState,
  { effectiveAt, reason, eventId, now }: ModelCommand,
  { target, latest, since }: { target: Target; latest: Target; since: number | null },
): DecidedEvent[] {
  const organizationId =
    organization === null ? null : requireUsableOrganization(organization, 'operator').id
  const { effective_at, ...checked } = checkAll({
    effective_at: () => checkedEffectiveAt(effectiveAt, now),
    reason: () => checkedReason(reason),
  })
  if (isSame(target, latest) && (since ?? 0) <= effective_at) return []
  const { model_id, document } = target
  const data = { event_id: eventId, organization_id: organizationId, model_id, document }
  const change = { ...data, effective_at, ...checked, changed_at: now }
  const about = { organizationId, environment: null, eventId, now }
  return [decidedEvent({ type: 'ScoringModelChanged', data: change }, about)]
}

// Compares standard models by their missing document, because their id changes between releases.
function isSame(a: Target, b: Target): boolean {
  if (a.document === null || b.document === null)
    return a.document === b.document && (a.model_id === null) === (b.model_id === null)
  return a.model_id === b.model_id
}

function checkedEffectiveAt(effectiveAt: number | undefined, now: number): number {
  const soonest = now + minNoticeMs
  const time = effectiveAt ?? soonest
  if (time >= soonest) return time
  const expected = `${minNoticeMs / 1000} seconds from now, or later`
  throw invalidField({ name: 'effective_at', issue: 'invalid', expected })
}

function checkedReason(text: string): string {
  const reason = text.trim()
  if (reason !== '' && characterCount(reason) <= 200 && isOneLine(reason)) return reason
  throw invalidField({
    name: 'reason',
    issue: 'invalid',
    expected: '1-200 characters, on one line',
  })
}
