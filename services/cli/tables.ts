import Table from 'cli-table3'
import type { GateServiceRow } from '../../projections/gate/tables.ts'
import { keyEndOf } from '../../projections/organizations/queries.ts'
import type { ApiKeyRow, OrganizationRow } from '../../projections/organizations/tables.ts'
import type { KeyType } from '../../schemas/events.ts'

export type Cell = string | number | null

/**
 * Returns a table if it fits the terminal, otherwise a paragraph per row with a line per cell, so that ids stay whole.
 * Without a terminal the width is unlimited.
 */
export function textTable(
  head: string[],
  rows: Cell[][],
  width = process.stdout.columns || Number.POSITIVE_INFINITY,
): string {
  const texts = rows.map((row) =>
    row.map((cell) => (cell === null ? '-' : printable(String(cell)))),
  )
  // No colors, which would end up in files and pipes.
  const table = new Table({ head, style: { head: [], border: [], compact: true } })
  table.push(...texts)
  if (table.width <= width) return table.toString()
  return texts.map((row) => paragraph(head, row)).join('\n\n') || 'None.'
}

function paragraph(head: string[], row: string[]): string {
  const indent = Math.max(...head.map((name) => name.length)) + 2
  const line = (cell: string, i: number) =>
    (head[i] ?? '').padEnd(indent) + cell.replaceAll('\n', `\n${' '.repeat(indent)}`)
  return row.map(line).join('\n')
}

/** Replaces control characters except line breaks: customers choose names, and a name could contain terminal escapes. */
export function printable(text: string): string {
  return text.replace(/[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}]/gu, '\uFFFD')
}

/** Returns a table. `columns` maps the heading of each column to the function that returns its cells. */
export function tableOf<Row>(
  rows: readonly Row[],
  columns: Record<string, (row: Row) => Cell>,
): string {
  const cells = Object.values(columns)
  return textTable(
    Object.keys(columns),
    rows.map((row) => cells.map((cell) => cell(row))),
  )
}

export function organizationTable(
  organizations: OrganizationRow[],
  defaults: Readonly<Record<KeyType, number>>,
): string {
  return tableOf(organizations, {
    id: ({ id }) => id,
    slug: ({ slug }) => slug,
    name: ({ name }) => name,
    status: ({ status }) => status,
    'secret limit': ({ secret_limit }) => limitText(secret_limit, defaults.secret),
    'publishable limit': ({ publishable_limit }) =>
      limitText(publishable_limit, defaults.publishable),
    'max key days': ({ max_key_days }) =>
      max_key_days === null ? 'unlimited' : String(max_key_days),
    capabilities: ({ capabilities }) => capabilities.join(', ') || null,
    created: ({ created_at }) => timeText(created_at),
  })
}

const limitText = (limit: number | null, defaultLimit: number) =>
  limit === null ? `default (${defaultLimit})` : `${limit} in 60 s`

export function keyTable(keys: ApiKeyRow[]): string {
  return tableOf(keys, {
    id: ({ id }) => id,
    type: ({ type }) => type,
    environment: ({ environment }) => environment,
    name: ({ name }) => name,
    status: ({ status }) => status,
    key: ({ key_preview }) => key_preview,
    permissions: permissionsText,
    created: ({ created_at }) => timeText(created_at),
    ends: (key) => timeText(key.revoked_at ?? keyEndOf(key)),
  })
}

function permissionsText({ type, scopes, client_target, allowed_origins }: ApiKeyRow): string {
  if (type === 'secret') return scopes?.join('\n') || 'nothing'
  if (client_target !== 'browser') return client_target.replace('_', '-')
  return allowed_origins?.join('\n') || 'any origin'
}

export function serviceTable(services: GateServiceRow[]): string {
  return tableOf(services, {
    id: ({ id }) => id,
    organization: ({ organization_id }) => organization_id,
    environment: ({ environment }) => environment,
    status: ({ status }) => status,
    verified: ({ verified }) => (verified ? 'yes' : 'no'),
    name: ({ definition }) => definition.name,
    website: ({ definition }) => definition.website,
    logo: ({ definition }) => definition.branding.logo_url,
  })
}

/** Formats epoch milliseconds as `2026-11-23T12:00:00Z`. */
export function timeText(at: number): string
export function timeText(at: number | null): string | null
export function timeText(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString().replace(/\.\d+Z$/, 'Z')
}
