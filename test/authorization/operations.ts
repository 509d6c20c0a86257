import { z } from 'zod'
import type { Operation } from './expected.ts'

const document = z.object({
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.object({
        operationId: z.string(),
        security: z.array(z.record(z.string(), z.array(z.string()))),
        'x-required-scope': z.string().optional(),
        'x-own-organization': z.boolean().optional(),
        responses: z.record(z.string(), z.unknown()),
      }),
    ),
  ),
})

const openers: Record<string, Operation['keyType']> = {
  secretKey: 'secret',
  publishableKey: 'publishable',
  pollToken: 'poll',
  agentToken: 'agent',
}

const operationsIn = (given: unknown) =>
  Object.entries(document.parse(given).paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => ({
      place: `${method.toUpperCase()} ${path}`,
      ...one,
    })),
  )

/** Ids of operations by method and path, as `GET /v1/sessions`. */
export const operationsByPath = (given: unknown): ReadonlyMap<string, { operationId: string }> =>
  new Map(operationsIn(given).map((one) => [one.place, one]))

/** Access rules in an OpenAPI document by operation id; undefined = no key needed. */
export function readOperations(given: unknown): Map<string, Operation | undefined> {
  return new Map(
    operationsIn(given).map((one) => {
      const [scheme] = Object.keys(one.security[0] ?? {})
      if (scheme === undefined) return [one.operationId, undefined]
      const keyType = openers[scheme]
      if (!keyType) throw new Error(`${one.operationId} has an unknown scheme ${scheme}`)
      const ownOrganization = one['x-own-organization'] === true
      return [one.operationId, { keyType, scope: one['x-required-scope'], ownOrganization }]
    }),
  )
}

/** The statuses that an OpenAPI document lists, by operation id. */
export const describedStatuses = (given: unknown): ReadonlyMap<string, number[]> =>
  new Map(
    operationsIn(given).map((one) => [one.operationId, Object.keys(one.responses).map(Number)]),
  )
