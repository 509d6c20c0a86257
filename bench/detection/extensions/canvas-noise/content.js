// Like canvas blockers, changes the pixels that are read from a canvas, consistently during a visit.
const shift = Math.random() < 0.5 ? 1 : -1
const { getImageData } = CanvasRenderingContext2D.prototype
const { toDataURL } = HTMLCanvasElement.prototype

CanvasRenderingContext2D.prototype.getImageData = function (...args) {
  const image = getImageData.apply(this, args)
  for (let i = 0; i < image.data.length; i += 97) image.data[i] += shift
  return image
}
HTMLCanvasElement.prototype.toDataURL = function (...args) {
  const context = this.getContext('2d')
  if (context && this.width > 0 && this.height > 0) {
    context.putImageData(context.getImageData(0, 0, this.width, this.height), 0, 0)
  }
  return toDataURL.apply(this, args)
}
