import type { ClientPlatform } from '../../infra/collect-protocol/messages.ts'
import { ApiError } from '../../infra/http/errors.ts'
import type { PublishablePrincipal } from '../../infra/http/principal.ts'

/**
 * Throws 403 when a native key is used by another platform's SDK, which costs no units (see refundOtherClient). A
 * browser key may report any platform: what it may not do is come from an origin that is not its own.
 */
export function checkPlatform({ clientTarget }: PublishablePrincipal, platform: ClientPlatform): void {
  if (clientTarget === 'browser' || clientTarget === `native_${platform}`) return
  throw new ApiError('auth.native_key_not_allowed')
}
