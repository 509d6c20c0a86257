import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import type { EventName } from '../../../infra/event-store/event.ts'
import type { SessionFacts } from '../../../projections/sessions/facts.ts'
import { eventTopics } from '../../../schemas/events.ts'

/** A row as JSON has it: times and dates are text, in Postgres's form where they were read. */
export type Row = Record<string, unknown>

export interface ViewEvent {
  type: EventName
  /** As `docs/reference` and the schemas have it. Encrypted members are null or empty where they are not opened. */
  data: Record<string, unknown>
  id: string
  /** Epoch milliseconds. */
  time: number
  organization_id: string | null
  environment: 'live' | 'test' | null
  /** Of `SessionScored`: the columns of the flat row that it fills. */
  facts: SessionFacts | null
}

/** What becomes of one row: `to` gets it as it is, or undefined, and returns it as it is to be; null = it goes. */
export interface Change {
  table: string
  key: Row
  to: (row: Row | undefined) => Row | null
}

// Postgres cuts names at 63 bytes, and builds and prefixes add to them.
const name = z.string().regex(/^[a-z][a-z0-9_]{0,39}$/, {
  error: 'expected a name of lower-case letters, digits and _, of 40 characters at most',
})
// Of the tables that every view has, and of the bookkeeping.
const ownName = /^(own_|projection_|erased_sessions$|schema_migrations$)/
const freeName = name.refine((one) => !ownName.test(one), {
  error: 'this name, or its beginning, is of a table that Tidegate makes itself',
})
const typeName = z.string().regex(/^[a-z][a-z0-9_ ]*(\(\d+(, ?\d+)?\))?(\[\])?$/, {
  error: 'expected a type of Postgres, such as text, bigint or timestamptz',
})
const isFunction = (value: unknown) => typeof value === 'function'

const viewTable = z
  .strictObject({ columns: z.record(name, typeName), key: z.array(name).min(1) })
  .refine(({ columns, key }) => key.every((one) => one in columns), {
    error: 'the key names a column that the table has not',
  })

const viewShape = z
  .strictObject({
    name: name.refine((one) => !/_b\d+$/.test(one), {
      error: 'a name that ends so is of a build of another view',
    }),
    version: z.int().min(1),
    events: z.array(z.enum(typeNames())).min(1),
    tables: z
      .record(freeName, viewTable)
      .refine((tables) => Object.keys(tables).length > 0, { error: 'expected at least one table' }),
    /** The column that says of which session a row is: all tables have it, or there is none. */
    session: name.optional(),
    /** By name, a select over the tables. */
    views: z.record(freeName, z.string().min(1)).default({}),
    handle: z.custom<(event: ViewEvent) => unknown>(isFunction, { error: 'expected a function' }),
  })
  .refine(
    ({ tables, session }) =>
      !session || Object.values(tables).every(({ columns }) => session in columns),
    {
      path: ['session'],
      error: 'each table must have this column; counts without it are a view of their own',
    },
  )
  .refine(({ tables, views }) => Object.keys(views).every((one) => !(one in tables)), {
    path: ['views'],
    error: 'a view and a table have one name',
  })

export type View = z.infer<typeof viewShape>

function typeNames(): EventName[] {
  const names: EventName[] = []
  for (const type in eventTopics) if (isEventName(type)) names.push(type)
  return names
}

function isEventName(text: string): text is EventName {
  return text in eventTopics
}

const fileShape = z.object({ default: viewShape }, { error: 'expected a module' })

/** Loads the file as a module. Throws what is wrong with it, by field. */
export async function loadView(file: string): Promise<View> {
  const url = pathToFileURL(path.resolve(file)).href
  const module: unknown = await import(url).catch((cause) => {
    throw new Error(
      `${file} cannot be loaded: ${cause instanceof Error ? cause.message : 'it threw'}`,
      {
        cause,
      },
    )
  })
  return readView(file, module)
}

/** Throws what the default export of the module lacks, by field. */
export function readView(file: string, module: unknown): View {
  const parsed = fileShape.safeParse(module)
  if (parsed.success) return parsed.data.default
  const problems = parsed.error.issues.map(
    ({ path: [, ...at], message }) => `  ${at.join('.') || 'default export'}: ${message}`,
  )
  throw new Error(`${file} is no view:\n${problems.join('\n')}`)
}
