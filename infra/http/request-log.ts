import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ApiError } from '../errors/errors.ts'
import { loggedError } from '../telemetry.ts'

/** One line for each answered request, at the level its route asks for. Neither the URL nor an address: both may name a person. */
export function logRequests(app: FastifyInstance, logger: FastifyBaseLogger): void {
  const quietToo = logger.level === 'debug' || logger.level === 'trace'
  app.addHook('onResponse', (request, reply, done) => {
    const quiet = isQuiet(request, reply)
    if (quiet && !quietToo) return done()
    const fields = {
      request_id: request.id,
      method: request.method,
      route: request.routeOptions.url ?? null,
      status: reply.statusCode,
      duration_ms: Math.round(reply.elapsedTime * 100) / 100,
      organization_id: request.principal?.organizationId ?? null,
    }
    if (quiet) logger.debug(fields, 'request')
    else logger.info(fields, 'request')
    done()
  })
}

function isQuiet({ routeOptions }: FastifyRequest, { statusCode }: FastifyReply): boolean {
  const { probe, frequent } = routeOptions.config ?? {}
  return probe === true || (frequent === true && statusCode < 400)
}

/** What went wrong on our side, with its cause; refusals of the caller's request are in the request's line alone. */
export function logFailure(logger: FastifyBaseLogger, error: ApiError, request: FastifyRequest): void {
  if (error.status < 500) return
  const fields = {
    request_id: request.id,
    route: request.routeOptions.url ?? null,
    code: error.code,
    cause: loggedError(error.cause),
  }
  if (error.status === 503) logger.warn(fields, 'request refused for now')
  else logger.error(fields, 'request failed')
}
