/** Names that published clients depend on byte for byte, so they keep the product's former name. */
export const wireNames = {
  sealedTokenAad: 'foil-sealed-results-v2',
  sealedTokenKeyLabel: 'sealed-results',
  sealedTokenRecipientLabel: 'sealed-results-recipient-id',
  gateDeliveryInfo: 'foil-gate-delivery:v1',
  webhookTimestampHeader: 'X-Foil-Timestamp',
  webhookSignatureHeader: 'X-Foil-Signature',
  gateWebhookMember: 'foil',
} as const
