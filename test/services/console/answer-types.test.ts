import { expectTypeOf, test } from 'vitest'
import type { z } from 'zod'
import type { single } from '../../../infra/http/schemas.ts'
import type { LoggedInPerson } from '../../../services/console/pages/shared/person.ts'
import type {
  ApiDelivery,
  ApiEndpoint,
  ApiErasure,
  ApiEvent,
  ApiIdentification,
  ApiKey,
  ApiModel,
  ApiSession,
  ApiVisitor,
  Counts,
  LinkedSessionRow,
  One,
  Organization,
  SessionList,
} from '../../../services/console/pages/shared/types.ts'
import type { consoleSessionSchema } from '../../../services/console/schemas.ts'
import type { erasureSchema } from '../../../services/erasure/routes.ts'
import type { apiKeySchema, organizationSchema } from '../../../services/organizations/schemas.ts'
import type { aggregatesSchema } from '../../../services/readback/aggregates-route.ts'
import type { sessionListSchema } from '../../../services/readback/list-route.ts'
import type { visitorLink, visitorSummarySchema } from '../../../services/readback/schemas/fingerprints.ts'
import type { identificationSchema } from '../../../services/readback/schemas/identification.ts'
import type { sessionDetailSchema } from '../../../services/readback/schemas/sessions.ts'
import type { currentModelSchema } from '../../../services/scoring/model/routes.ts'
import type { endpointSchema } from '../../../services/webhooks/endpoints/schemas.ts'
import type { deliverySchema, eventSchema } from '../../../services/webhooks/events/schemas.ts'

/** What a schema answers as it arrives: JSON has no undefined. */
type Arriving<S extends z.ZodType> = Sent<z.output<S>>
type Sent<T> = T extends readonly (infer Item)[]
  ? Sent<Item>[]
  : T extends object
    ? { [Name in keyof T]: Sent<Exclude<T[Name], undefined>> }
    : T

/** Of the schema's members those that the page's request includes. */
type Including<T, Name extends keyof T> = T & Required<Pick<T, Name>>

// The compiler is what holds these: what the API answers is what the pages read.
test('the pages read what the API answers', () => {
  expectTypeOf<Arriving<typeof consoleSessionSchema>>().toExtend<LoggedInPerson>()
  expectTypeOf<Arriving<typeof sessionListSchema>>().toExtend<SessionList>()
  expectTypeOf<Including<Arriving<typeof sessionDetailSchema>, 'score' | 'log'>>().toExtend<ApiSession>()
  expectTypeOf<Arriving<typeof visitorSummarySchema>>().toExtend<ApiVisitor>()
  expectTypeOf<Including<Arriving<typeof visitorLink>, 'resolution'>>().toExtend<
    NonNullable<LinkedSessionRow['visitor_fingerprint']>
  >()
  expectTypeOf<Arriving<typeof erasureSchema>>().toExtend<ApiErasure>()
  expectTypeOf<Arriving<typeof identificationSchema>>().toExtend<ApiIdentification>()
  expectTypeOf<Arriving<ReturnType<typeof single<typeof aggregatesSchema>>>>().toExtend<One<Counts>>()
  expectTypeOf<Arriving<typeof apiKeySchema>>().toExtend<ApiKey>()
  expectTypeOf<Arriving<typeof organizationSchema>>().toExtend<Organization>()
  expectTypeOf<Arriving<typeof currentModelSchema>>().toExtend<ApiModel>()
  expectTypeOf<Arriving<typeof endpointSchema>>().toExtend<ApiEndpoint>()
  expectTypeOf<Arriving<typeof deliverySchema>>().toExtend<ApiDelivery>()
  expectTypeOf<Arriving<typeof eventSchema>>().toExtend<ApiEvent>()
})
