import type { Environment } from '../../schemas/events.ts'

/** Nothing outside it is ever found. */
export interface DataScope {
  organizationId: string
  environment: Environment
}

export interface Page<Row> {
  rows: Row[]
  hasMore: boolean
}
