/** Human input. */
export const naturalMouse = {
  events: 40,
  moves: 40,
  straightness: 1.2,
  speed_std: 0.5,
  coalesced: 6,
}
export const naturalKeys = {
  events: 20,
  keys: 10,
  interval_mean: 150,
  interval_std: 60,
  rollovers: 2,
  hold_mean: 90,
  hold_std: 20,
}
export const naturalInput = { mouse: naturalMouse }
