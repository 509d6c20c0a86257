import type { Command } from 'commander'
import { registerDeadLetters, registerRedeliver } from './deliveries.ts'
import { registerListen } from './listen.ts'
import { registerTrigger } from './trigger.ts'

export function registerWebhooks(program: Command): void {
  const webhooks = program
    .command('webhooks')
    .description('Receive, trigger and redeliver webhooks, and list what could not be delivered')
  registerListen(webhooks)
  registerTrigger(webhooks)
  registerRedeliver(webhooks)
  registerDeadLetters(webhooks)
}
