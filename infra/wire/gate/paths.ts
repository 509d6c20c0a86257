import type { GateSessionId } from '../../ids.ts'

/** Where a person decides about a signup or login. `publicUrl` has no slash at its end. */
export function consentUrl(publicUrl: string, gateSessionId: GateSessionId): string {
  return `${publicUrl}/gate/consent/${gateSessionId}`
}
