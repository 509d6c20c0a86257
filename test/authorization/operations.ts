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

/** Its operations by method and path, as `GET /v1/sessions`. */
export function operationsByPath(given: unknown): ReadonlyMap<string, { operationId: string }> {
  const all = Object.entries(document.parse(given).paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, one]) => [`${method.toUpperCase()} ${path}`, one] as const,
    ),
  )
  return new Map(all)
}

/** What an OpenAPI document says about keys, by operation id; undefined = needs none. */
export function readOperations(given: unknown): Map<string, Operation | undefined> {
  const all = Object.values(document.parse(given).paths).flatMap((methods) =>
    Object.values(methods),
  )
  return new Map(
    all.map((one) => {
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
export function describedStatuses(given: unknown): ReadonlyMap<string, number[]> {
  const all = Object.values(document.parse(given).paths).flatMap((methods) =>
    Object.values(methods),
  )
  return new Map(
    all.map(({ operationId, responses }) => [operationId, Object.keys(responses).map(Number)]),
  )
}
