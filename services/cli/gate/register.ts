import type { Command } from 'commander'
import { registerVerification } from '../operator/services.ts'
import { registerDevIntegrator } from './dev-integrator.ts'

/** `tidegate gate ...`: what operators and developers of services do about Gate. */
export function registerGate(program: Command): void {
  const gate = program
    .command('gate')
    .description('Verify services that agents sign up for, and run a sample one')
  registerVerification(gate)
  registerDevIntegrator(gate)
}
