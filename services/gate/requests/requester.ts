import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'
import { plainAddress } from '../../../infra/ip/address.ts'

/** What the person who decides is shown of who asked. */
export interface Requester {
  requested_ip: string | null
  requested_user_agent: string | null
}

const userAgentCharacters = 200

/** The address as people write it and the first 200 characters of the user agent, which cannot turn what follows around; null for what there is none of. */
export function requesterOf({ ip, headers }: Pick<FastifyRequest, 'ip' | 'headers'>): Requester {
  const userAgent = (headers['user-agent'] ?? '').replace(/[\p{Cc}\p{Bidi_Control}]+/gu, ' ').trim()
  return {
    requested_ip: ipaddr.isValid(ip) ? plainAddress(ip) : null,
    requested_user_agent: Array.from(userAgent).slice(0, userAgentCharacters).join('') || null,
  }
}
