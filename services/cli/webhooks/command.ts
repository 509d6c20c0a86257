import type { Command } from 'commander'
import { defineAttempts, defineDeliveries, defineRedeliver, defineResend } from './deliveries.ts'
import { defineListen } from './listen.ts'
import { defineTrigger } from './trigger.ts'

export function defineWebhooks(webhooks: Command): void {
  defineListen(webhooks)
  defineTrigger(webhooks)
  defineRedeliver(webhooks)
  defineDeliveries(webhooks)
  defineAttempts(webhooks)
  defineResend(webhooks)
}
