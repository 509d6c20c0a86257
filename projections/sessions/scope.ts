import type { Environment } from '../../schemas/events.ts'

/** Bounds of every query: one organization and one environment. */
export interface DataScope {
  organizationId: string
  environment: Environment
}

export interface Page<Row> {
  rows: Row[]
  hasMore: boolean
}
