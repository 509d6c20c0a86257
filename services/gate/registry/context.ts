import type { GateContext } from '../context.ts'

/** What the routes of the registry and of services need of Gate. */
export type RegistryContext = Pick<
  GateContext,
  'pool' | 'publicUrl' | 'auth' | 'idempotency' | 'decide' | 'clock' | 'random' | 'depsOf' | 'scopeOf'
>
