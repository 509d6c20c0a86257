import Table from 'cli-table3'
import type { GateServiceRow } from '../../projections/gate/tables.ts'
import type { ApiKeyRow, OrganizationRow } from '../../projections/organizations/tables.ts'
import type { KeyType } from '../../schemas/events.ts'

export type Cell = string | number | null

/**
 * A table, where it fits the terminal; else a paragraph for each row, with a line for each cell, so that ids can be
 * copied. The terminal wraps longer lines. What is piped on is as wide as it needs to be.
 */
export function textTable(
  head: string[],
  rows: Cell[][],
  width = process.stdout.columns || Number.POSITIVE_INFINITY,
): string {
  const texts = rows.map((row) =>
    row.map((cell) => (cell === null ? '-' : printable(String(cell)))),
  )
  // Colours would end up in files and pipes.
  const drawn = new Table({ head, style: { head: [], border: [], compact: true } })
  drawn.push(...texts)
  if (drawn.width <= width) return drawn.toString()
  return texts.map((row) => paragraph(head, row)).join('\n\n') || 'None.'
}

function paragraph(head: string[], row: string[]): string {
  const indent = Math.max(...head.map((name) => name.length)) + 2
  const line = (cell: string, i: number) =>
    (head[i] ?? '').padEnd(indent) + cell.replaceAll('\n', `\n${' '.repeat(indent)}`)
  return row.map(line).join('\n')
}

/** Replaces what would steer a terminal, because names are the customers'. Line ends stay: a list has one for each entry. */
export function printable(text: string): string {
  return text.replace(/[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}]/gu, '\uFFFD')
}

/** A table of the rows, whose columns are named in its head. */
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
    capabilities: ({ capabilities }) => capabilities.join(', ') || null,
    created: ({ created_at }) => timeText(created_at),
  })
}

const limitText = (limit: number | null, byDefault: number) =>
  limit === null ? `default (${byDefault})` : `${limit} in 60 s`

export function keyTable(keys: ApiKeyRow[]): string {
  return tableOf(keys, {
    id: ({ id }) => id,
    type: ({ type }) => type,
    environment: ({ environment }) => environment,
    name: ({ name }) => name,
    status: ({ status }) => status,
    key: ({ key_preview }) => key_preview,
    may: mayText,
    created: ({ created_at }) => timeText(created_at),
    ends: ({ revoked_at, grace_expires_at }) => timeText(revoked_at ?? grace_expires_at),
  })
}

function mayText({ type, scopes, client_target, allowed_origins }: ApiKeyRow): string {
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

/** Epoch milliseconds as `2026-11-23T12:00:00Z`. */
export function timeText(at: number): string
export function timeText(at: number | null): string | null
export function timeText(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString().replace(/\.\d+Z$/, 'Z')
}
