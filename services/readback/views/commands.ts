import { type CommandDeps, newId } from '../../../infra/event-store/decide.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import type { DataScope } from '../../../projections/sessions/scope.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { alertEvent } from './alert-decide.ts'
import { type AlertEdit, type AlertRow, findAlerts, storeAlertEdit } from './alert-store.ts'
import {
  decideErasedViews,
  decideViewCreation,
  decideViewDeletion,
  decideViewUpdate,
  requireView,
  type ViewChange,
  type ViewUpdate,
  viewEvent,
} from './decide.ts'
import { deleteViews, findViews, storeView, type ViewRow } from './store.ts'

type Deps = Omit<CommandDeps, 'keyring'>

/** Returns the id of the view. Throws the errors of `decideViewCreation`. */
export async function addView(
  deps: Deps,
  scope: DataScope,
  content: Pick<ViewRow, 'name' | 'query'>,
): Promise<string> {
  const now = deps.clock()
  const id = newId('view', { ...deps, now })
  const { organizationId: organization_id, environment } = scope
  const view = { id, organization_id, environment, ...content, now }
  await changeViews(deps, scope, (views) => decideViewCreation(views, view))
  return id
}

/** Throws the errors of `decideViewUpdate`. */
export async function updateView(
  deps: Deps,
  scope: DataScope,
  { id, ...update }: ViewUpdate & { id: string },
): Promise<void> {
  const now = deps.clock()
  await changeViews(deps, scope, (views) => decideViewUpdate(views, { ...update, id, now }))
}

/** Returns the deleted view. Throws 404 if it does not exist. */
export async function deleteView(deps: Deps, scope: DataScope, id: string): Promise<ViewRow> {
  const changes = await changeViews(deps, scope, (views) => decideViewDeletion(views, id))
  return requireView(
    changes.map(({ view }) => view),
    id,
  )
}

/** Deletes the views with a filter or search for any of the ids of an erased person. Returns their number. */
export async function deleteViewsNaming(
  deps: Deps,
  scope: DataScope,
  ids: readonly string[],
): Promise<number> {
  return (await changeViews(deps, scope, (views) => decideErasedViews(views, ids))).length
}

/**
 * Appends the events, then commits the rows. If the process dies in between, the audit log has a change that was not
 * made, and a repeat makes it; the other way around, a change could be missing from the audit log.
 */
export async function changeViews<Change extends ViewChange | AlertEdit>(
  { decide, clock, ...deps }: Deps,
  scope: DataScope,
  plan: (views: ViewRow[], alerts: AlertRow[]) => Change[],
): Promise<Change[]> {
  const now = clock()
  const eventId = newId('evt', { ...deps, now })
  let changes: Change[] = []
  await decide({
    topic: eventTopics.ViewSaved,
    projection: 'organizations',
    key: scope.organizationId,
    locks: [`views:${scope.organizationId}`],
    async load(tx) {
      changes = plan(await findViews(tx, scope), await findAlerts(tx, scope))
      return changes
    },
    decide: (planned: (ViewChange | AlertEdit)[]) =>
      planned.map((change) =>
        'view' in change
          ? viewEvent(change, { eventId, now })
          : alertEvent(change, { eventId, now }),
      ),
    async write(tx) {
      for (const change of changes) await storeChange(tx, change)
    },
  })
  return changes
}

function storeChange(tx: Tx, change: ViewChange | AlertEdit): Promise<void> {
  if ('alert' in change) return storeAlertEdit(tx, change)
  const { type, view } = change
  return type === 'ViewSaved' ? storeView(tx, view) : deleteViews(tx, [view.id])
}
