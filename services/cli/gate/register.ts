import type { Command } from 'commander'

/** `tidegate gate ...`: what operators and developers of services do about Gate. */
export function registerGate(program: Command): void {
  program.command('gate').description('Verify services that agents sign up for')
}
