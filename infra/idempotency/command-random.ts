import type { MasterKey } from '../crypto/keyring.ts'
import type { Random } from '../ids.ts'
import { counterRandom } from '../random.ts'

/** What a command draws its ids and secrets from: the same for the same seed, known to the holder of the master key alone. */
export function commandRandom(master: MasterKey, seed: Buffer): Random {
  return counterRandom(master.derive('idempotent-command'), seed)
}
