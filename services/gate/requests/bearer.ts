import type { FastifyRequest, onRequestHookHandler } from 'fastify'
import { enforcing } from '../../../infra/access/access.ts'
import { bearerOf } from '../../../infra/access/key-checks.ts'
import { isToken, type Token } from '../../../infra/crypto/tokens.ts'
import { ApiError } from '../../../infra/errors/errors.ts'

const kinds = { poll: 'gtpoll', agent: 'agt' } as const
const names = { gtpoll: 'a poll token', agt: 'an agent token' } as const

/** For routes that one of Gate's own tokens opens: 401 without a well-formed one. Whether it is good the route decides. */
export function requireToken(token: keyof typeof kinds): onRequestHookHandler {
  return enforcing({ token }, (request, _reply, done) => {
    readToken(request, kinds[token])
    done()
  })
}

export const pollTokenOf = (request: FastifyRequest): Token<'gtpoll'> => readToken(request, 'gtpoll')
export const agentTokenOf = (request: FastifyRequest): Token<'agt'> => readToken(request, 'agt')

function readToken<K extends 'gtpoll' | 'agt'>({ headers }: FastifyRequest, kind: K): Token<K> {
  const token = bearerOf(headers.authorization)
  if (isToken(kind, token)) return token
  const message = `This endpoint needs ${names[kind]}, ${kind}_..., and the one sent is none or has a typo.`
  throw new ApiError('auth.invalid_api_key', { message })
}
