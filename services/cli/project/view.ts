import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import type { EventName } from '../../../infra/event-store/event.ts'
import type { SessionFacts } from '../../../projections/sessions/facts.ts'
import { eventTopics } from '../../../schemas/events.ts'

/** Row as JSON. In rows read from the table, times and dates are text in the format of Postgres. */
export type Row = Record<string, unknown>

export interface ViewEvent {
  type: EventName
  /** Fields of the event, as in `docs/reference/events.md`. Encrypted ones are null or empty without the master keys. */
  data: Record<string, unknown>
  id: string
  /** Epoch milliseconds. */
  time: number
  organization_id: string | null
  environment: 'live' | 'test' | null
  /** Columns of the session facts row; null unless the type is `SessionScored`. */
  facts: SessionFacts | null
}

/** Change of a row. `to` gets the current row, if there is one, and returns the new row, or null to delete it. */
export interface Change {
  table: string
  key: Row
  to: (row: Row | undefined) => Row | null
}

// Leaves room for the prefix and the suffix of the schema: Postgres truncates names at 63 bytes.
const name = z.string().regex(/^[a-z][a-z0-9_]{0,39}$/, {
  error: 'expected a name of at most 40 lowercase letters, digits and _, starting with a letter',
})
// Names and prefixes of the bookkeeping tables.
const reservedName = /^(own_|projection_|erased_sessions$|schema_migrations$)/
const relationName = name.refine((text) => !reservedName.test(text), {
  error: 'this name or its prefix is reserved for tables of Tidegate',
})
const typeName = z.string().regex(/^[a-z][a-z0-9_ ]*(\(\d+(, ?\d+)?\))?(\[\])?$/, {
  error: 'expected a Postgres type, such as text, bigint or timestamptz',
})
const isFunction = (value: unknown) => typeof value === 'function'

const viewTable = z
  .strictObject({ columns: z.record(name, typeName), key: z.array(name).min(1) })
  .refine(({ columns, key }) => key.every((column) => column in columns), {
    error: 'the key names a column that the table does not have',
  })

const viewSchema = z
  .strictObject({
    name: name.refine((text) => !/_b\d+$/.test(text), {
      error: 'names ending in _b and digits are reserved',
    }),
    version: z.int().min(1),
    events: z.array(z.enum(typeNames())).min(1),
    tables: z
      .record(relationName, viewTable)
      .refine((tables) => Object.keys(tables).length > 0, { error: 'expected at least one table' }),
    /** Column with the session id: a row is deleted with its session. If set, every table must have it. */
    session: name.optional(),
    /** Selects over the tables, by the view's name. */
    views: z.record(relationName, z.string().min(1)).default({}),
    handle: z.custom<(event: ViewEvent) => unknown>(isFunction, { error: 'expected a function' }),
  })
  .refine(
    ({ tables, session }) =>
      !session || Object.values(tables).every(({ columns }) => session in columns),
    {
      path: ['session'],
      error: 'each table must have this column; move counts without it to a view of their own',
    },
  )
  .refine(({ tables, views }) => Object.keys(views).every((view) => !(view in tables)), {
    path: ['views'],
    error: 'a view and a table have the same name',
  })

export type View = z.infer<typeof viewSchema>

function typeNames(): EventName[] {
  const names: EventName[] = []
  for (const type in eventTopics) if (isEventName(type)) names.push(type)
  return names
}

function isEventName(text: string): text is EventName {
  return text in eventTopics
}

const moduleSchema = z.object({ default: viewSchema }, { error: 'expected a module' })

/** Loads the view's module. Throws an error that lists the invalid fields. */
export async function loadView(file: string): Promise<View> {
  const url = pathToFileURL(path.resolve(file)).href
  const module: unknown = await import(url).catch((cause) => {
    throw new Error(`Cannot load ${file}: ${cause instanceof Error ? cause.message : 'it threw'}`, {
      cause,
    })
  })
  return parseView(file, module)
}

/** Returns the module's default export as a view. Throws an error that lists the invalid fields. */
export function parseView(file: string, module: unknown): View {
  const parsed = moduleSchema.safeParse(module)
  if (parsed.success) return parsed.data.default
  const problems = parsed.error.issues.map(
    ({ path: [, ...field], message }) => `  ${field.join('.') || 'default export'}: ${message}`,
  )
  throw new Error(`${file} is not a valid view:\n${problems.join('\n')}`)
}
