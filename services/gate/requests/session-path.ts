import { z } from 'zod'
import { ApiError } from '../../../infra/errors/errors.ts'
import { type GateSessionId, isId } from '../../../infra/ids.ts'

/** Of routes about one signup or login. */
export const gateSessionParams = z.object({ gateSessionId: z.string() })

export interface GateSessionPath {
  Params: z.output<typeof gateSessionParams>
}

/** The id in the path; 404 for what cannot be one. */
export function gateSessionIdOf({ params }: { params: GateSessionPath['Params'] }): GateSessionId {
  if (isId('gate', params.gateSessionId)) return params.gateSessionId
  throw new ApiError('gate.session_not_found')
}
