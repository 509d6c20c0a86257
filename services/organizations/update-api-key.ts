import { isDeepStrictEqual } from 'node:util'
import type { DomainEvent } from '../../infra/event-store/codec.ts'
import type { Decision } from '../../infra/event-store/decide.ts'
import { decided } from '../../infra/event-store/decided.ts'
import { checkedName, invalid } from '../../infra/http/checked-fields.ts'
import { derivedId } from '../../infra/ids.ts'
import { type Actor, organizationFor } from '../../projections/organizations/queries.ts'
import type { ApiKeyRow } from '../../projections/organizations/tables.ts'
import { bounds, checkedOrigins, checkedScopes } from './checked-fields.ts'
import { type KeyState, keyInUse } from './key-state.ts'

/** What can be changed of a key; undefined = as it is. */
export interface KeyChanges {
  name?: string | undefined
  allowedOrigins?: string[] | undefined
  scopes?: string[] | undefined
}

export interface UpdateApiKey extends KeyChanges {
  by: Actor
  /** Of this one update: its events get their ids from it. */
  changeId: string
  /** Epoch milliseconds. */
  now: number
}

const parameterSet = 'api_key_update'

/**
 * Changes the key's name, origins and scopes, one event for each that changes. 404 when there is no such key or it is
 * revoked, 403 when its organization is not active, 422 naming the field that does not fit.
 */
export function updateApiKey({ organization, key }: KeyState, command: UpdateApiKey): Decision[] {
  const { by, changeId, now } = command
  organizationFor(organization, by)
  const current = keyInUse(key)
  const { organization_id: organizationId, environment } = current
  const events = [
    ...rename(current, command),
    ...changeOrigins(current, command),
    ...changeScopes(current, command),
  ]
  return events.map((event) => {
    const eventId = derivedId('evt', changeId, event.type)
    return decided(event, { organizationId, environment, eventId, now })
  })
}

const about = ({ organization_id, id: key_id }: ApiKeyRow) => ({ organization_id, key_id })

function rename(key: ApiKeyRow, { name: text, now }: UpdateApiKey): DomainEvent[] {
  if (text === undefined) return []
  const name = checkedName(text, { max: bounds.keyName, parameterSet })
  return name === key.name ? [] : [{ type: 'ApiKeyRenamed', data: { ...about(key), name, renamed_at: now } }]
}

function changeOrigins(key: ApiKeyRow, { allowedOrigins, now }: UpdateApiKey): DomainEvent[] {
  if (!allowedOrigins) return []
  if (key.type === 'secret' || key.client_target !== 'browser') {
    const expected = 'publishable browser keys only'
    throw invalid({ name: 'allowed_origins', issue: 'not_allowed', expected }, parameterSet)
  }
  const { environment } = key
  const allowed_origins = checkedOrigins(allowedOrigins, { environment, parameterSet })
  if (isDeepStrictEqual(allowed_origins, key.allowed_origins)) return []
  return [{ type: 'ApiKeyOriginsChanged', data: { ...about(key), allowed_origins, changed_at: now } }]
}

function changeScopes(key: ApiKeyRow, command: UpdateApiKey): DomainEvent[] {
  if (!command.scopes) return []
  if (key.type === 'publishable') {
    throw invalid({ name: 'scopes', issue: 'not_allowed', expected: 'secret keys only' }, parameterSet)
  }
  const scopes = checkedScopes(command.scopes, parameterSet)
  if (isDeepStrictEqual(scopes, key.scopes)) return []
  return [{ type: 'ApiKeyScopesChanged', data: { ...about(key), scopes, changed_at: command.now } }]
}
