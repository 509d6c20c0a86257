/** What an endpoint can be subscribed to. */
export const subscribableTypes = [
  'session.fingerprint.calculated',
  'session.result.persisted',
  'gate.session.approved',
] as const
export type SubscribableType = (typeof subscribableTypes)[number]

/** What is delivered: a test goes to the one endpoint that it is asked for. */
export const deliveryTypes = [...subscribableTypes, 'webhook.test'] as const
export type DeliveryType = (typeof deliveryTypes)[number]
