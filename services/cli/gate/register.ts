import type { Command } from 'commander'
import { registerVerification } from '../operator/services.ts'

/** `tidegate gate ...`: what operators and developers of services do about Gate. */
export function registerGate(program: Command): void {
  const gate = program.command('gate').description('Verify services that agents sign up for')
  registerVerification(gate)
}
