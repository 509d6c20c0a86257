import { webhooksProjection } from '../../../projections/webhooks/projection.ts'
import { type ReadModel, useReadModel } from '../read-model.ts'
import { recorded } from './events.ts'

export type WebhooksWorld = ReadModel

/** The read model in a database of the test file's own, empty before each test. */
export const useWebhooksWorld = (): WebhooksWorld => useReadModel(webhooksProjection, recorded)
