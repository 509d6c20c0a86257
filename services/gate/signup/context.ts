import type { GateContext } from '../context.ts'

/** What the routes of signups need of Gate. */
export type SignupContext = Pick<
  GateContext,
  | 'publicUrl'
  | 'pool'
  | 'decide'
  | 'keyring'
  | 'clock'
  | 'logger'
  | 'limits'
  | 'vault'
  | 'pages'
  | 'idempotency'
  | 'depsOf'
>
