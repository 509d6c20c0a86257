import type { Environment } from '../../schemas/events.ts'

/** Organization and environment to which a query is limited. */
export interface DataScope {
  organizationId: string
  environment: Environment
}

export interface Page<Row> {
  rows: Row[]
  hasMore: boolean
}
