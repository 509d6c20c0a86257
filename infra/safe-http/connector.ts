import type { Socket } from 'node:net'
import type { AddressRules } from './address-rules.ts'
import { DeliveryFailure } from './failure.ts'
import type { HostResolver } from './resolver.ts'
import { dial, secure } from './sockets.ts'
import { hostOf, loopback } from './url.ts'

export interface ConnectorOptions {
  rules: AddressRules
  resolve: HostResolver
  /** From the first SYN to the end of the TLS handshake. */
  timeoutMs: number
  /** PEM; instead of the certificate authorities that Node knows. */
  ca?: string | undefined
}

/** Opens a connection to the receiver of a URL; rejects with DeliveryFailure. */
export type Connector = (url: URL, signal: AbortSignal) => Promise<Socket>

/** How many addresses of a host are tried. */
const mostAddresses = 8

/**
 * Makes connections that cannot end anywhere but where the rules allow. The addresses are resolved here, every one is
 * checked, and those same addresses are dialled: nothing resolves the name a second time. The address at the other
 * end is checked once more before a byte is sent. Plain http goes to exceptions only: there is no certificate that
 * would tell a receiver from whoever answers at its address.
 */
export function createConnector({ rules, resolve, timeoutMs, ca }: ConnectorOptions): Connector {
  return async (url, signal) => {
    const isSecure = url.protocol === 'https:'
    const mayReach = isSecure ? rules.isAllowed : rules.isException
    const host = hostOf(url)
    const addresses = checkedAddresses(await resolve(host, signal), mayReach)
    return await beforeTimeout({ timeoutMs, signal }, async (stop) => {
      const port = Number(url.port) || (isSecure ? 443 : 80)
      const socket = await dial({ host, port, addresses, signal: stop })
      if (!mayReach(socket.remoteAddress ?? '')) {
        socket.destroy()
        throw forbidden()
      }
      return isSecure ? await secure(socket, { host, ca, signal: stop }) : socket
    })
  }
}

/** One bad answer condemns all: who mixes them in wants us to reach it sooner or later. */
function checkedAddresses(addresses: string[], mayReach: (ip: string) => boolean): string[] {
  const allowed = addresses.filter(mayReach)
  // Of the two meanings of localhost an operator may have allowed one.
  const isLocalhost = addresses.every((ip) => loopback.includes(ip))
  const areAllGood = allowed.length === addresses.length || isLocalhost
  if (allowed.length === 0 || !areAllGood) throw forbidden()
  return allowed.slice(0, mostAddresses)
}

function forbidden(): DeliveryFailure {
  return new DeliveryFailure('address', 'The host resolves to an address to which webhooks are not sent.')
}

async function beforeTimeout<R>(
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
  work: (stop: AbortSignal) => Promise<R>,
): Promise<R> {
  const stop = new AbortController()
  const timer = setTimeout(() => {
    stop.abort(new DeliveryFailure('timeout', 'The receiver did not accept a connection in time.'))
  }, timeoutMs)
  try {
    return await work(AbortSignal.any([signal, stop.signal]))
  } finally {
    clearTimeout(timer)
  }
}
