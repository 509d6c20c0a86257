/** As another program writes that was given the wrong topic, and as a later version of this one does. */
export const foreignValues = {
  'that no schema wrote': Buffer.from('not ours'),
  'of an unknown schema': Buffer.from([0, 0, 1, 134, 159, 2]),
}
