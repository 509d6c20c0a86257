import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { evolveKey, evolveOrganization } from './evolve.ts'
import {
  type ApiKeyRecord,
  keyFields,
  keyRow,
  type OrganizationRecord,
  organizationFields,
  organizationRow,
  saveKeys,
  saveOrganizations,
} from './records.ts'
import type { ApiKeyRow, OrganizationRow } from './rows.ts'

/**
 * Applies one partition's events, which hold all of an organization's: loads what they touch, evolves it, writes it
 * back whole. Event ids met before are dropped, so a repeat cannot bring an old name or status back.
 */
export async function apply(tx: Tx, events: RecordedEvent[]): Promise<void> {
  const fresh = await newEvents(tx, events)
  if (fresh.length === 0) return
  const organizations = await loadOrganizations(tx, fresh)
  const keys = await loadKeys(tx, fresh)
  for (const event of fresh) {
    evolve(organizations, organizationIdOf(event), (state) => evolveOrganization(state, event))
    if ('key_id' in event.data) evolve(keys, event.data.key_id, (state) => evolveKey(state, event))
  }
  await saveOrganizations(tx, [...organizations.values()])
  await saveKeys(tx, [...keys.values()])
}

function evolve<S>(states: Map<string, S>, id: string, step: (state: S | undefined) => S | undefined): void {
  const next = step(states.get(id))
  if (next) states.set(id, next)
}

async function newEvents(tx: Tx, events: RecordedEvent[]): Promise<RecordedEvent[]> {
  const ids = events.map((event) => event.meta.eventId)
  const { rows } = await tx.query<{ event_id: string }>(
    `insert into applied_events select * from unnest($1::text[]) on conflict do nothing returning event_id`,
    [ids],
  )
  const fresh = new Set(rows.map((row) => row.event_id))
  // delete makes a second event of the same id within the batch a repeat, too.
  return events.filter((event) => fresh.delete(event.meta.eventId))
}

async function loadOrganizations(tx: Tx, events: RecordedEvent[]): Promise<Map<string, OrganizationRow>> {
  const { rows } = await tx.query<OrganizationRecord>(
    `select ${organizationFields('o')} from organizations o where organization_id = any($1)`,
    [events.map(organizationIdOf)],
  )
  return new Map(rows.map((row) => [row.id, organizationRow(row)]))
}

async function loadKeys(tx: Tx, events: RecordedEvent[]): Promise<Map<string, ApiKeyRow>> {
  const ids = events.flatMap(({ data }) => ('key_id' in data ? [data.key_id] : []))
  if (ids.length === 0) return new Map()
  const { rows } = await tx.query<ApiKeyRecord>(
    `select ${keyFields('k')} from api_keys k where key_id = any($1)`,
    [ids],
  )
  return new Map(rows.map((row) => [row.id, keyRow(row)]))
}

/** Whom an event of the topic is about. */
export function organizationIdOf({ data }: RecordedEvent): string {
  return ('organization_id' in data && data.organization_id) || ''
}
