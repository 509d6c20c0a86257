import type { Command } from 'commander'
import { registerDeadLetters, registerRedeliver } from './deliveries.ts'
import { registerListen } from './listen.ts'
import { registerTrigger } from './trigger.ts'

export function defineWebhooks(webhooks: Command): void {
  registerListen(webhooks)
  registerTrigger(webhooks)
  registerRedeliver(webhooks)
  registerDeadLetters(webhooks)
}
