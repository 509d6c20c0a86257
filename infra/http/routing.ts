import type { FastifyInstance } from 'fastify'
import { ApiError, filledError } from '../errors/errors.ts'

interface KnownPath {
  pattern: RegExp
  methods: Set<string>
}

/**
 * Answers what no route took: 405 with `Allow` when the path exists under other methods, else 404.
 * Call before any route is added.
 */
export function answerUnrouted(app: FastifyInstance): void {
  const paths = new Map<string, KnownPath>()
  app.addHook('onRoute', ({ url, method }) => {
    const known = paths.get(url) ?? { pattern: patternOf(url), methods: new Set() }
    for (const one of [method].flat()) known.methods.add(one)
    paths.set(url, known)
  })
  app.setNotFoundHandler((request) => {
    const path = request.url.split('?', 1)[0] ?? ''
    const matching = [...paths.values()].filter(({ pattern }) => pattern.test(path))
    const methods = [...new Set(matching.flatMap((known) => [...known.methods]))].sort()
    if (methods.length === 0 || methods.includes(request.method)) throw new ApiError('request.not_found')
    const allow = methods.join(', ')
    throw filledError('request.method_not_allowed', { methods: allow }, { headers: { allow } })
  })
}

/** `/v1/sessions/:sessionId` and `/docs/*` as a regular expression over the whole path. */
function patternOf(url: string): RegExp {
  const source = url
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replace(/:[^/]+/g, '[^/]+')
    .replaceAll('*', '.*')
  return new RegExp(`^${source}$`)
}
