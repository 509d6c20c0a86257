import { ApiError, invalidField } from '../../../infra/errors/errors.ts'
import {
  type DecidedEvent,
  type EventIdAndTime,
  eventAbout,
} from '../../../infra/event-store/decide.ts'
import { derivedId } from '../../../infra/ids.ts'
import { normalizeForSearch } from '../../../infra/postgres/table.ts'
import type { ViewRow } from './store.ts'

export const viewLimits = { name: 80, query: 4096, views: 100 } as const

export interface ViewChange {
  type: 'ViewSaved' | 'ViewDeleted'
  view: ViewRow
}

export type NewView = Omit<ViewRow, 'created_at' | 'updated_at'> & { now: number }

/**
 * Returns no change if the command is a repeat. Throws 409 at the limit or if the name is taken, 422 if the name contains
 * a person's id or address.
 */
export function decideViewCreation(
  views: readonly ViewRow[],
  { now, ...view }: NewView,
): ViewChange[] {
  if (views.some(({ id }) => id === view.id)) return []
  if (views.length >= viewLimits.views)
    throw new ApiError('request.conflict', {
      message: `An environment may have ${viewLimits.views} saved views. Delete one first.`,
    })
  return [saved(views, { ...view, created_at: now, updated_at: now })]
}

export interface ViewUpdate {
  name?: string | undefined
  query?: string | undefined
}

/** Returns no change if the view stays the same. Throws 404 if it does not exist, and the errors of a creation. */
export function decideViewUpdate(
  views: readonly ViewRow[],
  { id, now, ...changes }: ViewUpdate & { id: string; now: number },
): ViewChange[] {
  const view = requireView(views, id)
  const { name = view.name, query = view.query } = changes
  if (name === view.name && query === view.query) return []
  return [saved(views, { ...view, name, query, updated_at: now })]
}

/** Throws 404 if the view does not exist. */
export function decideViewDeletion(views: readonly ViewRow[], id: string): ViewChange[] {
  return [{ type: 'ViewDeleted', view: requireView(views, id) }]
}

export function requireView(views: readonly ViewRow[], id: string): ViewRow {
  const view = views.find((view) => view.id === id)
  if (view) return view
  throw new ApiError('request.not_found', {
    message: 'No saved view with this id exists in this environment.',
  })
}

function saved(views: readonly ViewRow[], view: ViewRow): ViewChange {
  const name = normalizeForSearch(view.name)
  if (views.some((other) => other.id !== view.id && normalizeForSearch(other.name) === name))
    throw new ApiError('request.conflict', {
      message: `A saved view named "${view.name}" exists.`,
      details: { fields: [{ name: 'name', issue: 'taken' }] },
    })
  refusePersonalName(view)
  return { type: 'ViewSaved', view }
}

const personalFields: ReadonlySet<string> = new Set(['visitor_id', 'client_user_id', 'ip'])
const fieldOf = (parameter: string) => parameter.replace('[not]', '')

// Erasures delete the view, but not its name in the audit log.
function refusePersonalName({ name, query }: ViewRow): void {
  const text = normalizeForSearch(name)
  for (const [parameter, value] of new URLSearchParams(query)) {
    const field = fieldOf(parameter)
    if (personalFields.has(field) && text.includes(normalizeForSearch(value)))
      throw invalidField({
        name: 'name',
        issue: 'not_allowed',
        expected: `names stay in the audit log, so they must not contain the value of ${field}`,
      })
  }
}

const namingFields: ReadonlySet<string> = new Set(['visitor_id', 'client_user_id', 'search'])

/** Returns the deletion of views with a filter or search for any of these ids. Ignores case, like the search. */
export function decideErasedViews(views: readonly ViewRow[], ids: readonly string[]): ViewChange[] {
  const erased = new Set(ids.map((id) => normalizeForSearch(id)))
  const namesErased = ({ query }: ViewRow) =>
    [...new URLSearchParams(query)].some(
      ([parameter, value]) =>
        namingFields.has(fieldOf(parameter)) && erased.has(normalizeForSearch(value.trim())),
    )
  return views.filter(namesErased).map((view) => ({ type: 'ViewDeleted', view }))
}

/** Returns the event of the change, which has no value of the query. */
export function viewEvent(
  { type, view }: ViewChange,
  { eventId, now }: EventIdAndTime,
): DecidedEvent {
  const { organization_id, environment, id: view_id, name, query } = view
  const fields = [...new Set(new URLSearchParams(query).keys())]
  const data = { organization_id, environment, view_id, name, fields }
  const about = { eventId: derivedId('evt', eventId, view_id), now }
  return type === 'ViewSaved'
    ? eventAbout(view, { type, data: { ...data, saved_at: now } }, about)
    : eventAbout(view, { type, data: { ...data, deleted_at: now } }, about)
}
