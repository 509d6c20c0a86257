import type { Command } from 'commander'
import { registerDeadLetters } from './dead-letters.ts'
import { registerListen } from './listen.ts'
import { registerRedeliver } from './redeliver.ts'
import { registerTrigger } from './trigger.ts'

/** `tidegate webhooks ...`: listen and trigger for developers, redeliver and dead-letters for operators. */
export function registerWebhooks(program: Command): void {
  const webhooks = program
    .command('webhooks')
    .description('Receive, trigger and redeliver webhooks, and list what could not be delivered')
  registerListen(webhooks)
  registerTrigger(webhooks)
  registerRedeliver(webhooks)
  registerDeadLetters(webhooks)
}
