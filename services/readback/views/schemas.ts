import { z } from 'zod'
import { atLeastOne, timestamp } from '../../../infra/http/schemas.ts'
import { iso } from '../../../infra/iso.ts'
import { characterCount, isOneLine, isVisible, orUndefined } from '../../../infra/text.ts'
import { groupFields } from '../../../projections/sessions/count-groups.ts'
import { filterQuery, filtersOf } from '../session-filters.ts'
import { viewLimits } from './decide.ts'
import type { ViewRow } from './store.ts'

const once = <T extends z.ZodType>(value: T) => z.tuple([value]).optional()

/** Parameters of the console's Sessions page: filters, and how the sessions are shown. */
const pageParameters = z.strictObject({
  ...filterQuery,
  search: once(z.string()),
  last: once(z.enum(['1h', '24h', '7d', '30d'])),
  group: once(z.enum(groupFields)),
  sort: once(z.string().regex(/^-?[a-z_]{1,40}$/, { error: 'a column name, or - and its name' })),
  columns: once(
    z.string().regex(/^[a-z_,]{1,400}$/, { error: 'column names, separated by commas' }),
  ),
})

function parseQuery(query: URLSearchParams) {
  const names = [...new Set(query.keys())]
  return pageParameters.safeParse(
    Object.fromEntries(names.map((name) => [name, query.getAll(name)])),
  )
}

/** Returns the filters and search of a view; undefined if its query is no longer valid. */
export function conditionsOfView(query: string) {
  const { data } = parseQuery(new URLSearchParams(query))
  const filters = data && orUndefined(() => filtersOf(data))
  return filters && { filters, search: data.search?.[0] }
}

const viewName = z
  .string()
  .trim()
  .refine((text) => isVisible(text) && isOneLine(text) && characterCount(text) <= viewLimits.name, {
    error: `1–${viewLimits.name} characters on one line`,
  })
  .meta({ minLength: 1, maxLength: viewLimits.name })
  .describe(
    'Unique in the environment, ignoring case. Kept permanently in the audit log, so use no personal data.',
  )

const viewQuery = z
  .string()
  .transform((text, context) => {
    const query = new URLSearchParams(text)
    const { data, error } = parseQuery(query)
    // Without the index of a repeated parameter: `query.country` instead of `query.country.0`.
    for (const issue of error?.issues ?? [])
      context.issues.push({ ...issue, path: issue.path.slice(0, 1), input: undefined })
    if (data && !orUndefined(() => filtersOf(data)))
      context.addIssue('a query whose since and score_min are not beyond until and score_max')
    return query.toString()
  })
  .refine((text) => text.length <= viewLimits.query, {
    error: `at most ${viewLimits.query} characters when percent-encoded`,
  })
  .meta({ maxLength: viewLimits.query })
  .describe(
    "Query string of the console's Sessions page: filters of `GET /v1/sessions` with `search`, and optionally `last` (`1h`, `24h`, `7d` or `30d`), `group`, `sort` and `columns`. Example: `verdict=bot&country[not]=DE&last=24h`.",
  )

export const createViewBody = z.strictObject({ name: viewName, query: viewQuery })
export const updateViewBody = atLeastOne({
  name: viewName.optional(),
  query: viewQuery.optional(),
})

export const viewSchema = z
  .strictObject({
    object: z.literal('view'),
    id: z.string(),
    name: z.string(),
    query: z.string().describe("Query string of the console's Sessions page, percent-encoded."),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'View' })

export function viewJson({ id, name, query, created_at, updated_at }: ViewRow) {
  const times = { created_at: iso(created_at), updated_at: iso(updated_at) }
  return { object: 'view' as const, id, name, query, ...times }
}
