const isOwn = Object.prototype.hasOwnProperty

/** Replaces `Object.hasOwn` in the bundle (build-sdk.ts), because the oldest browsers lack it. */
export function hasOwn(target: object, name: PropertyKey): boolean {
  return isOwn.call(target, name)
}
