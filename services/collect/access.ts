import type { PublishablePrincipal } from '../../infra/access/principal.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import type { ClientPlatform } from '../../infra/wire/collect/messages.ts'

/**
 * Throws 403 when a native key is used by another platform's SDK, which costs no units (see refundOtherClient). A
 * browser key may report any platform: what it may not do is come from an origin that is not its own.
 */
export function checkPlatform({ clientTarget }: PublishablePrincipal, platform: ClientPlatform): void {
  if (clientTarget === 'browser' || clientTarget === `native_${platform}`) return
  throw new ApiError('auth.native_key_not_allowed')
}
